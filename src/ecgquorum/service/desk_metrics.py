"""Metrics of the desk: deferral rate, agreement with readers, accuracy on audited cases, drift of the uncertainty."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import median

from pydantic import BaseModel
from sqlalchemy import select
from sqlalchemy.orm import Session

from ecgquorum.ensemble.result import DEFERRED, UNREADABLE
from ecgquorum.service.desk import Desk
from ecgquorum.service.store import worklist
from ecgquorum.service.store.reviews import FINAL, FIRST
from ecgquorum.service.store.tables import CLOSED, RecordingRow, ResultRow, State, VerdictRow
from ecgquorum.service.views import seconds_between
from ecgquorum.triage import Budget, Policy, Threshold

_STEPS_S = (60, 300, 900, 3600, 6 * 3600, 86400, 7 * 86400, 30 * 86400)
_MAX_STEPS = 30
_BINS = 20
_Z = 1.959963984540054


class Proportion(BaseModel):
    """A proportion `count / total` with its 95 % Wilson interval."""

    count: int
    total: int
    value: float | None
    low: float | None
    high: float | None


class TimeStep(BaseModel):
    """Counts of one time step."""

    at: str
    uploaded: int
    answered: int
    deferred: int
    reviewed: int


class Drift(BaseModel):
    """Uncertainty of recordings at the desk compared with training.

    The uncertainty is normalised to the range from 0 to 1 on the training part; here it may exceed 1.

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


@dataclass(frozen=True)
class _ClosedCase:
    """First and final verdict of a closed case, and the ensemble's label."""

    first: str
    final: str
    label: str
    audited: bool


def proportion(count: int, total: int) -> Proportion:
    """count / total with Wilson's interval: (p + z²/2n ± z √(p(1-p)/n + z²/4n²)) / (1 + z²/n)."""
    if total == 0:
        return Proportion(count=0, total=0, value=None, low=None, high=None)
    p, n, square = count / total, total, _Z * _Z
    middle = (p + square / (2 * n)) / (1 + square / n)
    half = _Z * math.sqrt(p * (1 - p) / n + square / (4 * n * n)) / (1 + square / n)
    return Proportion(count=count, total=total, value=p, low=max(0.0, middle - half), high=min(1.0, middle + half))


def compute_metrics(session: Session, desk: Desk) -> DeskMetrics:
    """Compute all metrics of the current model."""
    rows = session.execute(
        select(RecordingRow, ResultRow)
        .join(ResultRow, ResultRow.recording_id == RecordingRow.id)
        .where(ResultRow.model_sha256 == desk.model_sha256)
    ).all()
    results = [result for _, result in rows if result.decision != UNREADABLE]
    reviewed = _closed_cases(session, desk.model_sha256)
    uploaded = session.scalars(select(RecordingRow.uploaded_at).where(RecordingRow.state != State.MERGED)).all()
    closed = [row.closed_at for row, _ in rows if row.closed_at]
    step_s, steps = _time_steps(uploaded, results, closed)
    answer_s = [seconds_between(row.completed_at, result.at) for row, result in rows if row.completed_at]
    review_s = [seconds_between(result.at, row.closed_at) for row, result in rows if row.closed_at]
    differed = [one for one in reviewed if one.first != one.label]
    audited = [one for one in reviewed if one.audited]
    return DeskMetrics(
        model=desk.model_name,
        policy=desk.policy.sentence(),
        counts=worklist.count_states(session),
        deferral=proportion(sum(one.decision == DEFERRED for one in results), len(results)),
        agreement={name: _agreement([one for one in reviewed if one.label == name]) for name in desk.classes},
        confusion=_confusion(reviewed, desk.classes),
        audit=proportion(sum(one.final == one.label for one in audited), len(audited)),
        swayed=proportion(sum(one.final == one.label for one in differed), len(differed)),
        drift=measure_drift(results, desk.policy),
        step_s=step_s,
        steps=steps,
        answer_s=median(answer_s) if answer_s else None,
        review_s=median(review_s) if review_s else None,
    )


def _closed_cases(session: Session, model_sha256: str) -> list[_ClosedCase]:
    verdicts: dict[str, dict[str, dict[str, str]]] = {}
    for verdict in session.scalars(select(VerdictRow).order_by(VerdictRow.id)):
        verdicts.setdefault(verdict.recording_id, {}).setdefault(verdict.reader, {})[verdict.stage] = verdict.label
    rows = session.execute(
        select(RecordingRow.id, RecordingRow.audited, ResultRow.label)
        .join(ResultRow, ResultRow.recording_id == RecordingRow.id)
        .where(RecordingRow.state.in_(CLOSED), ResultRow.model_sha256 == model_sha256)
    )
    return [
        _ClosedCase(stages.get(FIRST, stages[FINAL]), stages[FINAL], label, audited)
        for recording_id, audited, label in rows
        for stages in verdicts.get(recording_id, {}).values()
        if FINAL in stages
    ]


def _agreement(reviewed: Sequence[_ClosedCase]) -> Proportion:
    return proportion(sum(one.final == one.label for one in reviewed), len(reviewed))


def _confusion(reviewed: Iterable[_ClosedCase], classes: Sequence[str]) -> dict[str, dict[str, int]]:
    counts = Counter((one.final, one.label) for one in reviewed)
    return {final: {label: counts[final, label] for label in classes} for final in classes}


def measure_drift(results: Sequence[ResultRow], policy: Policy) -> Drift:
    """Compare the uncertainty of results with training, and the policy's score with the budget it was fitted to."""
    uncertainties = [one.uncertainty for one in results if one.uncertainty is not None]
    top = max([1.0, *uncertainties])
    edges = [top * i / _BINS for i in range(_BINS + 1)]
    bins = [0] * _BINS
    for value in uncertainties:
        bins[min(_BINS - 1, max(0, int(value / top * _BINS)))] += 1
    threshold = policy.threshold if isinstance(policy, Budget | Threshold) else None
    expected = policy.share if isinstance(policy, Budget) else None
    above = None
    scores = [found for one in results if (found := _stored_score(one, policy.score)) is not None]
    if threshold is not None and scores:
        above = proportion(sum(value > threshold for value in scores), len(scores))
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


def _stored_score(result: ResultRow, name: str) -> float | None:
    """A score of a stored result; None if it is not stored and the probabilities do not tell it."""
    if name == "confidence" and result.document.get("probabilities"):
        return 1.0 - float(max(result.document["probabilities"].values()))
    found = result.document.get(name)
    return None if found is None else float(found)


def _time_steps(
    uploaded: Sequence[str], results: Sequence[ResultRow], closed: Sequence[str]
) -> tuple[int, list[TimeStep]]:
    """Length of a time step in seconds, and the counts of at most `_MAX_STEPS` time steps."""
    moments = [*uploaded, *(one.at for one in results), *closed]
    if not moments:
        return _STEPS_S[0], []
    first, last = (datetime.fromisoformat(at).timestamp() for at in (min(moments), max(moments)))
    step_s = next((s for s in _STEPS_S if last // s - first // s < _MAX_STEPS), _STEPS_S[-1])
    counts = [
        Counter(int(datetime.fromisoformat(at).timestamp() // step_s) for at in times)
        for times in (
            uploaded,
            [one.at for one in results],
            [one.at for one in results if one.decision == DEFERRED],
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
