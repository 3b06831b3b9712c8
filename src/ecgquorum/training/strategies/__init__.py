"""Strategies: how the members of an ensemble are trained to differ. One file per strategy.

A name that a recipe or the command line can use is one line in STRATEGIES; other packages add theirs as entry points
`ecgquorum.strategies`, and any class can be named as `package.module:Name`.
"""

from ecgquorum.training.strategies.adversarial_training import AdversarialTraining
from ecgquorum.training.strategies.baseline import Baseline
from ecgquorum.training.strategies.decorrelation import Decorrelation
from ecgquorum.training.strategies.dverge import Dverge
from ecgquorum.training.strategies.fourier_partition import FourierPartition
from ecgquorum.training.strategies.gradient_alignment import GradientAlignment
from ecgquorum.training.strategies.harden import Harden
from ecgquorum.training.strategies.parse import build_strategy, parse_strategy
from ecgquorum.training.strategies.registry import STRATEGIES
from ecgquorum.training.strategies.strategy import RunFacts, Strategy, StrategySum, sum_strategies

__all__ = [
    "STRATEGIES",
    "AdversarialTraining",
    "Baseline",
    "Decorrelation",
    "Dverge",
    "FourierPartition",
    "GradientAlignment",
    "Harden",
    "RunFacts",
    "Strategy",
    "StrategySum",
    "build_strategy",
    "parse_strategy",
    "sum_strategies",
]
