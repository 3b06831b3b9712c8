"""Strategies for `train`, and what it takes to write one: see docs/reference/strategies.md."""

from ecgquorum.training.phase import Phase, PhaseContext
from ecgquorum.training.step import Step
from ecgquorum.training.strategies import (
    STRATEGIES,
    AdversarialTraining,
    Baseline,
    Decorrelation,
    Dverge,
    FourierPartition,
    GradientAlignment,
    Harden,
    RunFacts,
    Strategy,
    parse_strategy,
)
from ecgquorum.training.validation import Evaluation, Tally

__all__ = [
    "STRATEGIES",
    "AdversarialTraining",
    "Baseline",
    "Decorrelation",
    "Dverge",
    "Evaluation",
    "FourierPartition",
    "GradientAlignment",
    "Harden",
    "Phase",
    "PhaseContext",
    "RunFacts",
    "Step",
    "Strategy",
    "Tally",
    "parse_strategy",
]
