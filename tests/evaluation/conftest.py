"""Ensembles, a cohort and scorecards that tests of evaluation share."""

import pytest

from ecgquorum import Cohort, Scorecard, evaluate, load_ensemble
from ecgquorum.attacks import PGD
from ecgquorum.evaluation import EvaluationOptions

QUICK = [PGD(20.0, n_steps=3), PGD(200.0, n_steps=3)]
FEW_CHECKS = EvaluationOptions(masking_records=4)


@pytest.fixture(scope="module")
def card(tiny_study):
    """The scorecard of the tiny study."""
    return Scorecard.load(tiny_study / "scorecard.json")


@pytest.fixture
def cohort(tiny_study):
    return Cohort(tiny_study / "cohort")


@pytest.fixture
def baseline(tiny_study):
    return load_ensemble(tiny_study / "runs" / "baseline")


@pytest.fixture(scope="module")
def quick_card(tiny_study):
    """The baseline under QUICK."""
    ensemble = load_ensemble(tiny_study / "runs" / "baseline")
    return evaluate(ensemble, Cohort(tiny_study / "cohort"), QUICK, options=FEW_CHECKS)


@pytest.fixture
def value():
    """The value of the one row with these fields."""

    def find(card, **wanted):
        (row,) = card.find(**wanted)
        return row.value

    return find
