"""Attacks: small changes of recordings that make a classifier err."""

from ecgquorum.attacks.apgd import APGD, dlr_loss
from ecgquorum.attacks.attack import Attack, Classifier, ascended, gradient_of, projected, random_change
from ecgquorum.attacks.building import ATTACKS, build_attack
from ecgquorum.attacks.pgd import PGD
from ecgquorum.attacks.quiet import QuietPGD
from ecgquorum.attacks.sap import CPSC_KERNELS, PHYSIONET_KERNELS, SAP
from ecgquorum.attacks.square import Square
from ecgquorum.attacks.worst import WorstCase, standard_suite

__all__ = [
    "APGD",
    "ATTACKS",
    "CPSC_KERNELS",
    "PGD",
    "PHYSIONET_KERNELS",
    "SAP",
    "Attack",
    "Classifier",
    "QuietPGD",
    "Square",
    "WorstCase",
    "ascended",
    "build_attack",
    "dlr_loss",
    "gradient_of",
    "projected",
    "random_change",
    "standard_suite",
]
