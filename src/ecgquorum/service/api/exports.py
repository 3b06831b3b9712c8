"""Routes of exports: labels, a cohort, FHIR, the audit log."""

from collections.abc import Iterator
from pathlib import Path

from fastapi import APIRouter
from fastapi.responses import FileResponse, PlainTextResponse, Response, StreamingResponse
from starlette.background import BackgroundTask

from ecgquorum.service.api.dependencies import CurrentActor, CurrentDesk, file_responses
from ecgquorum.service.desk import Desk
from ecgquorum.service.exports import audit_lines, cohort_zip, fhir_zip, labels_csv
from ecgquorum.service.store import audit
from ecgquorum.service.store.tokens import Actor

router = APIRouter(prefix="/api/export", tags=["exports"])


@router.get("/labels.csv", response_class=Response, responses=file_responses("text/csv"))
def labels(desk: CurrentDesk, who: CurrentActor) -> PlainTextResponse:
    """Final verdicts; together with the recordings, the input of `ecgquorum cohort build`."""
    _log_export(desk, who, "labels.csv")
    with desk.store.read_session() as session:
        return PlainTextResponse(labels_csv(session), media_type="text/csv", headers=_attachment("labels.csv"))


@router.get("/cohort.zip", response_class=FileResponse, responses=file_responses("application/zip"))
def cohort(desk: CurrentDesk, who: CurrentActor) -> FileResponse:
    """labels.csv and the recordings in one archive, the input of `ecgquorum cohort build`."""
    _log_export(desk, who, "cohort.zip")
    with desk.store.read_session() as session:
        path = cohort_zip(session, desk)
    return _archive(path, "cohort.zip")


@router.get("/fhir.zip", response_class=FileResponse, responses=file_responses("application/zip"))
def fhir(desk: CurrentDesk, who: CurrentActor) -> FileResponse:
    """Results and verdicts as FHIR R4: Device, Observation and DiagnosticReport as NDJSON."""
    _log_export(desk, who, "fhir.zip")
    with desk.store.read_session() as session:
        path = fhir_zip(session, desk)
    return _archive(path, "fhir.zip")


@router.get("/audit.jsonl", response_class=StreamingResponse, responses=file_responses("application/jsonl"))
def audit_log(desk: CurrentDesk, who: CurrentActor) -> StreamingResponse:
    """The audit log as JSON lines; each entry holds the hash of the one before."""
    _log_export(desk, who, "audit.jsonl")

    def lines() -> Iterator[str]:
        with desk.store.read_session() as session:
            yield from audit_lines(session)

    return StreamingResponse(lines(), media_type="application/jsonl", headers=_attachment("audit.jsonl"))


def _archive(path: Path, name: str) -> FileResponse:
    """A file that is removed when it has been sent."""
    removal = BackgroundTask(path.unlink, missing_ok=True)
    return FileResponse(path, media_type="application/zip", filename=name, background=removal)


def _log_export(desk: Desk, who: Actor, what: str) -> None:
    with desk.store.write_session() as session:
        audit.append(session, desk.store.now(), who.name, "exported", what)


def _attachment(name: str) -> dict[str, str]:
    return {"content-disposition": f'attachment; filename="{name}"'}
