"""Fitting a policy on the tune part of a cohort."""

import pytest

from ecgquorum import Cohort
from ecgquorum.errors import PolicyError
from ecgquorum.triage import fit_policy


@pytest.mark.parametrize(("kind", "value"), [("threshold", 0.3), ("budget", 0.2), ("cost", 0.2), ("conformal", 0.2)])
def test_a_policy_of_each_kind_has_figures_of_the_tune_part(tiny_ensemble, tiny_cohort, kind, value):
    policy = fit_policy(tiny_ensemble, tiny_cohort, kind, value)
    assert policy.kind == kind and policy.tune.n_records == len(tiny_cohort.part("tune")) > 0


def test_a_cohort_without_the_class_that_was_held_out_is_taken_as_it_is(tiny_ensemble, tiny_cohort):
    tiny_ensemble.card["hold_out"] = "X"
    assert fit_policy(tiny_ensemble, tiny_cohort, "threshold", 0.3).tune.n_records == len(tiny_cohort.part("tune"))


class Untuned(Cohort):
    """A cohort whose recordings are all for training and tests."""

    def part(self, name):
        return super().part(name)[:0] if name == "tune" else super().part(name)


def test_a_cohort_without_a_tune_part_is_refused(tiny_ensemble, tiny_cohort):
    with pytest.raises(PolicyError, match="expected recordings in the tune part, found none"):
        fit_policy(tiny_ensemble, Untuned(tiny_cohort.path), "budget", 0.2)
