"""Fit a policy on the tune part of a cohort."""

import json
from pathlib import Path
from typing import Any

from ecgquorum.cohorts import Cohort
from ecgquorum.ensemble import Ensemble
from ecgquorum.errors import PolicyError
from ecgquorum.triage.policies import Budget, Conformal, ExpectedCost, Policy, Threshold, policy_from

KINDS = {"threshold": 0.5, "budget": 0.1, "cost": 0.1, "conformal": 0.1}
"""Kinds of policy and their default values: uncertainty, share, cost of a review, error rate."""


def fit_policy(ensemble: Ensemble, cohort: Cohort, kind: str, value: float, costs: Any = None) -> Policy:
    """Fit a policy of this kind for the ensemble on the tune part of the cohort.

    value: the threshold, the share that goes to people, the cost of a review, or the error rate of prediction sets
    costs: of errors, {true: {predicted: cost}}, for the kind "cost"
    """
    if kind not in KINDS:
        raise PolicyError(f"expected a policy of {', '.join(KINDS)}, found {kind!r}")
    if (cohort.classes, cohort.leads, cohort.rate_hz) != (
        ensemble.classes,
        ensemble.input.leads,
        ensemble.input.rate_hz,
    ):
        raise PolicyError(f"{cohort.path}: expected the classes, leads and rate of the model, found others")
    if kind == "threshold":
        return Threshold(value)
    prediction = ensemble.predict_part(cohort, "tune")
    if len(prediction) == 0:
        raise PolicyError(f"{cohort.path}: expected recordings in the tune part, found none")
    if kind == "budget":
        return Budget.fit(prediction, value)
    if kind == "conformal":
        return Conformal.fit(prediction, cohort.labels[cohort.part("tune")], value)
    policy = ExpectedCost(value, costs or {})
    policy.defer(prediction)  # raises for classes that the model does not have
    return policy


def read_costs(path: Path) -> dict[str, dict[str, float]]:
    """Read a cost matrix from JSON: {"A": {"N": 10}} is the cost of predicting N where A is true."""
    try:
        found = json.loads(path.read_text())
        return {str(t): {str(a): float(cost) for a, cost in row.items()} for t, row in found.items()}
    except (OSError, ValueError, AttributeError, TypeError) as error:
        expected = 'costs as JSON such as {"A": {"N": 10}}'
        raise PolicyError(f"{path}: expected {expected}, found: {type(error).__name__}: {error}") from error


def policy_of(ensemble: Ensemble) -> Policy | None:
    """The policy in the ensemble's card, if there is one."""
    return policy_from(ensemble.card["policy"]) if "policy" in ensemble.card else None
