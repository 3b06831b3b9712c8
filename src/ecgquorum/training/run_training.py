"""The training of an ensemble into a run folder that explains itself.

RUN/recipe.toml           the recipe, every default spelled out
RUN/cohort.txt            the hash of the data it is trained on
RUN/members/              the store of its trainings, unless RUN/store.txt names another
RUN/history.csv           a line an epoch
RUN/weights.safetensors   the deployed weights, and
RUN/card.json             what they are: together the bundle that `load_ensemble` reads
"""

import math
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ecgquorum._internal.atomic import write_atomic
from ecgquorum.cohorts import PARTS, Cohort
from ecgquorum.ensemble import Ensemble, load_ensemble, save_bundle
from ecgquorum.ensemble.bundle import CARD, round_weights
from ecgquorum.ensemble.diversity import report_diversity
from ecgquorum.ensemble.prediction import information_range
from ecgquorum.errors import FittingError, TrainingError
from ecgquorum.losses import fewest_records
from ecgquorum.members import count_features
from ecgquorum.metrics.calibration import fit_temperature
from ecgquorum.parallel import distributed
from ecgquorum.preprocessing import InputSpec
from ecgquorum.recipes import Recipe
from ecgquorum.training.batches import n_batches
from ecgquorum.training.checkpoint import copy_weights
from ecgquorum.training.checkpoint_store import MemberStore, extract_features
from ecgquorum.training.jobs import Trainings, choose_device, fresh_member, wait_until
from ecgquorum.training.loop import Observer, SilentObserver

ROUNDING = 1e-3
"""How far a probability may move for the sake of a smaller bundle."""


def train_ensemble(
    recipe: Recipe,
    cohort: Cohort,
    out: str | Path,
    *,
    resume: bool = False,
    device: str = "auto",
    observer: Observer | None = None,
    store: str | Path | None = None,
) -> Ensemble:
    """Train the recipe's ensemble by its strategy on the cohort's train part and store it as a bundle in `out`.

    Interrupted at any moment, the same call with `resume` goes on after the last finished epoch and ends with the
    same bits as if nothing had happened. Called by several ranks at once (under torchrun, or in a process group), they
    train each member together; the first one writes, and all get the ensemble.

    store: where trainings are kept and looked for; runs that share one train what they have in common once. A run that
           is resumed goes on with the one it was begun with.
    """
    out = Path(out)
    with distributed.join_ranks():
        check_out(out, recipe, cohort, resume)
        where = choose_device(device)
        finished = resume and (out / CARD).is_file()
        distributed.check_alike("recipe, cohort and run", f"{recipe.toml()} {cohort.data_hash} {resume} {finished}")
        if not finished:
            place = Path(store).resolve() if store else store_of(out)
            check_trainable(recipe, cohort)
            cohort.verify()
            _begin(out, recipe, cohort, place if store else None)
            run = Trainings(
                recipe, cohort, MemberStore(place), where, observer or SilentObserver(), out / "history.csv"
            )
            members = run.trained_members()
            if distributed.is_first():
                _finish(Ensemble(members, cohort.classes, run.spec).to(where), recipe, cohort, out, where)
            distributed.wait()
        return load_ensemble(out, device=where)


def _begin(out: Path, recipe: Recipe, cohort: Cohort, store: Path | None) -> None:
    """Write what a run is begun with."""
    if distributed.is_first():
        write_atomic(out / "recipe.toml", recipe.toml())
        if store:
            write_atomic(out / "store.txt", f"{store}\n")
        write_atomic(out / "cohort.txt", cohort.data_hash + "\n")
    distributed.wait()
    wait_until(
        (out / "cohort.txt").is_file,
        f"{out}: expected the folder that the first rank writes, found none on rank {distributed.rank()}; choose an "
        "--out on a file system that all machines share",
    )


def _finish(ensemble: Ensemble, recipe: Recipe, cohort: Cohort, out: Path, device: torch.device) -> None:
    """Round and measure the trained ensemble, and write its bundle."""
    rounding = _rounded(ensemble, cohort)
    ensemble.information_range = information_range(ensemble.predict_part(cohort, "train"))
    ensemble.temperature = _temperature(ensemble, cohort)
    computed: dict[str, Any] = {"device": str(device), "threads": torch.get_num_threads()}
    if distributed.n_ranks() > 1:
        computed["ranks"] = distributed.n_ranks()
    save_bundle(ensemble, out, recipe=recipe, facts=_facts(ensemble, cohort) | rounding | computed)


def check_trainable(recipe: Recipe, cohort: Cohort) -> None:
    """Refuse what cannot be trained before anything is written."""
    if n_batches(cohort, recipe.training) == 0 or len(cohort.part("tune")) == 0:
        raise TrainingError(f"{cohort.path}: expected recordings to train and to tune on, found too few")
    members = [fresh_member(recipe, cohort, index) for index in range(recipe.members)]
    if "dec" in recipe.parts:
        term, batch_size = recipe.decorrelation, recipe.training.batch_size
        spec = InputSpec(cohort.leads, cohort.rate_hz, recipe.input.scaling, recipe.input.window_s)
        n_features = count_features(members[0], cohort.batch([0], spec).signal)
        needed = fewest_records(n_features, term.projected, term.projection)
        if batch_size < needed:
            raise TrainingError(
                f"decorrelation: expected batches of at least {needed} recordings for a fit, found "
                f"training.batch_size = {batch_size}; raise it, or lower decorrelation.projected"
            )


def store_of(out: Path) -> Path:
    """The store a run was begun with; its own by default."""
    named = out / "store.txt"
    return Path(named.read_text().strip()) if named.is_file() else out / "members"


def check_out(out: Path, recipe: Recipe, cohort: Cohort, resume: bool) -> None:
    """Refuse a folder that a run cannot be begun in, or not gone on with."""
    if not out.exists() or (out.is_dir() and all(entry.suffix == ".partial" for entry in out.iterdir())):
        if resume:
            raise TrainingError(f"{out}: expected a run to go on with, found none; leave out --resume to begin one")
        return
    if not out.is_dir() or not (out / "recipe.toml").is_file():
        raise TrainingError(f"{out}: expected a new folder or a run to go on with, found something else")
    if not resume:
        raise TrainingError(f"{out}: a run is already there; go on with it by --resume, or choose another --out")
    if (out / "recipe.toml").read_text() != recipe.toml():
        raise TrainingError(f"{out}: expected the recipe it was begun with, found another; choose another --out")
    begun = out / "cohort.txt"
    if begun.is_file() and begun.read_text().strip() != cohort.data_hash:
        raise TrainingError(f"{out}: expected the cohort it was begun with, found another; choose another --out")


def _rounded(ensemble: Ensemble, cohort: Cohort) -> dict[str, Any]:
    """Round the weights to half precision where that moves no probability of the tune part by more than ROUNDING.

    Gives what the card says about it.
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


def _temperature(ensemble: Ensemble, cohort: Cohort) -> float:
    return fit_temperature(ensemble.predict_part(cohort, "tune").raw_probs, cohort.labels[cohort.part("tune")])


def _facts(ensemble: Ensemble, cohort: Cohort) -> dict[str, Any]:
    """What the card says about the data, how training went and how different the members are."""
    tune = cohort.part("tune")
    prediction = ensemble.predict_part(cohort, "tune")
    labels = cohort.labels[tune]
    answers = prediction.member_probs.argmax(axis=2)
    features = [extract_features(member, cohort, tune, ensemble.input).double().numpy() for member in ensemble.members]
    return {
        "class_names": cohort.class_names,
        "data": cohort.card["source"],
        "split": cohort.card.get("split", {}),
        "data_hash": cohort.data_hash,
        "n_recordings": {part: len(cohort.part(part)) for part in PARTS},
        "tune_accuracy": float((prediction.label_index == labels).mean()),
        "diversity": report_diversity(features, labels, answers),
    }
