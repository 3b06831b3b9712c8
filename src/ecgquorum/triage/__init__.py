"""Triage: which recordings are answered, and which go to people."""

from ecgquorum.triage.policies import POLICIES, Budget, Conformal, ExpectedCost, Policy, Threshold, policy_from
from ecgquorum.triage.run import triage
from ecgquorum.triage.worklist import write_worklist

__all__ = [
    "POLICIES",
    "Budget",
    "Conformal",
    "ExpectedCost",
    "Policy",
    "Threshold",
    "policy_from",
    "triage",
    "write_worklist",
]
