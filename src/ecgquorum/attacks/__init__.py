"""Attacks: small changes of recordings that make a classifier err."""

from ecgquorum.attacks.attack import Attack, Classifier, frozen, sign_steps
from ecgquorum.attacks.pgd import PGD

__all__ = ["PGD", "Attack", "Classifier", "frozen", "sign_steps"]
