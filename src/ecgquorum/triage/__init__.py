"""Triage: decide which recordings go to people, and write the worklist."""

from ecgquorum.triage.fhir import write_fhir
from ecgquorum.triage.policies import POLICIES, Budget, Conformal, ExpectedCost, Policy, Threshold, policy_from
from ecgquorum.triage.policy_fit import KINDS, fit_again, fit_policy, policy_of, read_costs
from ecgquorum.triage.run_triage import triage_files
from ecgquorum.triage.worklist import write_worklist

__all__ = [
    "KINDS",
    "POLICIES",
    "Budget",
    "Conformal",
    "ExpectedCost",
    "Policy",
    "Threshold",
    "fit_again",
    "fit_policy",
    "policy_from",
    "policy_of",
    "read_costs",
    "triage_files",
    "write_fhir",
    "write_worklist",
]
