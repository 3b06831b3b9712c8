"""Triage: which recordings are answered, and which go to people."""

from ecgquorum.triage.policies import POLICIES, Budget, Conformal, ExpectedCost, Policy, Threshold, policy_from

__all__ = ["POLICIES", "Budget", "Conformal", "ExpectedCost", "Policy", "Threshold", "policy_from"]
