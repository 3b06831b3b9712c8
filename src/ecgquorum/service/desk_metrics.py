"""Metrics of the desk: deferral rate, agreement with readers, accuracy on audited cases, drift of the uncertainty."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel
from sqlalchemy import false, select
from sqlalchemy.orm import Session

from ecgquorum.ensemble.result import DEFERRED, UNREADABLE
from ecgquorum.service.desk import Desk
from ecgquorum.service.proportions import Proportion, proportion
from ecgquorum.service.reader_metrics import Readers, measure_readers
from ecgquorum.service.store import worklist
from ecgquorum.service.store.reviews import FINAL, FIRST
from ecgquorum.service.store.tables import CLOSED, RecordingRow, ResultRow, State, VerdictRow
from ecgquorum.triage import Budget, Policy, Threshold

_STEPS_S = (60, 300, 900, 3600, 6 * 3600, 86400, 7 * 86400, 30 * 86400)
_MAX_STEPS = 30
_BINS = 20
_GROUP = 20
_COUNTED = "open cases in the drift"


class TimeStep(BaseModel):
    """Counts of one time step."""

    at: str
    uploaded: int
    answered: int
    deferred: int
    reviewed: int


class Drift(BaseModel):
    """Uncertainty of recordings at the desk compared with training.

    The uncertainty is normalised to the range from 0 to 1 on the training part; here it may exceed 1. Open cases are
    added in groups of at least 20, so that nobody can see the uncertainty of a single one.

    bins:     numbers of recordings with an uncertainty from `edges[i]` to `edges[i + 1]`
    outside:  proportion outside of the training range
    above:    proportion above the policy's threshold, by the policy's score; None if results do not have it, such as
              `pairwise_kl` and `variation_ratio`; `expected_above`: the budget that it was fitted to
    moved:    whether the expected proportion is outside of the 95 % interval of `above`
    """

    edges: list[float]
    bins: list[int]
    threshold: float | None
    """Of the policy, if its score is the uncertainty."""
    outside: Proportion
    above: Proportion | None
    expected_above: float | None
    moved: bool | None


class DeskMetrics(BaseModel):
    """All metrics.

    deferral:   proportion of deferred recordings; an open case that was drawn counts as deferred until it is closed
    agreement:  by the ensemble's class, how often the final verdict was the same
    confusion:  final verdict -> the ensemble's class -> how many
    audit:      accuracy on certain recordings that were drawn for review
    swayed:     of first verdicts that differed from the ensemble's label, how many were changed to it
    """

    model: str
    policy: str
    counts: dict[str, int]
    deferral: Proportion
    agreement: dict[str, Proportion]
    confusion: dict[str, dict[str, int]]
    audit: Proportion
    swayed: Proportion
    drift: Drift
    step_s: int
    steps: list[TimeStep]
    answer_s: float | None
    review_s: float | None
    readers: Readers


@dataclass(frozen=True)
class _Classified:
    """The columns of a result, and of its recording, that metrics need."""

    at: str
    label: str
    decision: str
    uncertainty: float | None
    score: float | None
    completed_at: str | None
    closed_at: str | None
    recording_id: str
    is_blind: bool

    @property
    def was_deferred(self) -> bool:
        """Whether it was deferred; an open case counts as deferred, since nobody may see that it was drawn instead."""
        return self.is_blind or self.decision == DEFERRED


@dataclass(frozen=True)
class _Review:
    """First and final verdict of a reader on a closed case, and the ensemble's label.

    closes: whether it is the verdict that closed the case
    """

    first: str
    final: str
    label: str
    audited: bool
    closes: bool


def compute_metrics(session: Session, desk: Desk) -> DeskMetrics:
    """Compute all metrics of the current model."""
    rows = _read_results(session, desk)
    results = [one for one in rows if one.decision != UNREADABLE]
    shown = _choose_for_drift(desk, results)
    reviewed = _reviews(session, desk.model_sha256)
    uploaded = session.scalars(select(RecordingRow.uploaded_at).where(RecordingRow.state != State.MERGED)).all()
    closed = [one.closed_at for one in rows if one.closed_at]
    step_s, steps = _time_steps(uploaded, results, closed)
    answer_s = _median_between([(one.completed_at, one.at) for one in rows if one.completed_at])
    review_s = _median_between([(one.at, one.closed_at) for one in rows if one.closed_at])
    differed = [one for one in reviewed if one.first != one.label]
    closing = [one for one in reviewed if one.closes]
    return DeskMetrics(
        model=desk.model_name,
        policy=desk.policy.sentence(),
        counts=worklist.count_states(session),
        deferral=proportion(sum(one.was_deferred for one in results), len(results)),
        agreement={name: _agreement([one for one in closing if one.label == name]) for name in desk.classes},
        confusion=_confusion(closing, desk.classes),
        audit=_agreement([one for one in closing if one.audited]),
        swayed=_agreement(differed),
        drift=measure_drift([one.uncertainty for one in shown], [one.score for one in shown], desk.policy),
        step_s=step_s,
        steps=steps,
        answer_s=answer_s,
        review_s=review_s,
        readers=measure_readers(session, desk.classes),
    )


def _choose_for_drift(desk: Desk, results: Sequence[_Classified]) -> list[_Classified]:
    """The results whose uncertainty is counted. Open cases are added in groups, so that no single one can be seen."""
    blind = {one.recording_id for one in results if one.is_blind}
    counted: set[str] = desk.computed.get(_COUNTED, set()) & blind
    if len(blind - counted) >= _GROUP:
        counted = blind
    desk.computed[_COUNTED] = counted
    return [one for one in results if not one.is_blind or one.recording_id in counted]


def _timestamps(times: Sequence[str]) -> NDArray[np.float64]:
    """Stored times in seconds since 1970."""
    return np.array([at[:-1] for at in times], dtype="datetime64[us]").astype(np.int64) / 1e6


def _median_between(pairs: Sequence[tuple[str, str]]) -> float | None:
    if not pairs:
        return None
    earlier, later = zip(*pairs, strict=True)
    return float(np.median(_timestamps(later) - _timestamps(earlier)))


def _read_results(session: Session, desk: Desk) -> list[_Classified]:
    """All results of the current model. Whole results are read only for a policy whose score has no column."""
    score: Any = {
        "uncertainty": ResultRow.uncertainty,
        "risk": ResultRow.risk,
        "confidence": 1.0 - ResultRow.probability,
    }.get(desk.policy.score, ResultRow.document)
    query = select(
        ResultRow.at,
        ResultRow.label,
        ResultRow.decision,
        ResultRow.uncertainty,
        score,
        RecordingRow.completed_at,
        RecordingRow.closed_at,
        RecordingRow.id,
        worklist.is_blind_case() if desk.settings.blind_first else false(),
    )
    joined = query.join(RecordingRow, ResultRow.recording_id == RecordingRow.id)
    rows = session.execute(joined.where(ResultRow.model_sha256 == desk.model_sha256))
    found = [_Classified(*row) for row in rows]
    if score is not ResultRow.document:
        return found
    return [replace(one, score=cast(dict[str, Any], one.score).get(desk.policy.score)) for one in found]


def _reviews(session: Session, model_sha256: str) -> list[_Review]:
    verdicts: dict[str, dict[str, dict[str, str]]] = {}
    last_reader: dict[str, str] = {}
    columns = VerdictRow.recording_id, VerdictRow.reader, VerdictRow.stage, VerdictRow.label
    current = select(*columns).join(RecordingRow, RecordingRow.id == VerdictRow.recording_id)
    for recording_id, reader, stage, label in session.execute(
        current.where(VerdictRow.round == RecordingRow.round).order_by(VerdictRow.id)
    ):
        verdicts.setdefault(recording_id, {}).setdefault(reader, {})[stage] = label
        if stage == FINAL:
            last_reader[recording_id] = reader
    rows = session.execute(
        select(RecordingRow.id, RecordingRow.audited, ResultRow.label)
        .join(ResultRow, ResultRow.recording_id == RecordingRow.id)
        .where(RecordingRow.state.in_(CLOSED), ResultRow.model_sha256 == model_sha256)
    )
    return [
        _Review(stages.get(FIRST, stages[FINAL]), stages[FINAL], label, audited, reader == last_reader[recording_id])
        for recording_id, audited, label in rows
        for reader, stages in verdicts.get(recording_id, {}).items()
        if FINAL in stages
    ]


def _agreement(reviewed: Sequence[_Review]) -> Proportion:
    return proportion(sum(one.final == one.label for one in reviewed), len(reviewed))


def _confusion(reviewed: Iterable[_Review], classes: Sequence[str]) -> dict[str, dict[str, int]]:
    """Counts by final verdict and the ensemble's class; verdicts that are not one class are rows at the end."""
    counts = Counter((one.final, one.label) for one in reviewed)
    others = sorted({final for final, _ in counts} - {*classes})
    return {final: {label: counts[final, label] for label in classes} for final in (*classes, *others)}


def measure_drift(known: Sequence[float | None], scores: Sequence[float | None], policy: Policy) -> Drift:
    """Compare the uncertainty of results with training, and the policy's score with the budget it was fitted to."""
    uncertainties = [value for value in known if value is not None]
    top = max([1.0, *uncertainties])
    edges = [top * i / _BINS for i in range(_BINS + 1)]
    bins = [0] * _BINS
    for value in uncertainties:
        bins[min(_BINS - 1, max(0, int(value / top * _BINS)))] += 1
    threshold = policy.threshold if isinstance(policy, Budget | Threshold) else None
    expected = policy.share if isinstance(policy, Budget) else None
    above = None
    stored = [value for value in scores if value is not None]
    if threshold is not None and stored:
        above = proportion(sum(value > threshold for value in stored), len(stored))
    moved = None
    if above and above.low is not None and above.high is not None and expected is not None:
        moved = not above.low <= expected <= above.high
    return Drift(
        edges=edges,
        bins=bins,
        threshold=threshold if policy.score == "uncertainty" else None,
        outside=proportion(sum(not 0 <= value <= 1 for value in uncertainties), len(uncertainties)),
        above=above,
        expected_above=expected,
        moved=moved,
    )


def _time_steps(
    uploaded: Sequence[str], results: Sequence[_Classified], closed: Sequence[str]
) -> tuple[int, list[TimeStep]]:
    """Length of a time step in seconds, and the counts of at most `_MAX_STEPS` time steps."""
    moments = [*uploaded, *(one.at for one in results), *closed]
    if not moments:
        return _STEPS_S[0], []
    first, last = _timestamps([min(moments), max(moments)]).tolist()
    step_s = next((s for s in _STEPS_S if last // s - first // s < _MAX_STEPS), _STEPS_S[-1])
    counts = [
        Counter((_timestamps(times) // step_s).astype(int).tolist())
        for times in (
            uploaded,
            [one.at for one in results],
            [one.at for one in results if one.was_deferred],
            closed,
        )
    ]
    numbers = range(int(first // step_s), int(last // step_s) + 1)
    return step_s, [
        TimeStep(
            at=datetime.fromtimestamp(number * step_s, UTC).isoformat(),
            uploaded=counts[0][number],
            answered=counts[1][number],
            deferred=counts[2][number],
            reviewed=counts[3][number],
        )
        for number in numbers[-_MAX_STEPS:]
    ]
