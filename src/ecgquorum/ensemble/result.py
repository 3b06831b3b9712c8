"""The result for one recording; worklist, JSON, CSV, FHIR and the desk's database are views of it."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Self

from ecgquorum.ensemble.prediction import Array, Prediction, round_printed
from ecgquorum.preprocessing.input_spec import Windowing
from ecgquorum.preprocessing.measurements import NOT_MEASURED, Measurements
from ecgquorum.preprocessing.prepare import PreparedRecording
from ecgquorum.preprocessing.quality import NO_FINDINGS, Finding, Quality, Severity
from ecgquorum.recordings.acquisition import NOTHING_KNOWN, Acquisition
from ecgquorum.recordings.discovery import ReadFailure, SkippedFile, printable

if TYPE_CHECKING:
    from ecgquorum.ensemble.ensemble import Ensemble

CERTAIN, DEFERRED, UNREADABLE, SKIPPED = "certain", "deferred", "unreadable", "skipped"
"""Decisions: the answer is used; a person is to read the recording; there is nothing to read; it is no recording."""

BY_QUALITY, BY_WINDOWS, BY_URGENCY, BY_FLOOR, BY_POLICY = "quality", "windows", "urgency", "floor", "policy"
"""What made the decision; only that of the policy gives way to a budget."""

_WORST = ("start_s", "label", "probability", "risk")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
Probabilities = Mapping[str, float]


@dataclass(frozen=True)
class WindowResult:
    """One window of a recording that was classified on its own: start and length in seconds, calibrated probability."""

    start_s: float
    seconds: float
    label: str = ""
    probability: float | None = None
    risk: float | None = None


@dataclass(frozen=True)
class Result:
    """What is known about one recording.

    label:                    most probable class; empty if the recording could not be read
    probabilities:            calibrated, by class
    raw_probabilities:        mean of the members' probabilities, not calibrated
    raw_member_probabilities: by member, numbered from 0
    entropy:                  of the mean raw probabilities, in nats
    mutual_information:       between members and class, in nats
    uncertainty:              mutual information, normalised by its range in training; may exceed 1
    distance:                 of the members' features from those of the training recordings; typically 1
    risk:                     estimated probability that the label is wrong
    decision:                 "certain", "deferred", "unreadable" or "skipped"; empty if no policy was applied and the
                              quality is good
    decided_by:               "quality", "windows", "urgency", "floor" or "policy"
    urgency:                  place of `urgent_class` among the urgent classes, from 1; None: none of them
    urgent_class:             the most urgent class of the recording or of one of its windows
    acquisition:              patient, time and device, if the caller asked for them
    measurements:             heart rate and RR irregularity; PR, QRS and QT, if the caller asked for them
    sha256, model_sha256:     of the recording's files and of the model's weights
    """

    id: str
    source: str
    label: str = ""
    probabilities: Probabilities = dataclasses.field(default_factory=dict)
    raw_probabilities: Probabilities = dataclasses.field(default_factory=dict)
    raw_member_probabilities: tuple[Probabilities, ...] = ()
    entropy: float | None = None
    mutual_information: float | None = None
    uncertainty: float | None = None
    distance: float | None = None
    risk: float | None = None
    windows: tuple[WindowResult, ...] = ()
    quality: Quality = NO_FINDINGS
    decision: str = ""
    reason: str = ""
    decided_by: str = ""
    urgency: int | None = None
    urgent_class: str = ""
    notices: tuple[str, ...] = ()
    seconds: float | None = None
    acquisition: Acquisition = NOTHING_KNOWN
    measurements: Measurements = NOT_MEASURED
    sha256: str = ""
    model_sha256: str = ""

    @property
    def probability(self) -> float | None:
        """Calibrated probability of the label."""
        return self.probabilities.get(self.label)

    @property
    def votes(self) -> tuple[str, ...]:
        """Most probable class of each member."""
        return tuple(max(probs, key=lambda name: probs[name]) for probs in self.raw_member_probabilities)

    @property
    def worst_window(self) -> WindowResult | None:
        """Of several windows, the one in which the urgent class is most probable; without one, of the highest risk."""
        if len(self.windows) < 2:
            return None
        urgent = [one for one in self.windows if one.label == self.urgent_class]
        if urgent:
            return max(urgent, key=lambda one: one.probability or 0.0)
        return max(self.windows, key=lambda one: one.risk or 0.0)

    @property
    def placement(self) -> str:
        """Why it is where it is in a worklist: decision, urgency, risk."""
        parts = [f"{self.decision} by {self.decided_by}" if self.decided_by else self.decision]
        if self.urgency is not None:
            parts.append(f"urgency {self.urgency} ({self.urgent_class})")
        if self.risk is not None:
            parts.append(f"risk {self.risk:.3f}")
        return ", ".join(filter(None, parts))

    def to_json(self) -> dict[str, Any]:
        """The result as plain JSON types; `from_json` is the exact inverse."""
        plain = dataclasses.asdict(self)
        findings = [one | {"severity": str(one["severity"])} for one in plain["quality"]["findings"]]
        lists = {name: list(plain[name]) for name in ("raw_member_probabilities", "windows", "notices")}
        return plain | lists | {"quality": str(self.quality.severity), "findings": findings}

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> Self:
        """The result that `to_json` has written."""
        values = dict(plain)
        if "acquisition" not in values:  # of an old version
            values["acquisition"] = {"patient_id": values.pop("patient"), "time": values.pop("acquired")}
        findings = tuple(
            Finding(**(one | {"severity": Severity[one["severity"].upper()]})) for one in values.pop("findings")
        )
        return cls(
            **values
            | {
                "quality": Quality(findings),
                "acquisition": Acquisition(**values["acquisition"]),
                "measurements": Measurements(**values.get("measurements", {})),
                "raw_member_probabilities": tuple(values["raw_member_probabilities"]),
                "windows": tuple(WindowResult(**one) for one in values["windows"]),
                "notices": tuple(values["notices"]),
            }
        )

    def to_csv_row(self) -> dict[str, Any]:
        """One line of a table, by `CSV_COLUMNS`; text that a spreadsheet would take for a formula is quoted."""
        row = {
            "id": self.id,
            "label": self.label,
            "decision": self.decision,
            "reason": self.reason,
            "decided_by": self.decided_by,
            "urgency": self.urgency,
            "placement": self.placement,
            "probability": self.probability,
            "uncertainty": self.uncertainty,
            "risk": self.risk,
            "probabilities": " ".join(f"{name}={share:g}" for name, share in self.probabilities.items()),
            "votes": "; ".join(self.votes),
            "quality": str(self.quality.severity),
            "findings": "; ".join(self.quality.reasons),
            "notices": "; ".join(self.notices),
            "seconds": self.seconds,
            "windows": len(self.windows),
            **{f"worst_window_{name}": getattr(self.worst_window, name, None) for name in _WORST},
            **dataclasses.asdict(self.measurements),
            **dataclasses.asdict(self.acquisition),
            "source": self.source,
            "sha256": self.sha256,
            "model_sha256": self.model_sha256,
        }
        return {name: _quote_formula(cell) for name, cell in row.items()}

    def with_decision(self, decision: str, reason: str = "", by: str = BY_POLICY) -> Self:
        """The same result with another decision."""
        return dataclasses.replace(self, decision=decision, reason=reason, decided_by=by)


def _quote_formula(cell: object) -> object:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell


CSV_COLUMNS = tuple(Result("", "").to_csv_row())
"""Columns of `worklist.csv`."""


def results_from(prediction: Prediction) -> list[Result]:
    """One result for each recording of a prediction: label, probabilities and scores, rounded as printed."""

    def by_class(probs: Array) -> dict[str, float]:
        return dict(zip(prediction.classes, round_printed(probs).tolist(), strict=True))

    probs, raw = prediction.probs, prediction.raw_probs
    names = ["entropy", "mutual_information", "uncertainty", "risk"]
    names += ["distance"] if prediction.distance is not None else []
    scores = {name: round_printed(getattr(prediction, name)).tolist() for name in names}
    return [
        Result(
            record,
            "",
            label,
            by_class(probs[i]),
            by_class(raw[i]),
            tuple(map(by_class, prediction.member_probs[i])),
            **{name: values[i] for name, values in scores.items()},
        )
        for i, (record, label) in enumerate(zip(prediction.ids, prediction.labels, strict=True))
    ]


def _window_results(
    windows: Prediction, recordings: Sequence[PreparedRecording], ensemble: "Ensemble", windowing: Windowing
) -> Iterator[tuple[WindowResult, ...]]:
    """The windows of each recording, of a prediction for all of them in order."""
    spec, n_window = ensemble.input, windowing.n_window(ensemble.input)
    labels, probability = windows.labels, round_printed(windows.probs.max(axis=1, initial=0.0)).tolist()
    answers = iter(zip(labels, probability, round_printed(windows.risk).tolist(), strict=True))
    for one in recordings:
        n_samples = one.signal.shape[1]
        length = round(min(n_samples, n_window) / spec.rate_hz, 3)
        starts = windowing.starts(n_samples, spec)
        yield tuple(WindowResult(round(start / spec.rate_hz, 3), length, *next(answers)) for start in starts)


def make_results(
    prediction: Prediction,
    windows: Prediction,
    recordings: Sequence[PreparedRecording],
    ensemble: "Ensemble",
    windowing: Windowing,
) -> list[Result]:
    """Combine what `predict_windows` returned with the prepared recordings; decided by quality alone."""
    results = []
    by_window = _window_results(windows, recordings, ensemble, windowing)
    for plain, one, own in zip(results_from(prediction), recordings, by_window, strict=True):
        several = f"mean of {len(own)} windows of {own[0].seconds:g} s"
        severity, reasons = one.quality.severity, one.quality.reasons
        decision = {Severity.USABLE: "", Severity.DOUBTFUL: DEFERRED, Severity.UNREADABLE: UNREADABLE}[severity]
        results.append(
            dataclasses.replace(
                plain,
                id=printable(one.id),
                source=str(one.path),
                windows=own,
                quality=one.quality,
                decision=decision,
                reason=reasons[0] if decision else "",
                decided_by=BY_QUALITY if decision else "",
                notices=(*((several,) if len(own) > 1 else ()), *one.notices),
                seconds=round(one.seconds, 3),
                acquisition=one.acquisition,
                measurements=one.measurements,
                sha256=one.sha256,
                model_sha256=str(ensemble.card.get("weights_sha256", "")),
            )
        )
    return results


def failed_result(failure: ReadFailure, model_sha256: str = "") -> Result:
    """The result for a recording that could not be read."""
    reason = printable(failure.reason)
    finding = Finding("not read", Severity.UNREADABLE, reason.removeprefix(f"{failure.source}: "))
    return Result(
        printable(PurePath(failure.source).stem),
        failure.source,
        quality=Quality((finding,)),
        decision=UNREADABLE,
        reason=reason,
        decided_by=BY_QUALITY,
        sha256=failure.sha256,
        model_sha256=model_sha256,
    )


def skipped_result(skipped: SkippedFile) -> Result:
    """The line of a worklist for a file that is no recording."""
    return Result(PurePath(skipped.source).name, skipped.source, decision=SKIPPED, reason=skipped.reason)
