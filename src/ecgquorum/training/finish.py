"""Finish a trained ensemble: round its weights, fit its calibration, describe it, and write the bundle."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from ecgquorum.cohorts import PARTS, Cohort
from ecgquorum.ensemble import Ensemble, save_bundle
from ecgquorum.ensemble.bundle import round_weights
from ecgquorum.ensemble.diversity import Array, report_diversity
from ecgquorum.ensemble.prediction import information_range
from ecgquorum.errors import FittingError, MemberError
from ecgquorum.metrics.calibration import fit_temperature
from ecgquorum.parallel import distributed
from ecgquorum.preprocessing import InputSpec
from ecgquorum.recipes import Recipe
from ecgquorum.training.checkpoint import copy_weights
from ecgquorum.training.checkpoint_store import extract_features

ROUNDING = 1e-3
"""The largest change of a probability that rounding weights may cause."""


def finish_ensemble(ensemble: Ensemble, recipe: Recipe, cohort: Cohort, out: Path) -> None:
    """Round, calibrate and describe a trained ensemble, and write its bundle to `out`."""
    rounding = round_if_harmless(ensemble, cohort)
    ensemble.information_range = information_range(ensemble.predict_part(cohort, "train"))
    tuned = ensemble.predict_part(cohort, "tune")
    ensemble.temperature = fit_temperature(tuned.raw_probs, cohort.labels[cohort.part("tune")])
    device = next(ensemble.parameters()).device
    computed: dict[str, Any] = {"device": str(device), "threads": torch.get_num_threads()}
    if distributed.n_ranks() > 1:
        computed["ranks"] = distributed.n_ranks()
    save_bundle(ensemble, out, recipe=recipe, facts=describe_training(ensemble, cohort) | rounding | computed)


def round_if_harmless(ensemble: Ensemble, cohort: Cohort) -> dict[str, Any]:
    """Round weights to half precision if that changes no probability of the tune part by more than ROUNDING.

    Returns what the card says about it.
    """
    before = ensemble.predict_part(cohort, "tune").member_probs
    weights = copy_weights(ensemble.members)
    round_weights(ensemble)
    try:
        moved = float(np.abs(ensemble.predict_part(cohort, "tune").member_probs - before).max())
    except FittingError:  # a weight that half precision cannot hold
        moved = math.inf
    if moved <= ROUNDING:
        return {"precision": "half", "rounding_moved": moved}
    ensemble.members.load_state_dict(weights)
    return {"precision": "single"}


def describe_training(ensemble: Ensemble, cohort: Cohort) -> dict[str, Any]:
    """Return what the card says about the data, the accuracy on the tune part and the diversity of the members."""
    tune = cohort.part("tune")
    prediction = ensemble.predict_part(cohort, "tune")
    labels = cohort.labels[tune]
    answers = prediction.member_probs.argmax(axis=2)
    features = [_features(member, cohort, ensemble.input) for member in ensemble.members]
    return {
        "class_names": cohort.class_names,
        "data": cohort.card["source"],
        "split": cohort.card.get("split", {}),
        "data_hash": cohort.data_hash,
        "n_recordings": {part: len(cohort.part(part)) for part in PARTS},
        "tune_accuracy": float((prediction.label_index == labels).mean()),
        "diversity": report_diversity(features, labels, answers),
    }


def _features(member: nn.Module, cohort: Cohort, spec: InputSpec) -> Array:
    """Return a member's features on the tune part; without columns where they cannot be read."""
    tune = cohort.part("tune")
    try:
        features: Array = extract_features(member, cohort, tune, spec).double().numpy()
    except MemberError:
        return np.empty((len(tune), 0))
    return features
