"""The worklist: open cases by decreasing risk, with audited recordings among them; then all others."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import ColumnElement, and_, case, func, literal, or_, select
from sqlalchemy.orm import Session

from ecgquorum.service.store.tables import RecordingRow, ResultRow, SenderRow, State, VerdictRow

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


_SORTS: dict[str, tuple[tuple[str, bool], ...]] = {
    "": (("urgent", True), ("priority", True), ("uploaded_at", False), ("id", False)),
    "newest": (("uploaded_at", True), ("id", False)),
    "oldest": (("uploaded_at", False), ("id", False)),
    "name": (("name", False), ("id", False)),
}
"""Columns of each order, and whether they fall; the first is that of open cases."""
SORTS = tuple(_SORTS)


@dataclass(frozen=True)
class WorklistFilter:
    """Which recordings to list, and in which order.

    state:    one of `SHOWN_STATES`, or empty for all · quality: usable, doubtful or unreadable
    text:     part of the name or of the id · label: class of the last verdict, or of the ensemble; not of open cases
    uploader: whose uploads · since, until: days of the upload, such as 2026-01-31
    urgent:   only urgent ones · mine: only those assigned to, claimed or read by this reader
    sort:     one of `SORTS`; empty: open cases by urgency and risk, then the newest
    """

    state: str = ""
    quality: str = ""
    text: str = ""
    uploader: str = ""
    label: str = ""
    since: str = ""
    until: str = ""
    urgent: bool = False
    mine: str = ""
    sort: str = ""


def query_worklist(
    session: Session, filter_: WorklistFilter, limit: int, offset: int = 0, ids: Sequence[str] | None = None
) -> tuple[Sequence[tuple[RecordingRow, ResultRow | None]], int]:
    """Recordings with their results, in the order of the worklist, and their number in all; `ids`: only among these."""
    chosen = _apply_filter(_join_results(select(RecordingRow.id), filter_), filter_)
    count = _apply_filter(_join_results(select(func.count()).select_from(RecordingRow), filter_), filter_)
    if ids is not None:
        chosen, count = (one.where(RecordingRow.id.in_(ids)) for one in (chosen, count))
    places = session.scalars(chosen.order_by(*_order(filter_)).limit(limit).offset(offset)).all()
    whole = select(RecordingRow, ResultRow).outerjoin(ResultRow, is_latest_result()).where(RecordingRow.id.in_(places))
    rows = {row.id: (row, result) for row, result in session.execute(whole)}
    return [rows[place] for place in places], session.scalar(count) or 0


def _join_results(query: Any, filter_: WorklistFilter) -> Any:
    """Join the latest results only where the filter reads them: it takes most of the time of a long list."""
    return query.outerjoin(ResultRow, is_latest_result()) if filter_.quality or filter_.label else query


def _order(filter_: WorklistFilter) -> list[Any]:
    if filter_.sort:
        return _sort_columns(filter_.sort)
    rank = case({str(state): place for state, place in _ORDER.items()}, value=_visible_state(), else_=len(_ORDER))
    first = [case((is_open_case(), column), else_=None) for column in (RecordingRow.urgent, RecordingRow.priority)]
    return [
        rank,
        *(column.desc().nulls_last() for column in first),
        case((is_open_case(), RecordingRow.uploaded_at), else_=""),
        RecordingRow.uploaded_at.desc(),
        RecordingRow.id,
    ]


def _sort_columns(sort: str) -> list[Any]:
    columns = ((getattr(RecordingRow, name), falls) for name, falls in _SORTS[sort])
    return [column.desc() if falls else column for column, falls in columns]


def adjacent_case(
    session: Session, row: RecordingRow, filter_: WorklistFilter, reader: str, at: str, *, back: bool = False
) -> str | None:
    """Id of the case after this one, or before it, in the chosen filter and order; at the end it begins again.

    Of all states or of open cases it is an open one that the reader may read: not claimed by another reader, and not
    yet read by this one.
    """
    filter_ = replace(filter_, state=filter_.state or OPEN)
    sort = filter_.sort or ("" if filter_.state == OPEN else "newest")
    query = _apply_filter(_join_results(select(RecordingRow.id), filter_), filter_)
    query = query.where(RecordingRow.id != row.id)
    if filter_.state == OPEN:
        query = query.where(_is_free_for(reader, at))
    keys = [
        (column := getattr(RecordingRow, name), literal(getattr(row, name), column.type), falls != back)
        for name, falls in _SORTS[sort]
    ]
    ordered = query.order_by(*(column.desc() if falls else column for column, _, falls in keys)).limit(1)
    beyond = or_(
        *(
            and_(*(column == value for column, value, _ in keys[:place]), (keyed < last) if falls else (keyed > last))
            for place, (keyed, last, falls) in enumerate(keys)
        )
    )
    found: str | None = session.scalars(ordered.where(beyond)).first() or session.scalars(ordered).first()
    return found


def _is_free_for(reader: str, at: str) -> ColumnElement[bool]:
    """Whether no other reader has claimed the case, and this one has not finished it."""
    free = or_(RecordingRow.reader.is_(None), RecordingRow.reader == reader, RecordingRow.reader_until < at)
    finished = select(VerdictRow.id).where(
        VerdictRow.recording_id == RecordingRow.id,
        VerdictRow.reader == reader,
        VerdictRow.stage == "final",
        VerdictRow.round == RecordingRow.round,
    )
    return and_(free, ~finished.correlate(RecordingRow).exists())


def count_states(session: Session, uploader: str = "") -> dict[str, int]:
    """Number of recordings in each visible state, of one uploader or of all."""
    by_state = select(RecordingRow.state, RecordingRow.audited, func.count()).group_by(
        RecordingRow.state, RecordingRow.audited
    )
    if uploader:
        by_state = by_state.where(is_sent_by(uploader))
    found = dict.fromkeys(map(str, SHOWN_STATES), 0)
    for state, audited, number in session.execute(by_state):
        is_open = state == State.DEFERRED or (state == State.CERTAIN and audited)
        shown = OPEN if is_open else state
        if shown in found:
            found[shown] += number
    return found


def is_open_case() -> ColumnElement[bool]:
    """Condition of a case that waits for review."""
    audited = and_(RecordingRow.state == State.CERTAIN, RecordingRow.audited.is_(True))
    return or_(RecordingRow.state == State.DEFERRED, audited)


def is_blind_case() -> ColumnElement[bool]:
    """Condition of a case whose result is hidden: open, or waiting to be classified again."""
    return or_(is_open_case(), RecordingRow.state == State.WAITING)


def _visible_state() -> ColumnElement[str]:
    return case((is_open_case(), OPEN), else_=RecordingRow.state)


def is_latest_result() -> ColumnElement[bool]:
    """Join condition of a recording with its latest result."""
    newest = select(func.max(ResultRow.id)).where(ResultRow.recording_id == RecordingRow.id)
    return ResultRow.id == newest.correlate(RecordingRow).scalar_subquery()


def is_sent_by(uploader: str) -> ColumnElement[bool]:
    """Whether this person uploaded the recording, first or again."""
    again = select(SenderRow.uploader).where(SenderRow.recording_id == RecordingRow.id, SenderRow.uploader == uploader)
    return or_(RecordingRow.uploader == uploader, again.correlate(RecordingRow).exists())


def _last_label() -> Any:
    """The label of a recording's last final verdict."""
    last = select(VerdictRow.label).where(
        VerdictRow.recording_id == RecordingRow.id, VerdictRow.stage == "final", VerdictRow.round == RecordingRow.round
    )
    return last.order_by(VerdictRow.id.desc()).limit(1).correlate(RecordingRow).scalar_subquery()


def _concerns(reader: str) -> ColumnElement[bool]:
    """Whether the recording is assigned to, claimed or read by this reader."""
    read = select(VerdictRow.id).where(VerdictRow.recording_id == RecordingRow.id, VerdictRow.reader == reader)
    return or_(RecordingRow.assigned_to == reader, RecordingRow.reader == reader, read.correlate(RecordingRow).exists())


def _apply_filter(query: Any, filter_: WorklistFilter) -> Any:
    query = query.where(RecordingRow.state != State.MERGED)
    if filter_.state:
        query = query.where(_visible_state() == filter_.state)
    if filter_.quality:
        query = query.where(ResultRow.quality == filter_.quality)
    if filter_.uploader:
        query = query.where(is_sent_by(filter_.uploader))
    if filter_.label:
        query = query.where(~is_blind_case(), func.coalesce(_last_label(), ResultRow.label) == filter_.label)
    if filter_.since:
        query = query.where(RecordingRow.uploaded_at >= filter_.since)
    if filter_.until:
        query = query.where(func.substr(RecordingRow.uploaded_at, 1, len("2026-01-31")) <= filter_.until)
    if filter_.urgent:
        query = query.where(RecordingRow.urgent.is_(True))
    if filter_.mine:
        query = query.where(_concerns(filter_.mine))
    if filter_.text:
        pattern = f"%{filter_.text.replace('!', '!!').replace('%', '!%').replace('_', '!_')}%"
        query = query.where(
            or_(RecordingRow.name.ilike(pattern, escape="!"), RecordingRow.id.ilike(pattern, escape="!"))
        )
    return query
