"""Where trainings are kept: one folder each, named by its identity, to be found again by whoever needs the same one."""

import hashlib
from pathlib import Path

import numpy as np
import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from ecgquorum._internal.atomic import write_atomic
from ecgquorum.cohorts import Cohort
from ecgquorum.members import embed, freeze
from ecgquorum.preprocessing import InputSpec

_BATCH = 64
_NAME = 16  # of the identity's 64 characters


class MemberStore:
    """A folder of trainings: `checkpoint.safetensors` each, and `features.safetensors` where another one needs them."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def checkpoint_path(self, identity: str) -> Path:
        """Where the training's checkpoint is, or will be."""
        return self.path / identity[:_NAME] / "checkpoint.safetensors"

    def features(self, identity: str, member: nn.Module, cohort: Cohort, spec: InputSpec) -> Tensor:
        """The deployed member's features of every train recording, (record, feature).

        They are computed once and kept with a hash of the weights they came from; others are computed anew.
        """
        path = self.checkpoint_path(identity).with_name("features.safetensors")
        made_by = {"weights": _weights_hash(member)}
        try:
            with safe_open(path, framework="pt") as file:
                if file.metadata() == made_by:
                    kept: Tensor = file.get_tensor("features")
                    return kept
        except (OSError, SafetensorError):
            pass  # not there, or damaged: computed below
        computed = extract_features(member, cohort, cohort.part("train"), spec)
        write_atomic(path, safetensors.torch.save({"features": computed}, made_by))
        return computed


def _weights_hash(member: nn.Module) -> str:
    digest = hashlib.sha256()
    for name, tensor in member.state_dict().items():
        digest.update(name.encode() + tensor.detach().cpu().numpy().tobytes())
    return digest.hexdigest()


def extract_features(member: nn.Module, cohort: Cohort, indices: np.ndarray, spec: InputSpec) -> Tensor:
    """(record, feature) of these recordings, whole windows, in evaluation mode, on the CPU."""
    device = next(member.parameters()).device
    parts = []
    for start in range(0, len(indices), _BATCH):
        with freeze(member), torch.inference_mode():
            parts.append(embed(member, cohort.batch(indices[start : start + _BATCH], spec).signal.to(device)).cpu())
    return torch.cat(parts)
