"""Fit a policy on the tune part of a cohort."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from ecgquorum.cohorts import Cohort, hold_out_class
from ecgquorum.ensemble import Ensemble
from ecgquorum.ensemble.scores import FITTED_SCORES
from ecgquorum.errors import PolicyError
from ecgquorum.triage.policies import Budget, Conformal, ExpectedCost, Policy, Threshold, policy_from

KINDS = {"threshold": 0.5, "budget": 0.1, "cost": 0.1, "conformal": 0.1}
"""Kinds of policy and their default values: threshold, share, cost of a review, error rate."""


def fit_policy(
    ensemble: Ensemble, cohort: Cohort, kind: str, value: float, costs: Any = None, score: str = "risk"
) -> Policy:
    """Fit a policy of this kind for the ensemble on the tune part of the cohort.

    value: the threshold, the share that goes to people, the cost of a review, or the error rate of prediction sets
    costs: of errors, {true: {predicted: cost}}, for the kind "cost"
    score: the uncertainty score to use
    """
    if kind not in KINDS:
        raise PolicyError(f"expected a policy of {', '.join(KINDS)}, found {kind!r}")
    cohort = hold_out_class(cohort, ensemble.card.get("hold_out"), required=False)
    if (cohort.classes, cohort.leads, cohort.rate_hz) != (
        ensemble.classes,
        ensemble.input.leads,
        ensemble.input.rate_hz,
    ):
        raise PolicyError(f"{cohort.path}: expected the classes, leads and rate of the model, found others")
    prediction, truth = ensemble.predict_part(cohort, "tune"), cohort.labels[cohort.part("tune")]
    if len(prediction) == 0:
        raise PolicyError(f"{cohort.path}: expected recordings in the tune part, found none")
    policy: Policy
    if kind == "threshold":
        policy = Threshold(value, score=score)
    elif kind == "budget":
        policy = Budget.fit(prediction, value, score)
    elif kind == "conformal":
        policy = Conformal.fit(prediction, truth, value, score)
    else:
        policy = ExpectedCost(value, costs or {}, score=score)
    return policy.with_figures(prediction, truth)


def fit_again(ensemble: Ensemble, cohort: Cohort, policy: Policy) -> Policy:
    """Fit a policy with the same settings, after the ensemble's risk has changed.

    A budget of a version that knew no other score than "uncertainty" is now by risk.
    """
    score = "risk" if policy.kind == "budget" and policy.tune is None else policy.score
    settings = {"threshold": "threshold", "budget": "share", "cost": "review", "conformal": "alpha"}
    value = float(getattr(policy, settings[policy.kind]))
    fitted = fit_policy(ensemble, cohort, policy.kind, value, getattr(policy, "costs", None), score)
    return replace(fitted, urgency=policy.urgency)


def read_costs(path: Path) -> dict[str, dict[str, float]]:
    """Read a cost matrix from JSON: {"A": {"N": 10}} is the cost of predicting N where A is true."""
    try:
        found = json.loads(path.read_text())
        return {str(t): {str(a): float(cost) for a, cost in row.items()} for t, row in found.items()}
    except (OSError, ValueError, AttributeError, TypeError) as error:
        expected = 'costs as JSON such as {"A": {"N": 10}}'
        raise PolicyError(f"{path}: expected {expected}, found: {type(error).__name__}: {error}") from error


def policy_of(ensemble: Ensemble) -> Policy | None:
    """The policy in the ensemble's card, if there is one; an error if it was fitted with another risk or distance."""
    if "policy" not in ensemble.card:
        return None
    policy = policy_from(ensemble.card["policy"])
    model = ensemble.risk_model.sha256 if ensemble.risk_model else ""
    if policy.score in FITTED_SCORES and policy.tune is not None and policy.tune.risk_model != model:
        raise PolicyError(
            f"the bundle's policy was fitted with another {policy.score}; fit it again with: ecgquorum policy fit"
        )
    return policy
