"""The scorecard: metric values as tidy rows, and every prediction they were computed from.

A report needs nothing else. NAME.json holds the rows and what they are about; NAME.npz beside it holds the members'
probabilities for every recording under every condition, and the traces of the examples.
"""

import hashlib
import io
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ecgquorum._internal.atomic import write_atomic
from ecgquorum._internal.checksums import add_checksum, has_valid_checksum
from ecgquorum.errors import ScorecardError
from ecgquorum.evaluation.comparisons import Comparison
from ecgquorum.evaluation.conditions import (
    ALL_CORRUPTIONS,
    CORRUPTION,
    MASKING,
    MEMBERS,
    MIXED,
    NATURAL,
    OOD,
    WORST_KINDS,
    Condition,
)
from ecgquorum.evaluation.examples import Example
from ecgquorum.evaluation.metric_rows import EnsembleFacts, MetricRow, pack_row, unpack_row
from ecgquorum.evaluation.predictions import LabelledPredictions
from ecgquorum.evaluation.score_table import ScoreTable
from ecgquorum.metrics import Estimate
from ecgquorum.metrics.scores import FITTED_SCORES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMAT = 3


@dataclass(frozen=True)
class DataFacts:
    """What the ensembles were evaluated on.

    n_recordings: of each class · unit: of the model's input · data: hash of the recordings
    """

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
        """Recordings of all classes."""
        return sum(self.n_recordings.values())


@dataclass(frozen=True, eq=False)
class Scorecard:
    """Ensembles on the same recordings under several conditions.

    labels:      (record,) · ids: one for each recording
    records:     for each condition the positions of the recordings that it covers
    predictions: (number of the ensemble, number of the condition) -> the predictions of those recordings
    evaluation:  the settings, including every default
    comparisons: paired differences between the ensembles
    """

    data: DataFacts
    ensembles: tuple[EnsembleFacts, ...]
    conditions: tuple[Condition, ...]
    rows: tuple[MetricRow, ...]
    ids: tuple[str, ...]
    labels: NDArray[np.int64]
    records: tuple[NDArray[np.int64], ...]
    predictions: dict[tuple[int, int], LabelledPredictions]
    examples: tuple[Example, ...]
    evaluation: dict[str, Any]
    versions: dict[str, str]
    comparisons: tuple[Comparison, ...] = ()

    def find(self, **wanted: Any) -> Iterator[MetricRow]:
        """The rows whose fields have these values, such as metric="accuracy", attack="pgd"."""
        rows = self.rows
        if "ensemble" in wanted and "metric" in wanted:
            rows = self._rows_of.get((wanted.pop("ensemble"), wanted.pop("metric")), ())
        return (row for row in rows if all(getattr(row, key) == value for key, value in wanted.items()))

    @cached_property
    def _rows_of(self) -> dict[tuple[str, str], tuple[MetricRow, ...]]:
        """The rows of each ensemble and metric: reports ask for thousands of single rows."""
        found: dict[tuple[str, str], list[MetricRow]] = {}
        for row in self.rows:
            found.setdefault((row.ensemble, row.metric), []).append(row)
        return {key: tuple(rows) for key, rows in found.items()}

    def estimate(self, **wanted: Any) -> Estimate | None:
        """The value of the first row whose fields have these values; None where there is none."""
        return next((row.estimate for row in self.find(**wanted)), None)

    def table(self, metric: str = "accuracy") -> ScoreTable:
        """One metric under every condition, for every ensemble."""
        rows = [row for row in self.find(metric=metric) if row.attack != MASKING]
        if not rows:
            known = ", ".join(dict.fromkeys(row.metric for row in self.rows if row.attack != MASKING))
            raise ScorecardError(f"the scorecard has no metric {metric!r}; known: {known}")
        if any(row.target != MEMBERS for row in rows):
            rows = [row for row in rows if row.target != MEMBERS]
        found: dict[str, dict[str, Estimate | None]] = {}
        for row in rows:
            label = self._label(row)
            found.setdefault(label, {})[row.ensemble] = row.estimate.times(100) if row.estimate else None
        names = tuple(one.name for one in self.ensembles)
        return ScoreTable(
            f"{metric} (%) on {self.data.source}, {self.data.part} part, {self.data.n_records} recordings",
            names,
            tuple((label, tuple(values.get(name) for name in names)) for label, values in found.items()),
        )

    def _label(self, row: MetricRow) -> str:
        """What a row is about: the attack, its target and strength, and the class or members."""
        label = row.attack
        if row.target in (CORRUPTION, OOD):
            several = row.attack == ALL_CORRUPTIONS
            label = label if several else str(Condition(row.attack, row.target, row.epsilon))
            return f"{label}: {row.detail}" if row.detail else label
        if row.attack != NATURAL and row.attack not in WORST_KINDS:
            label += f" on {row.target}"
        if row.epsilon:
            several = row.attack in WORST_KINDS or row.attack.startswith(MIXED)
            label += f", {'up to ' if several else ''}{row.epsilon:g} {self.data.unit}"
        return f"{label}: {row.detail}" if row.detail else label

    def plot(self, metric: str = "accuracy") -> "Figure":
        """Draw one metric with intervals against the strength of attacks, else against severities, or as a bar each."""
        from ecgquorum.evaluation.plot import plot_metric

        return plot_metric(self, metric)

    def save(self, path: str | Path) -> Path:
        """Write NAME.json, and NAME.npz before it."""
        path = Path(path)
        if path.suffix != ".json":
            raise ScorecardError(f"{path}: the name of a scorecard must end in .json")
        if not self.predictions:
            raise ScorecardError(f"{path}: a scorecard that was loaded with rows_only has no predictions to save")
        packed = io.BytesIO()
        np.savez_compressed(packed, **self._arrays())  # type: ignore[arg-type]
        content = packed.getvalue()
        beside = path.with_suffix(".npz")
        write_atomic(beside, content)
        write_atomic(path, self.to_json({"file": beside.name, "sha256": hashlib.sha256(content).hexdigest()}))
        return path

    def to_json(self, predictions_file: dict[str, str]) -> str:
        """Format all but the arrays as JSON with a checksum; `predictions_file`: name and SHA-256 of their file."""
        document = {
            "format": FORMAT,
            "data": asdict(self.data),
            "ensembles": [asdict(one) for one in self.ensembles],
            "conditions": [asdict(one) for one in self.conditions],
            "examples": [
                {"position": e.position, "id": e.id, "lead": e.lead, "rate_hz": e.rate_hz}
                | {"ensembles": {str(c): names for c, names in e.ensembles.items()}}
                for e in self.examples
            ],
            "evaluation": self.evaluation,
            "versions": self.versions,
            "predictions": predictions_file,
            "comparisons": [asdict(one) for one in self.comparisons],
            "rows": [pack_row(row) for row in self.rows],
        }
        return _format_json(add_checksum(json.loads(json.dumps(document)), "sha256"))

    def _arrays(self) -> dict[str, NDArray[Any]]:
        arrays: dict[str, NDArray[Any]] = {"ids": np.array(self.ids), "labels": self.labels}
        arrays |= {f"records/{c}": positions for c, positions in enumerate(self.records)}
        for (e, c), found in self.predictions.items():
            arrays[f"raw_member_probs/{e}/{c}"] = found.raw_member_probs.astype(np.float32)
            arrays[f"uncertainty/{e}/{c}"] = found.uncertainty
            arrays |= {f"{name}/{e}/{c}": values for name, values in found.fitted_scores.items()}
        for number, example in enumerate(self.examples):
            arrays[f"examples/{number}/natural"] = example.natural
            arrays |= {f"examples/{number}/{c}": signal for c, signal in example.attacked.items()}
        return arrays

    @classmethod
    def load(cls, path: str | Path, *, rows_only: bool = False) -> "Scorecard":
        """Read a scorecard and check it against its SHA-256.

        rows_only: without predictions and examples, so that NAME.npz need not exist
        """
        path = Path(path)
        document = _read_document(path)
        try:
            facts = _parse_facts(document)
            if rows_only:
                return cls(**facts, ids=(), labels=np.zeros(0, dtype=np.int64), records=(), predictions={}, examples=())
            arrays = _read_arrays(path, document["predictions"])
            labels = arrays["labels"]
            records = tuple(arrays[f"records/{c}"] for c in range(len(facts["conditions"])))
            predictions = {
                (e, c): LabelledPredictions(
                    labels[records[c]],
                    arrays[f"raw_member_probs/{e}/{c}"].astype(np.float64),
                    arrays[f"uncertainty/{e}/{c}"],
                    one.temperature,
                    {name: arrays[f"{name}/{e}/{c}"] for name in FITTED_SCORES if f"{name}/{e}/{c}" in arrays},
                )
                for e, one in enumerate(facts["ensembles"])
                for c in range(len(records))
                if f"raw_member_probs/{e}/{c}" in arrays  # merged ensembles may lack some conditions
            }
            examples = tuple(_parse_example(n, entry, arrays) for n, entry in enumerate(document["examples"]))
            ids = tuple(arrays["ids"].tolist())
            return cls(**facts, ids=ids, labels=labels, records=records, predictions=predictions, examples=examples)
        except (KeyError, TypeError, ValueError) as error:
            raise ScorecardError(f"{path} is not a scorecard: {type(error).__name__}: {error}") from error


def _format_json(document: dict[str, Any]) -> str:
    """Readable JSON with one row or comparison a line."""
    lists = {name: document.pop(name) for name in ("comparisons", "rows")}
    text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False)[:-2]
    for name, rows in lists.items():
        lines = ",\n".join("  " + json.dumps(row, ensure_ascii=False, allow_nan=False) for row in rows)
        text += f',\n "{name}": [\n{lines}\n ]'
    return text + "\n}\n"


def _parse_facts(document: dict[str, Any]) -> dict[str, Any]:
    """What NAME.json alone holds."""
    data = DataFacts(**_with_tuples(document["data"]))
    ensembles = tuple(EnsembleFacts(**_with_tuples(one)) for one in document["ensembles"])
    by_name = {one.name: one for one in ensembles}
    return {
        "data": data,
        "ensembles": ensembles,
        "conditions": tuple(Condition(**one) for one in document["conditions"]),
        "rows": tuple(unpack_row(row, by_name[row["ensemble"]], data.data) for row in document["rows"]),
        "evaluation": document["evaluation"],
        "versions": document["versions"],
        "comparisons": tuple(Comparison(**_with_tuples(one)) for one in document.get("comparisons", ())),
    }


def _with_tuples(document: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in document.items()}


def _parse_example(number: int, entry: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Example:
    ensembles = {int(c): tuple(names) for c, names in entry["ensembles"].items()}
    natural = arrays[f"examples/{number}/natural"]
    attacked = {c: arrays[f"examples/{number}/{c}"] for c in ensembles}
    return Example(**entry | {"natural": natural, "attacked": attacked, "ensembles": ensembles})


def _read_document(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text())
    except OSError as error:
        raise ScorecardError(
            f"{path}: cannot read the scorecard: {error.strerror}; make one with: ecgquorum evaluate"
        ) from error
    except ValueError as error:
        raise ScorecardError(f"{path} is not a scorecard: it is not JSON: {error}") from error
    if not isinstance(document, dict) or "rows" not in document:
        raise ScorecardError(f"{path} is not a scorecard: it has no rows")
    if document.get("format") != FORMAT:
        raise ScorecardError(
            f"{path} is not a scorecard of format {FORMAT}, but of format {document.get('format')}; evaluate again"
        )
    if not has_valid_checksum(document, "sha256"):
        raise ScorecardError(f"{path} was changed or damaged: its checksum does not match; evaluate again")
    return document


def _read_arrays(path: Path, predictions: dict[str, str]) -> dict[str, NDArray[Any]]:
    beside = path.parent / Path(predictions["file"]).name
    try:
        content = beside.read_bytes()
    except OSError as error:
        raise ScorecardError(f"{beside}: cannot read the predictions of {path.name}: {error.strerror}") from error
    if hashlib.sha256(content).hexdigest() != predictions["sha256"]:
        raise ScorecardError(f"{beside} does not hold the predictions of {path.name}, or is damaged; evaluate again")
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}
