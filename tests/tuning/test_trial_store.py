"""The store of trials: parameters depend on earlier results, not on interruptions."""

import sys

import pytest

from ecgquorum.errors import TuningError
from ecgquorum.metrics import Estimate
from ecgquorum.recipes import load_recipe
from ecgquorum.tuning import search_space
from ecgquorum.tuning.trial import ATTACKED, NATURAL, Failure, Scores
from ecgquorum.tuning.trial_store import FEWEST_FOR_IMPORTANCE, TrialStore

from ..commands import Command

SPACE = search_space(load_recipe("physionet2017-compact").with_strategy("dec+part"), 300.0).restrict(
    ("member.dropout", "strategies.dec.weight", "strategies.dec.form", "part")
)
N = FEWEST_FOR_IMPORTANCE + 2  # beyond the ten that are drawn at random


def outcome(number, values):
    """Better with a smaller weight and less dropout; every seventh cannot be trained."""
    if number % 7 == 5:
        return Failure(f"trial {number} cannot be trained")
    natural, attacked = 1 - values["member.dropout"], 1 - values["strategies.dec.weight"]
    return Scores({NATURAL: Estimate(natural, natural - 0.1, natural + 0.1), ATTACKED: Estimate(attacked, 0.0, 1.0)})


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    ledger = TrialStore(tmp_path_factory.mktemp("ledger") / "search.sqlite", SPACE, seed=3)
    for number, values in ledger.ask(N + 4):
        ledger.tell(number, outcome(number, values))
    yield ledger
    ledger.close()


def test_the_given_recipe_comes_first_and_all_others_differ(whole):
    trials = whole.trials()
    assert [trial.number for trial in trials] == list(range(N + 4))
    assert trials[0].values == SPACE.values_of(SPACE.given)
    assert SPACE.recipe_of(trials[0].values) == SPACE.given
    assert len({str(trial.values) for trial in trials}) == N + 4
    assert [trial.number for trial in trials if trial.reason] == [5, 12, 19]
    assert trials[5].reason == "trial 5 cannot be trained" and not trials[5].measures


@pytest.mark.long
def test_an_interrupted_search_asks_for_the_same_trials(whole, tmp_path):
    """Among the first, among those that failed, and where later ones depend on all before."""
    path = tmp_path / "a folder with % and ?" / "search.sqlite"
    for last in (0, 5, 11, 14, N + 3):
        for stop in ("asked", "asked again", "told"):
            ledger = TrialStore(path, SPACE, seed=3)
            for number, values in ledger.ask(last + 1):
                if number < last or stop == "told":
                    ledger.tell(number, outcome(number, values))
            ledger.close()
    again = TrialStore(path, SPACE, seed=3)
    assert again.trials() == whole.trials()
    assert list(again.ask(N + 4)) == []
    again.close()


def test_another_seed_gives_other_trials(whole, tmp_path):
    ledger = TrialStore(tmp_path / "search.sqlite", SPACE, seed=4)
    for number, values in ledger.ask(3):
        ledger.tell(number, outcome(number, values))
    trials = ledger.trials()
    assert trials[0] == whole.trials()[0]
    assert all(one.values != other.values for one, other in zip(trials[1:], whole.trials()[1:3], strict=True))
    ledger.close()


def test_several_trials_run_at_once(tmp_path):
    """The first ten do not depend on the order in which they end."""
    ledger = TrialStore(tmp_path / "search.sqlite", SPACE, seed=3)
    asked = dict(ledger.ask(6))
    for number in (3, 0, 5, 1, 4, 2):
        ledger.tell(number, outcome(number, asked[number]))
    assert [trial.values for trial in ledger.trials()] == [asked[number] for number in range(6)]
    ledger.close()


def test_interrupted_trials_are_started_again(tmp_path):
    path = tmp_path / "search.sqlite"
    ledger = TrialStore(path, SPACE, seed=3)
    asked = dict(ledger.ask(4))
    ledger.tell(2, outcome(2, asked[2]))
    ledger.close()
    ledger = TrialStore(path, SPACE, seed=3)
    assert dict(ledger.ask(1)) == {}  # there is one already
    assert dict(ledger.ask(4)) == {number: asked[number] for number in (0, 1, 3)}
    ledger.close()


def test_importance_is_computed_without_scikit_learn(whole, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    importances = whole.importances()
    assert set(importances) == {p.name for p in SPACE.parameters if p.when is None}
    assert sum(importances.values()) == pytest.approx(1)
    assert list(importances.values()) == sorted(importances.values(), reverse=True)


def test_few_trials_have_no_importance(tmp_path):
    ledger = TrialStore(tmp_path / "search.sqlite", SPACE, seed=3)
    assert ledger.importances() == {}
    ledger.close()


def test_a_damaged_database_is_reported_in_a_line(tmp_path):
    (tmp_path / "search.sqlite").write_bytes(b"years of work" * 1000)
    with pytest.raises(TuningError, match="the database of the search is damaged") as error:
        TrialStore(tmp_path / "search.sqlite", SPACE, seed=3)
    assert "\n" not in str(error.value)


def test_without_optuna_one_line_says_what_to_install(tiny_cohort, tmp_path):
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "optuna.py").write_text("raise ModuleNotFoundError(name='optuna')")
    arguments = ("tune", "demo", "--cohort", tiny_cohort.path, "--out", tmp_path / "s")
    done = Command(*arguments, packages=[tmp_path / "site"])
    assert done.wait() == 1 and 'pip install "ecgquorum[tune]"' in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "s").exists()
