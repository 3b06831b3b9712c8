"""Craft attacked recordings once for all ensembles that share the model they are crafted on.

Strategies share members: `baseline`, `dec`, `part` and `dec+part` begin with the same one, so an attack on member 0 of
one is an attack on member 0 of all. Attacked recordings are found by a hash of everything that they depend on.
"""

import dataclasses
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass

import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from ecgquorum._internal.seeds import derive_seed
from ecgquorum.attacks import SAP, WorstCase
from ecgquorum.cohorts import Batch
from ecgquorum.ensemble import Ensemble
from ecgquorum.errors import AttackError
from ecgquorum.evaluation.attack_conditions import AttackCondition
from ecgquorum.evaluation.data import EvaluationData
from ecgquorum.evaluation.fingerprint import hash_attack, hash_module
from ecgquorum.metrics import Labels
from ecgquorum.storage import FileStore

_FORMAT = 3


@dataclass(frozen=True)
class AttackJob:
    """One attack on one ensemble, or on one of its members."""

    condition: AttackCondition
    ensemble: Ensemble
    seed: int

    def key(self, data: EvaluationData, positions: Labels) -> str:
        """A hash of everything that the attacked recordings depend on."""
        targets = [self.target] if self.condition.member is not None else self.ensemble.members
        known = {
            "format": _FORMAT,
            "attack": hash_attack(self.condition.attack),
            "target": [hash_module(target) for target in targets],
            "input": dataclasses.asdict(self.ensemble.input),
            "records": [data.hashes[i] for i in positions],
            "labels": [data.classes[data.labels[i]] for i in positions],
            "seed": self.seed,
        }
        return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()

    def craft(self, batch: Batch, stream: str) -> Tensor:
        """The attacked signal (batch, lead, time); `stream` names the random numbers."""
        attack = self.condition.attack
        if isinstance(attack, WorstCase) and not attack.targets:
            attack = dataclasses.replace(attack, targets=tuple(self.ensemble.members))
        generator = torch.Generator().manual_seed(derive_seed(self.seed, "crafting", stream))
        return attack(self.target, batch.signal, batch.label, batch.valid, generator=generator)

    def first_job(self) -> "AttackJob | None":
        """The attack whose result this one starts from, which the cache may have; None: there is none."""
        attack = self.condition.attack
        first = attack.first_attack() if isinstance(attack, SAP) else None
        return first and dataclasses.replace(self, condition=dataclasses.replace(self.condition, attack=first))

    def start_from(self, change: Tensor) -> "AttackJob":
        """The same attack, started from a change that is known."""
        if not isinstance(self.condition.attack, SAP):
            raise TypeError(f"{type(self.condition.attack).__name__} does not start from another attack")
        attack = dataclasses.replace(self.condition.attack, start=change)
        return dataclasses.replace(self, condition=dataclasses.replace(self.condition, attack=attack))

    @property
    def target(self) -> nn.Module:
        """The model that the attack is crafted on."""
        member, n_members = self.condition.member, len(self.ensemble.members)
        if member is None:
            return self.ensemble
        if member >= n_members:
            raise AttackError(
                f"{self.condition.name}: there is no member {member} in an ensemble of {n_members}, numbered from 0"
            )
        return self.ensemble.members[member]


def craft_cached(
    job: AttackJob, batch: Batch, key: str, start: int, cache: FileStore | None, make_key: Callable[[AttackJob], str]
) -> Batch:
    """Return the attacked batch, from the cache where it is there; otherwise craft it and keep it there.

    key: `make_key(job)` · start: where the batch begins among the recordings of that key
    """
    name = f"{key[:16]}/{start:06d}.safetensors"
    found = _read_cached(cache, name, batch) if cache else None
    if found is not None:
        return batch._replace(signal=found.to(batch.signal.device))
    first = job.first_job()
    if first:
        known = craft_cached(first, batch, make_key(first), start, cache, make_key)
        job = job.start_from(known.signal - batch.signal)
    attacked = job.craft(batch, f"{key} {start}")
    if cache:
        signal = attacked.cpu().contiguous()
        cache.write(name, safetensors.torch.save({"signal": signal}, {"sha256": _sha256(signal)}))
    return batch._replace(signal=attacked)


def _read_cached(cache: FileStore, name: str, batch: Batch) -> Tensor | None:
    """The cached signal if it is complete and has the shape of the batch."""
    try:
        with cache.open(name) as path, safe_open(path, framework="pt") as file:
            kept: Tensor = file.get_tensor("signal")
            metadata = file.metadata() or {}
    except (OSError, SafetensorError):
        return None
    complete = metadata.get("sha256") == _sha256(kept)
    return kept if complete and kept.shape == batch.signal.shape else None


def _sha256(signal: Tensor) -> str:
    return hashlib.sha256(signal.numpy().tobytes()).hexdigest()
