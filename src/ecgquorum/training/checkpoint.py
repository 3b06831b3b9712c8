"""Checkpoints of training: one safetensors file, replaced atomically after every epoch.

It holds the weights, the optimiser's state, the weights to keep and the history. Randomness needs no state, since
every epoch's generators are derived from the seed and the epoch's number.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import safetensors.torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from ecgquorum.errors import TrainingError
from ecgquorum.storage import FileStore

_KEY = "ecgquorum"


@dataclass
class Checkpoint:
    """The state of a training job after an epoch.

    identity: a hash of everything that determines the job; a checkpoint of another job is refused
    epoch:    number of finished epochs
    best:     the weights to keep: the moving average if there is one, else those with the best score on the tune part
    """

    identity: str
    epoch: int
    weights: dict[str, Tensor]
    optimiser: dict[str, Tensor]
    best: dict[str, Tensor]
    best_score: tuple[float, float]
    history: list[dict[str, Any]] = field(default_factory=list)

    def to_bytes(self) -> bytes:
        """The content of the checkpoint's file."""
        tensors = {
            f"{group}/{name}": tensor.detach().cpu().contiguous()
            for group, part in (("weights", self.weights), ("optimiser", self.optimiser), ("best", self.best))
            for name, tensor in part.items()
        }
        facts = {
            "identity": self.identity,
            "epoch": self.epoch,
            "best_score": self.best_score,
            "history": self.history,
        }
        return safetensors.torch.save(tensors, {_KEY: json.dumps(facts)})

    @classmethod
    def load(cls, path: Path, identity: str, where: str = "") -> "Checkpoint":
        """Read the checkpoint of the job `identity`; `where` names it in messages, else its path does."""
        groups: dict[str, dict[str, Tensor]] = {"weights": {}, "optimiser": {}, "best": {}}
        try:
            with safe_open(path, framework="pt") as file:
                facts: dict[str, Any] = json.loads((file.metadata() or {})[_KEY])
                for key in file.keys():  # noqa: SIM118 (this is no dictionary)
                    group, _, name = key.partition("/")
                    groups[group][name] = file.get_tensor(key)
            if facts["identity"] != identity:
                raise ValueError("it belongs to another training job")
            return cls(
                identity,
                int(facts["epoch"]),
                groups["weights"],
                groups["optimiser"],
                groups["best"],
                (facts["best_score"][0], facts["best_score"][1]),
                facts["history"],
            )
        except (OSError, SafetensorError, KeyError, ValueError) as error:
            raise TrainingError(
                f"{where or path}: the checkpoint is damaged ({error}); remove the file to train this member again"
            ) from error


@dataclass(frozen=True)
class CheckpointFile:
    """Where the checkpoint of a job is kept."""

    store: FileStore
    name: str

    def __str__(self) -> str:
        return self.store.where(self.name)

    def load(self, identity: str) -> Checkpoint | None:
        """Read the checkpoint; None if there is none."""
        try:
            with self.store.open(self.name) as path:
                return Checkpoint.load(path, identity, str(self)) if path.is_file() else None
        except FileNotFoundError:
            return None

    def save(self, checkpoint: Checkpoint) -> None:
        """Write the checkpoint atomically."""
        self.store.write(self.name, checkpoint.to_bytes())

    def stamp(self) -> str:
        """Changes with every epoch; empty if there is no checkpoint."""
        return self.store.stamp(self.name)


def optimiser_state(optimiser: Any) -> dict[str, Tensor]:
    """Return the optimiser's tensors by parameter number and name."""
    return {
        f"{number}/{name}": tensor
        for number, state in optimiser.state_dict()["state"].items()
        for name, tensor in state.items()
    }


def restore_optimiser(optimiser: Any, tensors: dict[str, Tensor]) -> None:
    """Put tensors from `optimiser_state` back."""
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        number, _, name = key.partition("/")
        state.setdefault(int(number), {})[name] = tensor
    optimiser.load_state_dict({**optimiser.state_dict(), "state": state})


def copy_weights(module: nn.Module) -> dict[str, Tensor]:
    """Return a copy of the module's state on the CPU."""
    return {name: tensor.detach().cpu().clone() for name, tensor in module.state_dict().items()}
