"""Settings of an evaluation."""

from dataclasses import dataclass
from typing import Literal

from ecgquorum.corruptions import SEVERITIES, SignalTransform
from ecgquorum.errors import ScorecardError

_CHOICES = {"part": ("test", "tune"), "normalise": ("training", "authors", "robust")}


@dataclass(frozen=True)
class EvaluationOptions:
    """Settings of `evaluate`.

    part:            of a cohort: "test", or "tune" while choices are still to be made
    normalise:       the mutual information to uncertainty by its range: "training": minimum to maximum on the train
                     part; "authors": minimum to maximum on the natural evaluated recordings, and R_cc, R_iu and UA as
                     means over thresholds; "robust": 0 to the 99.9 % quantile on the train part of the cohort
    masking_records: how many recordings to check for gradient masking, no more than are attacked; 0: no checks
    masking_epsilon: strength of those checks; None: the second of the attacks' strengths, without attacks no checks
    seed:            of random attacks and of the choice of recordings
    severities:      of corruptions that are given by name
    ood:             sets of recordings out of distribution: names, "all", or transforms; "unseen" are recordings of the
                     cohort's classes that the ensemble does not know
    shift_records:   how many recordings to corrupt, drawn at random; None: all
    reference:       name of the ensemble by whose errors corruption errors are divided; "": the first of the strategy
                     "baseline", or the first of all
    device:          of an executor's processes: "auto", "cpu" or "cuda"; without one, the ensembles stay where they are
    """

    part: Literal["test", "tune"] = "test"
    normalise: Literal["training", "authors", "robust"] = "training"
    masking_records: int = 32
    masking_epsilon: float | None = None
    seed: int = 0
    severities: tuple[int, ...] = SEVERITIES
    ood: tuple[str | SignalTransform, ...] = ()
    shift_records: int | None = None
    reference: str = ""
    device: str = "auto"

    def __post_init__(self) -> None:
        if not self.severities or not set(self.severities) <= set(SEVERITIES):
            raise ScorecardError(f"severities must be some of 1 to 5, not {self.severities}")
        if self.shift_records is not None and self.shift_records < 1:
            raise ScorecardError(f"shift_records must be at least 1, not {self.shift_records}")
        for name, known in _CHOICES.items():
            if getattr(self, name) not in known:
                renamed = '; "evaluated" is now "authors"' if getattr(self, name) == "evaluated" else ""
                raise ScorecardError(f"{name} must be {' or '.join(known)}, not {getattr(self, name)!r}{renamed}")
