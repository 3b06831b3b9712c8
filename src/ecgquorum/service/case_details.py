"""What stands below the paper of a case: measurements, windows of a long recording, earlier recordings."""

import threading
from collections.abc import Sequence
from dataclasses import asdict
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

from pydantic import BaseModel
from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session

from ecgquorum.errors import FittingError
from ecgquorum.preprocessing.input_spec import select_leads
from ecgquorum.preprocessing.measurements import Measurements, measure_recording
from ecgquorum.service.desk import Desk
from ecgquorum.service.store import reviews
from ecgquorum.service.store.recordings import find_recording
from ecgquorum.service.store.tables import CLOSED, RecordingRow, State, VerdictRow

_CACHE_SIZE, _MAX_EARLIER = 256, 20
_lock = threading.Lock()


class MeasuredCase(BaseModel):
    """Measurements of a recording; None where it could not be measured. They do not depend on the ensemble.

    rr_irregularity: RMSSD of the RR intervals divided by their mean
    note:            why PR, QRS and QT are missing, if the desk cannot measure them
    """

    heart_rate_bpm: float | None
    rr_irregularity: float | None
    n_beats: int | None
    pr_ms: float | None
    qrs_ms: float | None
    qt_ms: float | None
    qtc_bazett_ms: float | None
    qtc_fridericia_ms: float | None
    note: str


class Window(BaseModel):
    """One window of a long recording as the ensemble classified it; calibrated probability."""

    start_s: float
    seconds: float
    label: str
    probability: float | None
    risk: float | None


class Windows(BaseModel):
    """All windows in order, and the place of the one to look at first."""

    windows: list[Window]
    worst: int | None
    urgent_class: str


class EarlierRecording(BaseModel):
    """An earlier recording of the same patient, by the patient's number in the files.

    at:    when it was recorded, or uploaded if the file does not say · recorded: whether the file says
    label: the readers' final answer, if the case is closed; never the ensemble's
    """

    id: str
    name: str
    at: str
    recorded: bool
    state: str
    label: str | None
    comments: list[str]
    has_trace: bool


def measure_case(desk: Desk, row: RecordingRow) -> MeasuredCase:
    """Heart rate, RR irregularity, PR, QRS, QT and QTc; those of the stored result if it has intervals."""
    with desk.store.read_session() as session:
        stored = reviews.latest_result(session, row.id).result.measurements if row.classified_at else None
    if stored is None or (stored.qrs_ms is None and stored.qt_ms is None):
        with _lock:
            stored = _measure(desk, row.id)
    note = "" if find_spec("neurokit2") else "PR, QRS and QT need the package neurokit2 at the desk."
    return MeasuredCase(**asdict(stored), note=note)


@lru_cache(maxsize=_CACHE_SIZE)
def _measure(desk: Desk, recording_id: str) -> Measurements:
    with desk.store.read_session() as session:
        recording = desk.recording(find_recording(session, recording_id))
    try:
        chosen = select_leads(recording, desk.ensemble.input.leads, desk.settings.lead)
    except FittingError:  # a case of another model
        chosen = recording
    return measure_recording(chosen, recording if find_spec("neurokit2") else None)


def list_windows(session: Session, row: RecordingRow) -> Windows:
    """The windows of the latest result; the caller must check that the person may see it."""
    result = reviews.latest_result(session, row.id).result
    worst = result.worst_window
    windows = [Window(**asdict(one)) for one in result.windows]
    return Windows(
        windows=windows,
        worst=None if worst is None else result.windows.index(worst),
        urgent_class=result.urgent_class,
    )


def list_earlier(session: Session, row: RecordingRow) -> list[EarlierRecording]:
    """Earlier recordings of the same patient, the latest first."""
    if not row.patient:
        return []
    query = select(RecordingRow).where(
        RecordingRow.patient == row.patient,
        RecordingRow.id != row.id,
        RecordingRow.state != State.MERGED,
        _moment() <= (row.recorded_at or row.uploaded_at),
    )
    rows = session.scalars(query.order_by(_moment().desc(), RecordingRow.id).limit(_MAX_EARLIER))
    return [_earlier(session, one) for one in rows]


def _moment() -> ColumnElement[Any]:
    return func.coalesce(RecordingRow.recorded_at, RecordingRow.uploaded_at)


def _earlier(session: Session, row: RecordingRow) -> EarlierRecording:
    finals: Sequence[VerdictRow] = []
    if row.state in CLOSED:
        finals = [one for one in reviews.current_verdicts(session, row) if one.stage == reviews.FINAL]
    return EarlierRecording(
        id=row.id,
        name=row.name,
        at=row.recorded_at or row.uploaded_at,
        recorded=row.recorded_at is not None,
        state=reviews.visible_state(row),
        label=finals[-1].label if finals else None,
        comments=[one.comment for one in finals if one.comment],
        has_trace=row.rate_hz is not None,
    )
