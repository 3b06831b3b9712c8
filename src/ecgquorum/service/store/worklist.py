"""The worklist: open cases by decreasing risk, with audited recordings among them; then all others."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, and_, case, func, or_, select
from sqlalchemy.orm import Session

from ecgquorum.service.store.tables import RecordingRow, ResultRow, State

OPEN = "open"
SHOWN_STATES = (
    OPEN,
    State.WAITING,
    State.INCOMPLETE,
    State.CONFIRMED,
    State.AMENDED,
    State.CERTAIN,
    State.UNREADABLE,
)
_ORDER = {state: place for place, state in enumerate(SHOWN_STATES)}


@dataclass(frozen=True)
class WorklistFilter:
    """Which recordings to list.

    state:    one of `SHOWN_STATES`, or empty for all · quality: usable, doubtful or unreadable
    text:     part of the name or of the id · uploader: only uploads of this person
    """

    state: str = ""
    quality: str = ""
    text: str = ""
    uploader: str = ""


def query_worklist(
    session: Session, filter_: WorklistFilter, limit: int, offset: int = 0
) -> tuple[Sequence[tuple[RecordingRow, ResultRow | None]], int]:
    """Recordings with their results, in the order of the worklist, and their number in all."""
    query = _apply_filter(select(RecordingRow, ResultRow).outerjoin(ResultRow, _is_latest()), filter_)
    count = _apply_filter(select(func.count()).select_from(RecordingRow).outerjoin(ResultRow, _is_latest()), filter_)
    rank = case({str(state): place for state, place in _ORDER.items()}, value=_visible_state(), else_=len(_ORDER))
    ordered = query.order_by(
        rank,
        case((_is_open(), -RecordingRow.priority), else_=0.0),
        case((_is_open(), RecordingRow.uploaded_at), else_=""),
        RecordingRow.uploaded_at.desc(),
        RecordingRow.id,
    )
    rows = session.execute(ordered.limit(limit).offset(offset)).all()
    return [(row[0], row[1]) for row in rows], session.scalar(count) or 0


def count_states(session: Session, uploader: str = "") -> dict[str, int]:
    """Number of recordings in each visible state, of one uploader or of all."""
    by_state = select(RecordingRow.state, RecordingRow.audited, func.count()).group_by(
        RecordingRow.state, RecordingRow.audited
    )
    if uploader:
        by_state = by_state.where(RecordingRow.uploader == uploader)
    found = dict.fromkeys(map(str, SHOWN_STATES), 0)
    for state, audited, number in session.execute(by_state):
        is_open = state == State.DEFERRED or (state == State.CERTAIN and audited)
        shown = OPEN if is_open else state
        if shown in found:
            found[shown] += number
    return found


def next_open_case(session: Session, reader: str, at: str, besides: str) -> str | None:
    """Id of the first open case that no other reader has claimed."""
    free = or_(RecordingRow.reader.is_(None), RecordingRow.reader == reader, RecordingRow.reader_until < at)
    query = select(RecordingRow.id).where(_is_open(), free, RecordingRow.id != besides)
    ordered = query.order_by(-RecordingRow.priority, RecordingRow.uploaded_at, RecordingRow.id)
    return session.scalars(ordered.limit(1)).first()


def _is_open() -> ColumnElement[bool]:
    audited = and_(RecordingRow.state == State.CERTAIN, RecordingRow.audited.is_(True))
    return or_(RecordingRow.state == State.DEFERRED, audited)


def _visible_state() -> ColumnElement[str]:
    return case((_is_open(), OPEN), else_=RecordingRow.state)


def _is_latest() -> ColumnElement[bool]:
    """Join condition of a recording with its latest result."""
    newest = select(func.max(ResultRow.id)).where(ResultRow.recording_id == RecordingRow.id)
    return ResultRow.id == newest.correlate(RecordingRow).scalar_subquery()


def _apply_filter(query: Any, filter_: WorklistFilter) -> Any:
    query = query.where(RecordingRow.state != State.MERGED)
    if filter_.state:
        query = query.where(_visible_state() == filter_.state)
    if filter_.quality:
        query = query.where(ResultRow.quality == filter_.quality)
    if filter_.uploader:
        query = query.where(RecordingRow.uploader == filter_.uploader)
    if filter_.text:
        pattern = f"%{filter_.text.replace('!', '!!').replace('%', '!%').replace('_', '!_')}%"
        query = query.where(
            or_(RecordingRow.name.ilike(pattern, escape="!"), RecordingRow.id.ilike(pattern, escape="!"))
        )
    return query
