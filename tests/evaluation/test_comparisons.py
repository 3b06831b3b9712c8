"""Strategies are compared on the same recordings, seeds by their mean."""

from dataclasses import replace

import numpy as np
import pytest

from ecgquorum.evaluation.comparisons import authors_r_iu, compare_ensembles, group_by_strategy
from ecgquorum.evaluation.conditions import Condition
from ecgquorum.evaluation.metric_rows import EnsembleFacts
from ecgquorum.evaluation.predictions import LabelledPredictions
from ecgquorum.metrics import incorrect_uncertain_ratio, replicate, threshold_mean

CONDITIONS = (Condition(), Condition("pgd", "member 0", 50.0))
FACTS = EnsembleFacts("dec", "dec", 0, 2, "hash", (0.0, 1.0), 1.0, same_cohort=True, network="compact", deviations=())


def make_predictions(seed, accuracy, n=200, members=2):
    """Predictions of members that differ by noise of their own; recordings are as hard for every seed."""
    rng, hard = np.random.default_rng(seed), np.random.default_rng(99).random(n)
    labels = np.arange(n) % 3
    predicted = np.where(hard < accuracy, labels, (labels + 1) % 3)
    logits = 2 * np.eye(3)[predicted][:, None] + rng.normal(size=(n, members, 3))
    probs = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
    return LabelledPredictions(labels, probs, np.zeros(n))


def compare(facts, predictions):
    found = compare_ensembles(
        facts, CONDITIONS, [np.arange(len(next(iter(predictions.values())).labels))] * 9, predictions
    )
    return {(one.first, one.second, one.attack, one.metric): one for one in found}


def test_every_pair_is_compared_under_what_both_were_evaluated_under():
    facts = [replace(FACTS, name=name, strategy=name) for name in ("baseline", "dec", "part")]
    predictions = {(e, c): make_predictions(e, 0.8 - 0.3 * c) for e in range(3) for c in range(2) if (e, c) != (2, 1)}
    found = compare(facts, predictions)
    pairs = {(first[0], second[0], attack) for first, second, attack, _ in found}
    natural = {("baseline", "dec", "natural"), ("baseline", "part", "natural"), ("dec", "part", "natural")}
    assert pairs == natural | {("baseline", "dec", "pgd")} and len(found) == 8
    one = found[("baseline",), ("dec",), "pgd", "accuracy"]
    shares = [predictions[e, 1].correct.mean() for e in (0, 1)]
    assert one.values == pytest.approx(shares) and one.difference[0] == pytest.approx(shares[0] - shares[1])
    assert one.difference[1] <= one.difference[0] <= one.difference[2] and one.n_records == 200
    assert (one.epsilon, one.target, one.spreads) == (50.0, "member 0", (None, None))


def test_seeds_of_a_strategy_are_compared_by_their_mean_and_show_their_spread():
    facts = [replace(FACTS, name=f"dec seed {seed}", seed=seed) for seed in range(3)]
    facts.append(replace(FACTS, name="part", strategy="part"))
    predictions = {(e, c): make_predictions(e, (0.7, 0.8, 0.9, 0.6)[e]) for e in range(4) for c in range(2)}
    assert [group.numbers for group in group_by_strategy(facts)] == [(0, 1, 2), (3,)]
    one = compare(facts, predictions)[("dec seed 0", "dec seed 1", "dec seed 2"), ("part",), "natural", "accuracy"]
    shares = np.array([predictions[e, 0].correct.mean() for e in range(4)])
    assert one.values == pytest.approx((shares[:3].mean(), shares[3]), abs=1e-6)
    assert one.spreads == (pytest.approx(shares[:3].std(ddof=1), abs=1e-6), None)
    assert one.difference[1] > 0
    del predictions[1, 1]  # a seed that was not attacked
    attacked = compare(facts, predictions)[("dec seed 0", "dec seed 2"), ("part",), "pgd", "accuracy"]
    assert attacked.values[0] == pytest.approx(shares[[0, 2]].mean(), abs=1e-6)


def test_only_strategies_of_the_same_network_are_compared():
    facts = [
        FACTS,
        replace(FACTS, name="own", strategy=""),
        replace(FACTS, name="other", strategy="part", network="dilated"),
        replace(FACTS, name="harder", deviations=("flip 0.5",)),
    ]
    predictions = {(e, c): make_predictions(e, 0.8) for e in range(4) for c in range(2)}
    assert {(first, second) for first, second, _, _ in compare(facts, predictions)} == {(("dec",), ("harder",))}


def test_trainings_with_other_settings_are_neither_seeds_nor_compared():
    hashes = ("input: a", "member: b", "training: c", "dec: d")
    facts = [
        replace(FACTS, name="dec", recipe_hashes=hashes),
        replace(FACTS, name="dec seed 1", seed=1, recipe_hashes=hashes),
        replace(FACTS, name="slow", recipe_hashes=("input: a", "member: b", "training: slow", "dec: d")),
        replace(FACTS, name="wide", recipe_hashes=(*hashes[:3], "dec: wide")),
        replace(FACTS, name="part", strategy="part", recipe_hashes=(*hashes[:3], "part: e")),
    ]
    assert [group.numbers for group in group_by_strategy(facts)] == [(0, 1), (2,), (3,), (4,)]
    predictions = {(e, c): make_predictions(e, 0.8) for e in range(5) for c in range(2)}
    sides = {(first[0], second[0]) for first, second, _, _ in compare(facts, predictions)}
    assert sides == {("dec", "wide"), ("dec", "part"), ("wide", "part")}


def test_one_member_has_no_r_iu():
    facts = [replace(FACTS, name=name, strategy=name, members=1) for name in ("baseline", "part")]
    predictions = {(e, c): make_predictions(e, 0.8, members=1) for e in range(2) for c in range(2)}
    assert {metric for _, _, _, metric in compare(facts, predictions)} == {"accuracy"}


def test_r_iu_is_that_of_the_authors_notebook():
    natural, attacked = make_predictions(0, 0.8), make_predictions(1, 0.4)

    def information(predictions):
        p = predictions.raw_member_probs
        mean = p.mean(axis=1)
        return -(mean * np.log(mean)).sum(axis=1) + (p * np.log(p)).sum(axis=2).mean(axis=1)

    low, high = information(natural).min(), information(natural).max()
    uncertainty = (information(attacked) - low) / (high - low)
    curves = replicate(
        lambda weights: threshold_mean(incorrect_uncertain_ratio(attacked.correct, uncertainty, weights)), 200
    )
    np.testing.assert_allclose(replicate(authors_r_iu(attacked, natural), 200), curves)
