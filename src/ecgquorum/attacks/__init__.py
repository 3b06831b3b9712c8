"""Attacks: small changes of recordings that make a classifier err."""

from ecgquorum.attacks.apgd import APGD, dlr_loss
from ecgquorum.attacks.attack import Attack, Model, input_gradient, pgd_steps, project, random_perturbation
from ecgquorum.attacks.confident_pgd import ConfidentPGD
from ecgquorum.attacks.pgd import PGD
from ecgquorum.attacks.registry import ATTACKS, build_attack
from ecgquorum.attacks.sap import CPSC_KERNELS, PHYSIONET_KERNELS, SAP
from ecgquorum.attacks.square import Square
from ecgquorum.attacks.worst_case import WorstCase, standard_suite

__all__ = [
    "APGD",
    "ATTACKS",
    "CPSC_KERNELS",
    "PGD",
    "PHYSIONET_KERNELS",
    "SAP",
    "Attack",
    "ConfidentPGD",
    "Model",
    "Square",
    "WorstCase",
    "build_attack",
    "dlr_loss",
    "input_gradient",
    "pgd_steps",
    "project",
    "random_perturbation",
    "standard_suite",
]
