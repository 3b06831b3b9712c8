"""Triage: decide which recordings go to people, and write the worklist.

`triage.plots` and `triage.timeline` draw recordings; they are separate, since they need matplotlib.
"""

from ecgquorum.triage.fhir import write_fhir
from ecgquorum.triage.policies import POLICIES, Budget, Conformal, ExpectedCost, Policy, Threshold, policy_from
from ecgquorum.triage.policy_fit import KINDS, fit_again, fit_policy, policy_of, read_costs
from ecgquorum.triage.run_triage import TriageOptions, triage_files
from ecgquorum.triage.urgency import Urgency, urgency_of
from ecgquorum.triage.worklist import Summary, write_worklist

__all__ = [
    "KINDS",
    "POLICIES",
    "Budget",
    "Conformal",
    "ExpectedCost",
    "Policy",
    "Summary",
    "Threshold",
    "TriageOptions",
    "Urgency",
    "fit_again",
    "fit_policy",
    "policy_from",
    "policy_of",
    "read_costs",
    "triage_files",
    "urgency_of",
    "write_fhir",
    "write_worklist",
]
