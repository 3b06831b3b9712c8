"""What triage says of recordings that were read: a line for each."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ecgquorum.ensemble import Ensemble, Prediction
from ecgquorum.ensemble.prediction import DECIMALS, round_printed
from ecgquorum.preprocessing.quality import Severity
from ecgquorum.recordings.discovery import ReadFailure, printable
from ecgquorum.recordings.sandbox import Outcome, PreparedRecording
from ecgquorum.triage.journal import Row
from ecgquorum.triage.policies import Policy

CERTAIN, DEFERRED, UNREADABLE = "certain", "deferred", "unreadable"
_GROUP, _GROUP_SAMPLES = 32, 20_000_000


def grouped(outcomes: Iterator[Outcome]) -> Iterator[list[Outcome]]:
    """Recordings that are answered together: so many, or fewer where they are long."""
    group: list[Outcome] = []
    n_samples = 0
    for one in outcomes:
        group.append(one)
        n_samples += one.signal.size if isinstance(one, PreparedRecording) else 0
        if len(group) == _GROUP or n_samples >= _GROUP_SAMPLES:
            yield group
            group, n_samples = [], 0
    if group:
        yield group


def answered(ensemble: Ensemble, policy: Policy | None, group: Sequence[Outcome]) -> list[Row]:
    """A line for each recording of the group: what the ensemble says, and whether a person is to read it."""
    fitted = [one for one in group if isinstance(one, PreparedRecording)]
    prediction = ensemble.predict_prepared([one.id for one in fitted], [one.signal for one in fitted])
    reasons = [""] * len(fitted)
    if policy:
        reasons = [policy.reason(prediction, i) if d else "" for i, d in enumerate(policy.deferred(prediction))]
    model = ensemble.card.get("weights_sha256", "")
    rows = iter([_row(one, prediction, i, reasons[i], model) for i, one in enumerate(fitted)])
    return [next(rows) if isinstance(one, PreparedRecording) else _unread_row(one, model) for one in group]


def _row(one: PreparedRecording, prediction: Prediction, place: int, doubt: str, model: str) -> Row:
    """doubt: why the policy defers it, if it does"""
    label = int(prediction.label_index[place])
    severity = one.quality.severity
    if severity is Severity.UNREADABLE:
        decision, reason = UNREADABLE, one.quality.reasons[0]
    elif severity is Severity.DOUBTFUL:
        decision, reason = DEFERRED, one.quality.reasons[0]
    else:
        decision, reason = DEFERRED if doubt else CERTAIN, doubt
    votes = round_printed(prediction.member_probs[place]).argmax(axis=1)
    return {
        "id": printable(one.id),
        "source": str(one.place),
        "stamp": one.place.stamp,
        "class": prediction.classes[label],
        "decision": decision,
        "reason": reason,
        "uncertainty": round(float(prediction.uncertainty[place]), DECIMALS),
        "probability": round(float(prediction.raw_probs[place, label]), DECIMALS),
        "calibrated_probability": round(float(prediction.probs[place, label]), DECIMALS),
        "probabilities": _by_class(prediction, prediction.raw_probs[place]),
        "member_probabilities": [_by_class(prediction, probs) for probs in prediction.member_probs[place]],
        "votes": [prediction.classes[vote] for vote in votes],
        "quality": str(severity),
        "quality_reasons": list(one.quality.reasons),
        "seconds": round(one.seconds, 3),
        "sha256": one.sha256,
        "model_sha256": model,
        "trace": one.trace,
        "trace_s": round(one.trace_s, 4),
    }


def _by_class(prediction: Prediction, probs: Any) -> dict[str, float]:
    return {name: round(float(p), DECIMALS) for name, p in zip(prediction.classes, probs, strict=True)}


def _unread_row(one: ReadFailure, model: str) -> Row:
    return {
        "id": printable(Path(one.place.name).stem),
        "source": str(one.place),
        "stamp": one.place.stamp,
        "class": "",
        "decision": UNREADABLE,
        "reason": printable(one.reason),
        "uncertainty": None,
        "probability": None,
        "calibrated_probability": None,
        "probabilities": {},
        "member_probabilities": [],
        "votes": [],
        "quality": str(Severity.UNREADABLE),
        "quality_reasons": [],
        "seconds": None,
        "sha256": one.sha256,
        "model_sha256": model,
        "trace": [],
        "trace_s": 0.0,
    }
