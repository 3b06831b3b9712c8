"""The training of an ensemble into a run folder that explains itself.

RUN/recipe.toml           the recipe, every default spelled out
RUN/members/K/            member K's checkpoint
RUN/history.csv           a line an epoch
RUN/weights.safetensors   the deployed weights, and
RUN/card.json             what they are: together the bundle that `load_ensemble` reads
"""

import csv
import hashlib
import io
import math
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ecgquorum.atomic import write_atomically
from ecgquorum.cohorts import Cohort
from ecgquorum.ensemble import Ensemble, Prediction, load_ensemble, save_bundle
from ecgquorum.ensemble.bundle import CARD
from ecgquorum.errors import TrainingError
from ecgquorum.members import Member, build_member
from ecgquorum.recipe import Recipe
from ecgquorum.recordings import InputSpec
from ecgquorum.training.loop import Observer, Silent, train_member

_PREDICTION_BATCH = 64


def train_ensemble(
    recipe: Recipe,
    cohort: Cohort,
    out: str | Path,
    *,
    resume: bool = False,
    device: str = "auto",
    observer: Observer | None = None,
) -> Ensemble:
    """Train the recipe's members one after another on the cohort's train part and store them as a bundle in `out`.

    Interrupted at any moment, the same call with `resume` goes on after the last finished epoch and ends with the
    same bits as if nothing had happened.
    """
    out = Path(out)
    _check_out(out, recipe, resume)
    if resume and (out / CARD).is_file():
        finished = load_ensemble(out)
        if finished.card.get("data_hash") != cohort.data_hash:
            raise TrainingError(f"{out}: expected a run on this cohort, found a finished one on another")
        return finished
    write_atomically(out / "recipe.toml", recipe.toml())
    observer = observer or Silent()
    where = chosen_device(device)
    spec = InputSpec(cohort.leads, cohort.rate_hz, recipe.input.scaling, recipe.input.window_s)
    members: list[Member] = []
    history: list[dict[str, float]] = []
    for index in range(recipe.members):
        member = build_member(
            recipe, index, n_leads=len(cohort.leads), n_classes=len(cohort.classes), rate_hz=cohort.rate_hz
        )
        state = train_member(
            member,
            cohort,
            spec,
            recipe,
            index,
            out / "members" / str(index) / "checkpoint.safetensors",
            identity=member_identity(recipe, cohort, index),
            device=where,
            observer=_Recorder(out / "history.csv", history, observer),
        )
        members.append(member)
        history = [*history, *state.history]
    write_atomically(out / "history.csv", history_csv(history))
    ensemble = Ensemble(members, cohort.classes, spec).to(where)
    ensemble.information_range = information_range(predict_part(ensemble, cohort, "train"))
    save_bundle(ensemble, recipe, out, _facts(ensemble, cohort))
    return load_ensemble(out, where)


def chosen_device(name: str) -> torch.device:
    """`auto` is CUDA where there is one, else the CPU."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise TrainingError(f"--device: expected auto, cpu or cuda, found {name!r}") from error
    if device.type == "cuda" and not torch.cuda.is_available():
        raise TrainingError("--device: expected a CUDA device, found none; use cpu or auto")
    return device


def member_identity(recipe: Recipe, cohort: Cohort, index: int) -> str:
    """A hash of everything that determines a member: not the recipe's name, nor how many others there are."""
    fields: dict[str, Any] = recipe.model_dump(exclude={"name", "members"})
    fields["member"]["bands"] = recipe.bands_of(index)
    text = repr((sorted(fields.items()), cohort.data_hash, index))
    return hashlib.sha256(text.encode()).hexdigest()


def predict_part(ensemble: Ensemble, cohort: Cohort, part: Any) -> Prediction:
    """The ensemble's prediction for every recording of a part of the cohort."""
    indices = cohort.part(part)
    starts = range(0, len(indices), _PREDICTION_BATCH)
    probs = [ensemble.member_probs(cohort.batch(indices[s : s + _PREDICTION_BATCH], ensemble.spec)) for s in starts]
    empty = np.zeros((0, len(ensemble.members), len(ensemble.classes)))
    ids = tuple(cohort.rows[i].id for i in indices)
    return Prediction(ids, ensemble.classes, np.concatenate([empty, *probs]), ensemble.information_range)


def information_range(prediction: Prediction) -> tuple[float, float]:
    """(I_min, I_max) of a set of recordings; where members never disagree, (I_min, I_min + ln 2)."""
    information = prediction.mutual_information
    low, high = float(information.min()), float(information.max())
    return (low, high) if high - low > 1e-9 else (low, low + math.log(2))


def history_csv(history: list[dict[str, float]]) -> str:
    """One line an epoch."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(history[0]) if history else ["member", "epoch"])
    writer.writeheader()
    writer.writerows(
        {key: value if isinstance(value, int) else f"{value:.6g}" for key, value in row.items()} for row in history
    )
    return text.getvalue()


class _Recorder:
    """Keeps `history.csv` up to date while a member trains, and passes everything on."""

    def __init__(self, path: Path, earlier: list[dict[str, float]], observer: Observer) -> None:
        self._path, self._rows, self._observer = path, list(earlier), observer

    def on_batch(self, member: int, epoch: int, batch: int, n_batches: int, loss: float) -> None:
        self._observer.on_batch(member, epoch, batch, n_batches, loss)

    def on_epoch(self, member: int, row: dict[str, float]) -> None:
        self._rows.append(row)
        write_atomically(self._path, history_csv(self._rows))
        self._observer.on_epoch(member, row)


def _check_out(out: Path, recipe: Recipe, resume: bool) -> None:
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    if not out.is_dir() or not (out / "recipe.toml").is_file():
        raise TrainingError(f"{out}: expected a new folder or a run to go on with, found something else")
    if not resume:
        raise TrainingError(f"{out}: a run is already there; go on with it by --resume, or choose another --out")
    if (out / "recipe.toml").read_text() != recipe.toml():
        raise TrainingError(f"{out}: expected the recipe it was begun with, found another; choose another --out")


def _facts(ensemble: Ensemble, cohort: Cohort) -> dict[str, Any]:
    """What the card says about the data and about how training went."""
    prediction = predict_part(ensemble, cohort, "tune")
    labels = cohort.labels[cohort.part("tune")]
    by_member = prediction.member_probs.argmax(axis=2) == labels[:, None]
    return {
        "class_names": cohort.class_names,
        "data": cohort.card["source"],
        "data_hash": cohort.data_hash,
        "n_recordings": {part: len(cohort.part(part)) for part in ("train", "tune", "test")},
        "tune_accuracy": float((prediction.label_index == labels).mean()),
        "member_tune_accuracy": by_member.mean(axis=0).tolist(),
    }
