"""How an ensemble did on a part of a cohort, as numbers that a report can be drawn from without the model."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ecgquorum.atomic import write_atomically
from ecgquorum.evaluation.measures import Estimate


@dataclass(frozen=True)
class Example:
    """A stretch of a recording and what the ensemble said of all of it."""

    id: str
    truth: str
    answer: str
    probability: float
    uncertainty: float
    rate_hz: float
    lead: str
    millivolts: list[float] = field(repr=False)


@dataclass(frozen=True)
class Scorecard:
    """Measures of one ensemble on one part of one cohort.

    same_cohort: whether the ensemble was trained on this cohort's train part; of another cohort nothing is known about
                 which of its recordings were trained on
    """

    name: str
    data: str
    part: str
    classes: list[str]
    class_names: dict[str, str]
    n_recordings: dict[str, int]
    members: int
    accuracy: Estimate
    macro_f1: Estimate
    class_f1: dict[str, Estimate]
    member_accuracy: list[Estimate]
    confusion: list[list[int]]
    uncertainty_right: list[float]
    uncertainty_wrong: list[float]
    kept: list[float]
    errors_left: list[float]
    examples: list[Example]
    model_sha256: str
    data_hash: str
    same_cohort: bool

    def save(self, path: str | Path) -> Path:
        """Write the scorecard as JSON."""
        path = Path(path)
        write_atomically(path, json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n")
        return path

    @classmethod
    def load(cls, path: str | Path) -> "Scorecard":
        """Read a scorecard back."""
        content: dict[str, Any] = json.loads(Path(path).read_text())
        content["accuracy"], content["macro_f1"] = (
            Estimate(**content["accuracy"]),
            Estimate(**content["macro_f1"]),
        )
        content["class_f1"] = {name: Estimate(**value) for name, value in content["class_f1"].items()}
        content["member_accuracy"] = [Estimate(**value) for value in content["member_accuracy"]]
        content["examples"] = [Example(**value) for value in content["examples"]]
        return cls(**content)
