"""Exports: labels, a cohort to train on, FHIR, the audit log."""

from collections.abc import Iterator
from pathlib import Path

from fastapi import APIRouter
from fastapi.responses import FileResponse, PlainTextResponse, Response, StreamingResponse
from starlette.background import BackgroundTask

from ecgquorum.service.api.dependencies import ThisDesk, Who, described
from ecgquorum.service.desk import Desk
from ecgquorum.service.exports import audit_lines, cohort_zip, fhir_zip, labels_csv
from ecgquorum.service.store import audit
from ecgquorum.service.store.tokens import Actor

router = APIRouter(prefix="/api/export", tags=["exports"])


@router.get("/labels.csv", response_class=Response, responses=described("text/csv"))
def labels(desk: ThisDesk, who: Who) -> PlainTextResponse:
    """The final verdicts; beside the recordings' files, a folder that `ecgquorum cohort build` reads."""
    _noted(desk, who, "labels.csv")
    with desk.store.reading() as session:
        return PlainTextResponse(labels_csv(session), media_type="text/csv", headers=_named("labels.csv"))


@router.get("/cohort.zip", response_class=FileResponse, responses=described("application/zip"))
def cohort(desk: ThisDesk, who: Who) -> FileResponse:
    """labels.csv and the recordings, in an archive that `ecgquorum cohort build` reads."""
    _noted(desk, who, "cohort.zip")
    with desk.store.reading() as session:
        path = cohort_zip(session, desk)
    return _archive(path, "cohort.zip")


@router.get("/fhir.zip", response_class=FileResponse, responses=described("application/zip"))
def fhir(desk: ThisDesk, who: Who) -> FileResponse:
    """Answers and verdicts as FHIR R4: Device, Observation and DiagnosticReport as NDJSON."""
    _noted(desk, who, "fhir.zip")
    with desk.store.reading() as session:
        path = fhir_zip(session, desk)
    return _archive(path, "fhir.zip")


@router.get("/audit.jsonl", response_class=StreamingResponse, responses=described("application/jsonl"))
def audit_log(desk: ThisDesk, who: Who) -> StreamingResponse:
    """The audit log, an entry a line, each with the hash of the one before."""
    _noted(desk, who, "audit.jsonl")

    def lines() -> Iterator[str]:
        with desk.store.reading() as session:
            yield from audit_lines(session)

    return StreamingResponse(lines(), media_type="application/jsonl", headers=_named("audit.jsonl"))


def _archive(path: Path, name: str) -> FileResponse:
    """A file that goes when it has been sent."""
    removal = BackgroundTask(path.unlink, missing_ok=True)
    return FileResponse(path, media_type="application/zip", filename=name, background=removal)


def _noted(desk: Desk, who: Actor, what: str) -> None:
    with desk.store.writing() as session:
        audit.append(session, desk.store.now(), who.name, "exported", what)


def _named(name: str) -> dict[str, str]:
    return {"content-disposition": f'attachment; filename="{name}"'}
