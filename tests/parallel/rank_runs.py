"""A run by one process and by several ranks, and how much they may differ."""

import numpy as np
import pytest

from ecgquorum import Cohort, load_ensemble
from tests.training.test_run_folder import untimed

RUN_RECIPE = """
name = "ranks"
members = 2
strategy = "dec+part+harden"
[input]
window_s = 2.5
[member]
width = 0.125
[training]
epochs = 3
batch_size = 19
[strategies.dec]
projected = 4
[strategies.harden]
epsilon = 50.0
"""


def arguments(folder, cohort, out, *more):
    recipe = folder / "recipe.toml"
    return ["train", str(recipe), "--cohort", str(cohort.path), "--out", str(folder / out), "--device", "cpu", *more]


def assert_same_run(found, expected, cohort):
    one, other = load_ensemble(found), load_ensemble(expected)
    one_recording = 1.01 / len(cohort.part("tune"))  # whose answer may be decided by rounding
    assert one.card["tune_accuracy"] == pytest.approx(other.card["tune_accuracy"], abs=one_recording)
    assert one.card["ranks"] == 2 and "ranks" not in other.card
    probs = [ensemble.predict_part(Cohort(cohort.path), "test").member_probs for ensemble in (one, other)]
    np.testing.assert_allclose(*probs, atol=1e-2)
    for mine, theirs in zip(untimed(found), untimed(expected), strict=True):
        assert (mine["phase"], mine["member"], mine["epoch"]) == (theirs["phase"], theirs["member"], theirs["epoch"])
        assert float(mine["tune_accuracy"]) == pytest.approx(float(theirs["tune_accuracy"]), abs=one_recording)
        # single precision: signs of tiny gradients differ; the cases in double precision check the method
        assert float(mine["loss"]) == pytest.approx(float(theirs["loss"]), rel=1e-2)
