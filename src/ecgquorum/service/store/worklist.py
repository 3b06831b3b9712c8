"""The worklist: what people are to read, the most uncertain first, audited recordings among them; then all the rest."""

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
class Filter:
    """Which recordings to list.

    state:    one of `SHOWN_STATES`, or all of them · quality: usable, doubtful or unreadable
    text:     a part of the name or of the id · uploader: whose alone
    """

    state: str = ""
    quality: str = ""
    text: str = ""
    uploader: str = ""


def listed(
    session: Session, wanted: Filter, limit: int, offset: int = 0
) -> tuple[Sequence[tuple[RecordingRow, ResultRow | None]], int]:
    """Recordings with their answers, in the order of the worklist, and how many there are in all."""
    query = _filtered(select(RecordingRow, ResultRow).outerjoin(ResultRow, _latest()), wanted)
    count = _filtered(select(func.count()).select_from(RecordingRow).outerjoin(ResultRow, _latest()), wanted)
    rank = case({str(state): place for state, place in _ORDER.items()}, value=_shown(), else_=len(_ORDER))
    ordered = query.order_by(
        rank,
        case((_is_open(), -RecordingRow.priority), else_=0.0),
        case((_is_open(), RecordingRow.uploaded_at), else_=""),
        RecordingRow.uploaded_at.desc(),
        RecordingRow.id,
    )
    rows = session.execute(ordered.limit(limit).offset(offset)).all()
    return [(row[0], row[1]) for row in rows], session.scalar(count) or 0


def counts(session: Session, uploader: str = "") -> dict[str, int]:
    """How many recordings are in each state that people see; of one uploader, or of all."""
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


def next_open(session: Session, reader: str, at: str, besides: str) -> str | None:
    """The id of the first open case that nobody else holds."""
    free = or_(RecordingRow.reader.is_(None), RecordingRow.reader == reader, RecordingRow.reader_until < at)
    query = select(RecordingRow.id).where(_is_open(), free, RecordingRow.id != besides)
    ordered = query.order_by(-RecordingRow.priority, RecordingRow.uploaded_at, RecordingRow.id)
    return session.scalars(ordered.limit(1)).first()


def _is_open() -> ColumnElement[bool]:
    audited = and_(RecordingRow.state == State.CERTAIN, RecordingRow.audited.is_(True))
    return or_(RecordingRow.state == State.DEFERRED, audited)


def _shown() -> ColumnElement[str]:
    return case((_is_open(), OPEN), else_=RecordingRow.state)


def _latest() -> ColumnElement[bool]:
    """The join of a recording with the newest of its answers."""
    newest = select(func.max(ResultRow.id)).where(ResultRow.recording_id == RecordingRow.id)
    return ResultRow.id == newest.correlate(RecordingRow).scalar_subquery()


def _filtered(query: Any, wanted: Filter) -> Any:
    query = query.where(RecordingRow.state != State.MERGED)
    if wanted.state:
        query = query.where(_shown() == wanted.state)
    if wanted.quality:
        query = query.where(ResultRow.quality == wanted.quality)
    if wanted.uploader:
        query = query.where(RecordingRow.uploader == wanted.uploader)
    if wanted.text:
        pattern = f"%{wanted.text.replace('!', '!!').replace('%', '!%').replace('_', '!_')}%"
        query = query.where(
            or_(RecordingRow.name.ilike(pattern, escape="!"), RecordingRow.id.ilike(pattern, escape="!"))
        )
    return query
