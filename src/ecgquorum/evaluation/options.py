"""Settings of an evaluation."""

from dataclasses import dataclass
from typing import Literal

from ecgquorum.errors import ScorecardError

_CHOICES = {"part": ("test", "tune"), "normalise": ("training", "evaluated")}


@dataclass(frozen=True)
class EvaluationOptions:
    """Settings of `evaluate`.

    part:            of a cohort: "test", or "tune" while choices are still to be made
    normalise:       uncertainty by its range on the "training" part, or on the "evaluated" recordings
    masking_records: how many recordings to check for gradient masking; 0: no checks
    masking_epsilon: strength of those checks; None: the second of the attacks' strengths, without attacks no checks
    seed:            of random attacks and of the choice of recordings
    device:          of an executor's processes: "auto", "cpu" or "cuda"; without one, the ensembles stay where they are
    """

    part: Literal["test", "tune"] = "test"
    normalise: Literal["training", "evaluated"] = "training"
    masking_records: int = 32
    masking_epsilon: float | None = None
    seed: int = 0
    device: str = "auto"

    def __post_init__(self) -> None:
        for name, known in _CHOICES.items():
            if getattr(self, name) not in known:
                raise ScorecardError(f"{name} must be {' or '.join(known)}, not {getattr(self, name)!r}")
