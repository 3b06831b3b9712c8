"""Attacked recordings, crafted once for whatever ensembles share what they are crafted on.

Strategies share members: `baseline`, `dec`, `part` and `dec+part` begin with the same one, so an attack on member 0 of
one is an attack on member 0 of all. What is crafted is known by a hash of all that determines it.
"""

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import safetensors.torch
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from ecgquorum._internal.atomic import write_atomic
from ecgquorum._internal.seeds import derive_seed
from ecgquorum.attacks import Model, WorstCase, build_attack
from ecgquorum.cohorts import Batch, Cohort
from ecgquorum.ensemble import Ensemble
from ecgquorum.errors import AttackError
from ecgquorum.recipes import AttackRecipe

_FORMAT = 2


@dataclass(frozen=True)
class Crafting:
    """One attack at one strength on what one ensemble, or several, are made of."""

    recipe: AttackRecipe
    epsilon: float
    ensemble: Ensemble
    seed: int

    def check(self) -> None:
        """Refuse an attack or a target that there is not."""
        build_attack(self.recipe.kind, self.epsilon, self.recipe.options, self.ensemble.input)
        self._target()

    def key(self, cohort: Cohort, indices: NDArray[np.int64]) -> str:
        """A hash of everything that the crafted recordings depend on."""
        attack = build_attack(self.recipe.kind, self.epsilon, self.recipe.options, self.ensemble.input)
        options = dataclasses.asdict(attack)
        options.pop("start", None)  # which no recipe gives
        known = {
            "format": _FORMAT,
            "attack": type(attack).__name__,
            "options": options,
            "target": self._target_hashes(),
            "spec": dataclasses.asdict(self.ensemble.input),
            "records": [cohort.rows[i].sha256 for i in indices],
            "labels": [cohort.rows[i].label for i in indices],
            "seed": self.seed,
        }
        return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()

    def crafted(self, batch: Batch, stream: str) -> Batch:
        """The batch, attacked; `stream` names the randomness."""
        attack = build_attack(self.recipe.kind, self.epsilon, self.recipe.options, self.ensemble.input)
        if isinstance(attack, WorstCase):
            attack = dataclasses.replace(attack, targets=tuple(self.ensemble.members))
        generator = torch.Generator().manual_seed(derive_seed(self.seed, "crafting", stream))
        attacked = attack(self._target(), batch.signal, batch.label, batch.valid, generator=generator)
        return batch._replace(signal=attacked)

    def _target(self) -> Model:
        member = self.recipe.member
        if member is None:
            return self.ensemble
        if member >= len(self.ensemble.members):
            n_members = len(self.ensemble.members)
            raise AttackError(f"{self.recipe.name}: expected a member below {n_members}, found {self.recipe.target}")
        return self.ensemble.members[member]

    def _target_hashes(self) -> list[str]:
        hashes = member_hashes(self.ensemble)
        return hashes if self.recipe.member is None else [hashes[self.recipe.member]]


def craft_cached(crafting: Crafting, batch: Batch, key: str, start: int, store: Path | None) -> Batch:
    """The batch, attacked; what is in the store is not crafted again, and what is crafted is kept there.

    key: `crafting.key` · start: where the batch begins among the recordings of that key
    """
    path = store / key[:16] / f"{start:06d}.safetensors" if store else None
    found = _stored(path, batch)
    if found is not None:
        return batch._replace(signal=found.to(batch.signal.device))
    crafted = crafting.crafted(batch, f"{key} {start}")
    if path:
        _keep(path, crafted)
    return crafted


def member_hashes(ensemble: Ensemble) -> list[str]:
    """What each member computes, as a hash of its weights, its bands and how it is built."""
    hashes = []
    for member in ensemble.members:
        digest = hashlib.sha256(f"{type(member).__name__} {member!r}".encode())
        for name, tensor in [*member.state_dict().items(), *member.named_buffers()]:
            digest.update(f"{name} {tuple(tensor.shape)}".encode() + tensor.detach().cpu().numpy().tobytes())
        hashes.append(digest.hexdigest())
    return hashes


def _stored(path: Path | None, batch: Batch) -> torch.Tensor | None:
    """What is kept there, if it is whole and fits; else it is crafted anew."""
    if path is None:
        return None
    try:
        with safe_open(path, framework="pt") as file:
            kept: torch.Tensor = file.get_tensor("signal")
            metadata = file.metadata() or {}
    except (OSError, SafetensorError):
        return None
    whole = metadata.get("sha256") == _sha256(kept)
    return kept if whole and kept.shape == batch.signal.shape else None


def _keep(path: Path, batch: Batch) -> None:
    signal = batch.signal.cpu().contiguous()
    write_atomic(path, safetensors.torch.save({"signal": signal}, {"sha256": _sha256(signal)}))


def _sha256(signal: torch.Tensor) -> str:
    return hashlib.sha256(signal.numpy().tobytes()).hexdigest()
