"""Where trainings are kept: one folder each, named by its identity, to be found again by whoever needs the same one."""

import io
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ecgquorum.atomic import write_atomically
from ecgquorum.attacks import frozen
from ecgquorum.cohorts import Cohort
from ecgquorum.errors import TrainingError
from ecgquorum.members import Member
from ecgquorum.recordings import InputSpec

_BATCH = 64
_NAME = 16  # of the identity's 64 characters


class MemberStore:
    """A folder of trainings: `checkpoint.safetensors`, and `features.npy` where somebody is decorrelated from it."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def checkpoint_path(self, identity: str) -> Path:
        """Where the training's checkpoint is, or will be."""
        return self.path / identity[:_NAME] / "checkpoint.safetensors"

    def features(self, identity: str, member: Member, cohort: Cohort, spec: InputSpec) -> Tensor:
        """The deployed member's features of every train recording, (record, feature); computed once and kept."""
        path = self.checkpoint_path(identity).with_name("features.npy")
        expected = (len(cohort.part("train")), member.n_features)
        if path.is_file():
            try:
                kept = np.load(path, allow_pickle=False)
            except (OSError, ValueError) as error:
                raise TrainingError(f"{path}: expected features, found it damaged ({error}); remove it") from error
            if kept.shape != expected:
                raise TrainingError(f"{path}: expected the shape {expected}, found {kept.shape}; remove it")
            return torch.from_numpy(kept)
        computed = extracted_features(member, cohort, cohort.part("train"), spec)
        target = io.BytesIO()
        np.save(target, computed.numpy())
        write_atomically(path, target.getvalue())
        return computed


def extracted_features(member: Member, cohort: Cohort, indices: np.ndarray, spec: InputSpec) -> Tensor:
    """(record, feature) of these recordings, whole windows, in evaluation mode, on the CPU."""
    device = next(member.parameters()).device
    parts = []
    for start in range(0, len(indices), _BATCH):
        with frozen(member), torch.inference_mode():
            parts.append(member.embed(cohort.batch(indices[start : start + _BATCH], spec).signal.to(device)).cpu())
    return torch.cat(parts)
