"""The Pareto front of trials, and the chosen one."""

import csv
import io
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecgquorum.metrics import Estimate
from ecgquorum.recipes import load_recipe
from ecgquorum.tuning import Trial, choose_trial, pareto_front, search_space
from ecgquorum.tuning.page import selection_bias
from ecgquorum.tuning.results import trials_csv


def trial(number, natural, attacked):
    measures = {"accuracy": natural, "accuracy_under_attack": attacked}
    return Trial(number, {}, {name: Estimate(v, v - 0.1, v + 0.1) for name, v in measures.items()})


FAILED = Trial(9, {"member.width": 1.0}, {}, "expected a finite loss, found nan")


def test_the_front_and_the_choice_by_hand():
    trials = [
        trial(0, 0.7, 0.4),
        trial(1, 0.8, 0.3),
        trial(2, 0.6, 0.6),
        trial(3, 0.6, 0.5),
        trial(4, 0.8, 0.2),
        FAILED,
    ]
    assert [one.number for one in pareto_front(trials)] == [1, 0, 2]
    assert choose_trial(trials).number == 2
    assert choose_trial([FAILED]) is None and pareto_front([FAILED]) == []


def test_of_equals_the_first_is_chosen():
    """So a search that finds nothing better keeps what was given."""
    trials = [trial(0, 0.7, 0.5), trial(1, 0.5, 0.7), trial(2, 0.7, 0.5)]
    assert choose_trial(trials).number == 0
    assert [one.number for one in pareto_front(trials)] == [0, 2, 1]


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=12))
def test_no_trial_dominates_the_front_or_has_a_higher_mean(points):
    trials = [trial(n, a / 6, b / 6) for n, (a, b) in enumerate(points)]
    front = pareto_front(trials)
    for one in trials:
        beaten = any(
            other.accuracies != one.accuracies
            and other.accuracies[0] >= one.accuracies[0]
            and other.accuracies[1] >= one.accuracies[1]
            for other in trials
        )
        assert (one in front) is not beaten
    assert choose_trial(trials).mean == max(one.mean for one in trials)
    assert choose_trial(trials) in front


def test_every_trial_is_a_line():
    space = search_space(load_recipe("demo"), 300.0)
    rows = list(csv.DictReader(io.StringIO(trials_csv([trial(0, 0.7, 0.4), FAILED], space))))
    assert [row["trial"] for row in rows] == ["0", "9"]
    assert (rows[0]["accuracy"], rows[0]["front"], rows[0]["chosen"], rows[0]["reason"]) == ("0.7", "True", "True", "")
    assert (rows[1]["accuracy"], rows[1]["front"], rows[1]["reason"]) == ("", "False", FAILED.reason)
    assert rows[1]["member.width"] == "1.0"


def test_the_selection_bias_of_two_equal_trials_is_known():
    error = 0.02
    estimate = Estimate(0.8, 0.8 - 1.96 * error, 0.8 + 1.96 * error)
    assert selection_bias([estimate]) == pytest.approx(0, abs=1e-9)
    assert selection_bias([estimate] * 2) == pytest.approx(error / math.sqrt(math.pi), rel=1e-6)
    assert selection_bias([]) == 0
