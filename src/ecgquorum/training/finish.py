"""Finish a trained ensemble: round its weights, fit its calibration, describe it, and write the bundle."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from ecgquorum.cohorts import PARTS, Cohort
from ecgquorum.ensemble import Ensemble, save_bundle
from ecgquorum.ensemble.bundle import round_weights
from ecgquorum.ensemble.diversity import Array, report_diversity
from ecgquorum.ensemble.prediction import information_range, robust_information_range
from ecgquorum.errors import AttackError, FittingError, MemberError
from ecgquorum.members import forward_with_features, freeze
from ecgquorum.metrics.calibration import fit_temperature
from ecgquorum.parallel import distributed
from ecgquorum.preprocessing import InputSpec
from ecgquorum.progress import NO_PROGRESS, Progress
from ecgquorum.training.checkpoint import copy_weights
from ecgquorum.training.plan import TrainingPlan
from ecgquorum.training.risk_fit import RiskOptions, fit_risk, spread_indices
from ecgquorum.training.strategies import Strategy

ROUNDING = 1e-3
"""The largest change of a probability that rounding weights may cause."""

AUGMENTATIONS = {"flip": (1.0, -1.0), "gain": (1 / 1.5, 1.0, 1.5)}
"""Factors of the copies by which the card says how much of the features' variance is an augmentation."""

N_AUGMENTED = 256
"""The number of tune recordings that are copied for that, at most."""

N_CHECKED = 64
"""The number of tune recordings on which strategies check the members, at most."""

_BATCH = 64


def finish_ensemble(
    ensemble: Ensemble, plan: TrainingPlan, cohort: Cohort, out: Path, progress: Progress = NO_PROGRESS
) -> None:
    """Round, calibrate, describe and check a trained ensemble, and write its bundle to `out`."""
    recipe = plan.recipe
    rounding = round_if_harmless(ensemble, cohort)
    trained = ensemble.predict_part(cohort, "train")
    ensemble.information_range = information_range(trained)
    ensemble.robust_information_range = robust_information_range(trained)
    tuned = ensemble.predict_part(cohort, "tune")
    ensemble.temperature = fit_temperature(tuned.raw_probs, cohort.labels[cohort.part("tune")])
    device = next(ensemble.parameters()).device
    computed: dict[str, Any] = {"device": str(device), "threads": torch.get_num_threads()}
    if distributed.n_ranks() > 1:
        computed["ranks"] = distributed.n_ranks()
    if recipe.hold_out is not None:
        computed["hold_out"] = recipe.hold_out
    if recipe.risk:
        try:
            fit_risk(ensemble, cohort, RiskOptions(seed=recipe.seed, progress=progress))
        except (AttackError, FittingError) as error:  # no gradient, or too few recordings
            computed["no_risk"] = str(error)
    checks = check_members(ensemble, plan.strategy, cohort)
    for name, check in checks.items():
        if "warning" in check:
            progress.log(f"warning: {name}: {check['warning']}")
    facts = describe_training(ensemble, cohort) | rounding | computed | ({"checks": checks} if checks else {})
    save_bundle(ensemble, out, recipe=recipe, facts=facts)


def check_members(ensemble: Ensemble, strategy: Strategy, cohort: Cohort) -> dict[str, dict[str, Any]]:
    """Return what each strategy found about the trained members on some tune recordings, by the strategy's name."""
    device = next(ensemble.parameters()).device
    batch = cohort.batch(spread_indices(cohort.part("tune"), N_CHECKED), ensemble.input).to(device)
    found = {part.name: part.check_members(list(ensemble.members), batch) for part in strategy.parts}
    return {name: facts for name, facts in found.items() if facts}


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
    return {
        "class_names": cohort.class_names,
        "data": cohort.card["source"],
        "split": cohort.card.get("split", {}),
        "data_hash": cohort.data_hash,
        "n_recordings": {part: len(cohort.part(part)) for part in PARTS},
        "tune_accuracy": float((prediction.label_index == labels).mean()),
        "diversity": _describe_diversity(ensemble, cohort, labels, answers),
    }


def _describe_diversity(
    ensemble: Ensemble, cohort: Cohort, labels: NDArray[np.int64], answers: NDArray[np.int64]
) -> dict[str, Any]:
    """Return how different the members are on the tune part, and what augmentations do to their features."""
    tune, spec = cohort.part("tune"), ensemble.input
    logits, features = zip(*(_outputs(member, cohort, tune, spec) for member in ensemble.members), strict=True)
    some = spread_indices(tune, N_AUGMENTED)
    copies = {
        name: [
            np.stack([_outputs(member, cohort, some, spec, factor)[1] for factor in factors])
            for member in ensemble.members
        ]
        for name, factors in AUGMENTATIONS.items()
    }
    return report_diversity(list(features), labels, answers, list(logits), copies)


def _outputs(
    member: nn.Module, cohort: Cohort, indices: NDArray[np.int64], spec: InputSpec, factor: float = 1.0
) -> tuple[Array, Array]:
    """Return a member's logits and features on recordings times a factor; no columns of features that it has not."""
    device = next(member.parameters()).device
    found: list[tuple[Array, Array]] = []
    for start in range(0, len(indices), _BATCH):
        x = factor * cohort.batch(indices[start : start + _BATCH], spec).signal.to(device)
        with freeze(member), torch.inference_mode():
            try:
                logits, features = forward_with_features(member, x)
            except MemberError:
                logits, features = member(x), x.new_empty(len(x), 0)
        found.append((logits.double().cpu().numpy(), features.double().cpu().numpy()))
    every_logit, every_feature = zip(*found, strict=True)
    return np.concatenate(every_logit), np.concatenate(every_feature)
