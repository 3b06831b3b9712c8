"""Routes of what stands below the paper of a case."""

from fastapi import APIRouter

from ecgquorum.service.api.dependencies import CurrentActor, CurrentDesk, RecordingId, error_responses
from ecgquorum.service.case_details import (
    EarlierRecording,
    MeasuredCase,
    Windows,
    list_earlier,
    list_windows,
    measure_case,
)
from ecgquorum.service.http_errors import ConflictError, NotFoundError
from ecgquorum.service.store import reviews
from ecgquorum.service.views import visible_row

router = APIRouter(prefix="/api/recordings/{id}", tags=["recordings"])


@router.get("/measurements", responses=error_responses(404))
def measurements(id: RecordingId, desk: CurrentDesk, who: CurrentActor) -> MeasuredCase:  # noqa: A002 (in the path)
    """Heart rate, RR irregularity, PR, QRS, QT and QTc."""
    with desk.store.read_session() as session:
        row = visible_row(session, who, id)
    return measure_case(desk, row)


@router.get("/windows", responses=error_responses(404, 409))
def windows(id: RecordingId, desk: CurrentDesk, who: CurrentActor) -> Windows:  # noqa: A002
    """Class, probability and risk of each window; only for those who may see the ensemble's result."""
    with desk.store.read_session() as session:
        row = visible_row(session, who, id)
        if not row.classified_at:
            raise NotFoundError("the recording has not been classified")
        if not reviews.may_see_answer(session, row, who.name, desk.settings.blind_first):
            raise ConflictError("give your first verdict; the ensemble's result is shown after it")
        return list_windows(session, row)


@router.get("/earlier", responses=error_responses(404))
def earlier(id: RecordingId, desk: CurrentDesk, who: CurrentActor) -> list[EarlierRecording]:  # noqa: A002
    """Earlier recordings of the same patient, the latest first, with the readers' final answer if there is one."""
    with desk.store.read_session() as session:
        return list_earlier(session, visible_row(session, who, id))
