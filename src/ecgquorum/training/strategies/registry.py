"""Strategies by name."""

from typing import Any

from ecgquorum.registry import Registry

STRATEGIES: Registry[type[Any]] = Registry(
    "strategy",
    {
        "baseline": "ecgquorum.training.strategies.baseline:Baseline",
        "dec": "ecgquorum.training.strategies.decorrelation:Decorrelation",
        "gal": "ecgquorum.training.strategies.gradient_alignment:GradientAlignment",
        "part": "ecgquorum.training.strategies.fourier_partition:FourierPartition",
        "adv": "ecgquorum.training.strategies.adversarial_training:AdversarialTraining",
        "dverge": "ecgquorum.training.strategies.dverge:Dverge",
        "harden": "ecgquorum.training.strategies.harden:Harden",
    },
)
"""Every strategy that a recipe can name; other packages add theirs as entry points `ecgquorum.strategies`."""
