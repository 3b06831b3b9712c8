"""Routes of exports: labels, a cohort, FHIR, the audit log."""

from collections.abc import Callable, Iterator

from fastapi import APIRouter
from fastapi.responses import StreamingResponse
from sqlalchemy.orm import Session

from ecgquorum.service.api.dependencies import CurrentActor, CurrentDesk, file_responses
from ecgquorum.service.desk import Desk
from ecgquorum.service.exports import audit_lines, labels_csv, stream_cohort, stream_fhir
from ecgquorum.service.store import audit
from ecgquorum.service.store.tokens import Actor

router = APIRouter(prefix="/api/export", tags=["exports"])


@router.get("/labels.csv", response_class=StreamingResponse, responses=file_responses("text/csv"))
def labels(desk: CurrentDesk, who: CurrentActor) -> StreamingResponse:
    """Final verdicts of all kinds; those of one class are the labels of `cohort.zip`."""
    return _stream(desk, who, "labels.csv", "text/csv", labels_csv)


@router.get("/cohort.zip", response_class=StreamingResponse, responses=file_responses("application/zip"))
def cohort(desk: CurrentDesk, who: CurrentActor) -> StreamingResponse:
    """labels.csv and the recordings in one archive, the input of `ecgquorum cohort build`."""
    return _stream(desk, who, "cohort.zip", "application/zip", lambda session: stream_cohort(session, desk))


@router.get("/fhir.zip", response_class=StreamingResponse, responses=file_responses("application/zip"))
def fhir(desk: CurrentDesk, who: CurrentActor) -> StreamingResponse:
    """Results and verdicts as FHIR R4: Device, Observation and DiagnosticReport as NDJSON."""
    return _stream(desk, who, "fhir.zip", "application/zip", lambda session: stream_fhir(session, desk))


@router.get("/audit.jsonl", response_class=StreamingResponse, responses=file_responses("application/jsonl"))
def audit_log(desk: CurrentDesk, who: CurrentActor) -> StreamingResponse:
    """The audit log as JSON lines; each entry holds the hash of the one before."""
    return _stream(desk, who, "audit.jsonl", "application/jsonl", audit_lines)


def _stream(
    desk: Desk, who: Actor, name: str, media_type: str, make: Callable[[Session], Iterator[str] | Iterator[bytes]]
) -> StreamingResponse:
    """An export that is sent while it is made."""
    _log_export(desk, who, name)

    def pieces() -> Iterator[str | bytes]:
        with desk.store.read_session() as session:
            yield from (piece for piece in make(session) if piece)

    return StreamingResponse(pieces(), media_type=media_type, headers=_attachment(name))


def _log_export(desk: Desk, who: Actor, what: str) -> None:
    with desk.store.write_session() as session:
        audit.append(session, desk.store.now(), who.name, "exported", what)


def _attachment(name: str) -> dict[str, str]:
    return {"content-disposition": f'attachment; filename="{name}"'}
