"""Checkpoint cache shared between runs, on disk or in a bucket: one folder per job, named by the job's identity."""

import hashlib
from pathlib import Path

import numpy as np
import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from ecgquorum.cohorts import Cohort
from ecgquorum.members import embed, freeze
from ecgquorum.preprocessing import InputSpec
from ecgquorum.storage import open_store
from ecgquorum.training.checkpoint import CheckpointFile

_BATCH = 64
_NAME = 16  # of the identity's 64 characters


class CheckpointStore:
    """A folder of training jobs: `checkpoint.safetensors`, and `features.safetensors` where another job needs them."""

    def __init__(self, location: str | Path) -> None:
        self._files = open_store(location)

    def checkpoint(self, identity: str) -> CheckpointFile:
        """Return where a job's checkpoint is kept, which may not exist yet."""
        return CheckpointFile(self._files, f"{identity[:_NAME]}/checkpoint.safetensors")

    def features(self, identity: str, member: nn.Module, cohort: Cohort, spec: InputSpec) -> Tensor:
        """Return a trained member's features of every train recording, (record, feature).

        They are stored with a hash of the member's weights, and computed again for other weights.
        """
        name = f"{identity[:_NAME]}/features.safetensors"
        made_by = {"weights": _weights_hash(member)}
        try:
            with self._files.open(name) as path, safe_open(path, framework="pt") as file:
                if file.metadata() == made_by:
                    kept: Tensor = file.get_tensor("features")
                    return kept
        except (OSError, SafetensorError):
            pass  # missing or damaged: computed below
        computed = extract_features(member, cohort, cohort.part("train"), spec)
        self._files.write(name, safetensors.torch.save({"features": computed}, made_by))
        return computed


def _weights_hash(member: nn.Module) -> str:
    digest = hashlib.sha256()
    for name, tensor in member.state_dict().items():
        digest.update(name.encode() + tensor.detach().cpu().numpy().tobytes())
    return digest.hexdigest()


def extract_features(member: nn.Module, cohort: Cohort, indices: np.ndarray, spec: InputSpec) -> Tensor:
    """Return the features (record, feature) of recordings, whole windows in evaluation mode, on the CPU."""
    device = next(member.parameters()).device
    parts = []
    for start in range(0, len(indices), _BATCH):
        with freeze(member), torch.inference_mode():
            parts.append(embed(member, cohort.batch(indices[start : start + _BATCH], spec).signal.to(device)).cpu())
    return torch.cat(parts)
