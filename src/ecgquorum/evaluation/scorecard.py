"""What was measured, as tidy rows, and every answer it was measured on: all that a report needs, without a model.

NAME.json holds the rows and says what they are about; NAME.npz beside it holds the members' probabilities for every
recording under every condition, and the recordings of the examples.
"""

import csv
import hashlib
import io
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecgquorum._internal.atomic import write_atomic
from ecgquorum._internal.checksums import add_checksum, has_valid_checksum
from ecgquorum.errors import ScorecardError
from ecgquorum.evaluation.conditions import Condition
from ecgquorum.evaluation.examples import Example
from ecgquorum.evaluation.metric_rows import Answers, Measured
from ecgquorum.metrics.measures import Estimate

FORMAT = 2


@dataclass(frozen=True)
class Row:
    """One measured value; `value`, `low` and `high` are None where there is none, and `reason` says why.

    ensemble: the strategy, with its seed behind it where there are several of one · detail: a class, a pair of members
    model, data: hashes of the weights and of the cohort
    """

    ensemble: str
    strategy: str
    seed: int
    attack: str
    target: str
    epsilon: float
    measure: str
    detail: str
    value: float | None
    low: float | None
    high: float | None
    reason: str
    n_records: int
    model: str
    data: str

    @property
    def estimate(self) -> Estimate | None:
        """The value with its interval."""
        if self.value is None or self.low is None or self.high is None:
            return None
        return Estimate(self.value, self.low, self.high)


@dataclass(frozen=True)
class EnsembleFacts:
    """An ensemble as a scorecard knows it.

    same_cohort: whether it was trained on this cohort's train part; of another cohort nothing is known about which of
                 its recordings were trained on
    """

    name: str
    strategy: str
    seed: int
    members: int
    model: str
    information_range: tuple[float, float]
    temperature: float
    same_cohort: bool
    network: str


@dataclass(frozen=True)
class DataFacts:
    """What the ensembles were tested on."""

    source: str
    part: str
    classes: tuple[str, ...]
    class_names: dict[str, str]
    n_recordings: dict[str, int]
    unit: str
    data: str
    rate_hz: float
    n_train: int

    @property
    def n_records(self) -> int:
        """Recordings in the part."""
        return sum(self.n_recordings.values())


@dataclass(frozen=True, eq=False)
class Scorecard:
    """Ensembles on one part of one cohort under several conditions.

    records:    for each condition the places in the part that it covers
    answers:    (ensemble, condition), by number -> what was said of those recordings
    evaluation: how they were tested, every default spelled out
    """

    data: DataFacts
    ensembles: tuple[EnsembleFacts, ...]
    conditions: tuple[Condition, ...]
    rows: tuple[Row, ...]
    ids: tuple[str, ...]
    truth: NDArray[np.int64]
    records: tuple[NDArray[np.int64], ...]
    answers: dict[tuple[int, int], Answers]
    examples: tuple[Example, ...]
    evaluation: dict[str, Any]
    versions: dict[str, str]

    def find(self, **wanted: Any) -> Iterator[Row]:
        """The rows whose fields are as given, such as measure="accuracy", attack="pgd"."""
        return (row for row in self.rows if all(getattr(row, key) == value for key, value in wanted.items()))

    def estimate(self, **wanted: Any) -> Estimate | None:
        """The one value that is asked for; None where it is not there or not defined."""
        return next((row.estimate for row in self.find(**wanted)), None)

    def save(self, path: str | Path) -> Path:
        """Write NAME.json, and NAME.npz before it."""
        path = Path(path)
        if not self.answers:
            raise ScorecardError(f"{path}: expected a scorecard with its answers, found one of rows only")
        arrays: dict[str, NDArray[Any]] = {"ids": np.array(self.ids), "truth": self.truth}
        arrays |= {f"records/{c}": places for c, places in enumerate(self.records)}
        arrays |= {f"probs/{e}/{c}": said.member_probs.astype(np.float32) for (e, c), said in self.answers.items()}
        arrays |= {f"uncertainty/{e}/{c}": said.uncertainty for (e, c), said in self.answers.items()}
        for number, example in enumerate(self.examples):
            arrays[f"examples/{number}/natural"] = example.natural
            arrays |= {f"examples/{number}/{c}": signal for c, signal in example.crafted.items()}
        packed = io.BytesIO()
        np.savez_compressed(packed, **arrays)  # type: ignore[arg-type]
        content = packed.getvalue()
        beside = path.with_suffix(".npz")
        document = {
            "format": FORMAT,
            "data": asdict(self.data),
            "ensembles": [asdict(one) for one in self.ensembles],
            "conditions": [asdict(one) for one in self.conditions],
            "examples": [
                {"place": e.place, "id": e.id, "lead": e.lead, "rate_hz": e.rate_hz}
                | {"drawn_of": {str(c): names for c, names in e.drawn_of.items()}}
                for e in self.examples
            ],
            "evaluation": self.evaluation,
            "versions": self.versions,
            "predictions": {"file": beside.name, "sha256": hashlib.sha256(content).hexdigest()},
            "rows": [asdict(row) for row in self.rows],
        }
        write_atomic(beside, content)
        write_atomic(path, _json(add_checksum(json.loads(json.dumps(document)), "sha256")))
        return path

    @classmethod
    def load(cls, path: str | Path, *, rows_only: bool = False) -> "Scorecard":
        """Read a scorecard back, its answers checked against their SHA-256.

        rows_only: what was measured without the answers and examples, for which NAME.npz need not be there
        """
        path = Path(path)
        document = _document(path)
        try:
            if rows_only:
                return cls(**_about(document), **_NO_ANSWERS)
            arrays = _arrays(path, document["predictions"])
            examples = tuple(
                Example(
                    natural=arrays[f"examples/{number}/natural"],
                    crafted={int(c): arrays[f"examples/{number}/{c}"] for c in entry["drawn_of"]},
                    drawn_of={int(c): tuple(names) for c, names in entry.pop("drawn_of").items()},
                    **entry,
                )
                for number, entry in enumerate(document["examples"])
            )
            truth, n_conditions = arrays["truth"], len(document["conditions"])
            records = tuple(arrays[f"records/{c}"] for c in range(n_conditions))
            return cls(
                **_about(document),
                ids=tuple(arrays["ids"].tolist()),
                truth=truth,
                records=records,
                answers={
                    (e, c): Answers(
                        truth[records[c]],
                        arrays[f"probs/{e}/{c}"].astype(np.float64),
                        arrays[f"uncertainty/{e}/{c}"],
                        one["temperature"],
                    )
                    for e, one in enumerate(document["ensembles"])
                    for c in range(n_conditions)
                },
                examples=examples,
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ScorecardError(f"{path}: expected a scorecard, found: {type(error).__name__}: {error}") from error


def row_of(facts: EnsembleFacts, data: str, condition: Condition, n_records: int, measured: Measured) -> Row:
    """A measured value as a row."""
    estimate = measured.estimate
    value, low, high = (v if math.isfinite(v) else None for v in (estimate.value, estimate.low, estimate.high))
    return Row(
        facts.name,
        facts.strategy,
        facts.seed,
        condition.attack,
        condition.target,
        condition.epsilon,
        measured.measure,
        measured.detail,
        value,
        low,
        high,
        measured.reason if value is not None else measured.reason or "not defined",
        measured.n_records or n_records,
        facts.model,
        data,
    )


def rows_csv(rows: Sequence[Row]) -> str:
    """The rows as CSV."""
    text = io.StringIO()
    writer = csv.DictWriter(text, [f.name for f in fields(Row)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(row) for row in rows)
    return text.getvalue()


def _json(document: dict[str, Any]) -> str:
    """Readable, and a row on a line."""
    rows = document.pop("rows")
    head = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False)
    lines = ",\n".join("  " + json.dumps(row, ensure_ascii=False, allow_nan=False) for row in rows)
    return f'{head[:-2]},\n "rows": [\n{lines}\n ]\n}}\n'


_NO_ANSWERS: dict[str, Any] = {
    "ids": (),
    "truth": np.zeros(0, dtype=np.int64),
    "records": (),
    "answers": {},
    "examples": (),
}


def _about(document: dict[str, Any]) -> dict[str, Any]:
    """What NAME.json alone says."""
    return {
        "data": DataFacts(**document["data"] | {"classes": tuple(document["data"]["classes"])}),
        "ensembles": tuple(
            EnsembleFacts(**one | {"information_range": tuple(one["information_range"])})
            for one in document["ensembles"]
        ),
        "conditions": tuple(Condition(**one) for one in document["conditions"]),
        "rows": tuple(Row(**row) for row in document["rows"]),
        "evaluation": document["evaluation"],
        "versions": document["versions"],
    }


def _document(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text())
    except OSError as error:
        raise ScorecardError(
            f"{path}: expected a scorecard, found: {error.strerror}; make one with: ecgquorum evaluate"
        ) from error
    except ValueError as error:
        raise ScorecardError(f"{path}: expected a scorecard as JSON, found: {error}") from error
    if not isinstance(document, dict) or "rows" not in document:
        raise ScorecardError(f"{path}: expected a scorecard, found something else")
    if document.get("format") != FORMAT:
        found = f"format {document.get('format')}"
        raise ScorecardError(f"{path}: expected a scorecard of format {FORMAT}, found {found}; evaluate again")
    if not has_valid_checksum(document, "sha256"):
        raise ScorecardError(f"{path}: expected a scorecard as it was written, found it changed or damaged")
    return document


def _arrays(path: Path, predictions: dict[str, str]) -> dict[str, NDArray[Any]]:
    beside = path.parent / Path(predictions["file"]).name
    try:
        content = beside.read_bytes()
    except OSError as error:
        raise ScorecardError(f"{beside}: expected the answers of {path.name}, found: {error.strerror}") from error
    if hashlib.sha256(content).hexdigest() != predictions["sha256"]:
        raise ScorecardError(f"{beside}: expected the answers of {path.name}, found others, or them damaged")
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}
