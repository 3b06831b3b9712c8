"""Exports: labels.csv and cohort.zip for `ecgquorum cohort build`, FHIR, and the audit log."""

import csv
import io
import json
import tempfile
import zipfile
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from ecgquorum.service.desk import Desk
from ecgquorum.service.files import NamedFile, recording_files
from ecgquorum.service.store import audit, recordings
from ecgquorum.service.store.reviews import FINAL, FIRST, is_open, latest_result, list_verdicts
from ecgquorum.service.store.tables import CLOSED, AuditRow, RecordingRow
from ecgquorum.service.store.worklist import is_open_case
from ecgquorum.triage.fhir import Resource, add_verdict, make_device, make_resources

COLUMNS = (
    "id",
    "label",
    "first_label",
    "ensemble_label",
    "risk",
    "uncertainty",
    "audited",
    "reader",
    "reviewed_at",
    "sha256",
)


def labels_csv(session: Session) -> str:
    """One line for each reviewed recording; `id` is the name of its file in `cohort.zip`."""
    table = io.StringIO()
    writer = csv.DictWriter(table, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in _closed_recordings(session):
        final = next(verdict for verdict in list_verdicts(session, row.id) if verdict.stage == FINAL)
        first = next(one for one in list_verdicts(session, row.id) if one.stage == FIRST and one.reader == final.reader)
        result = latest_result(session, row.id)
        ending = recordings.list_files(session, row.id)[0].ending
        writer.writerow(
            {
                "id": f"{row.id}{ending}",
                "label": final.label,
                "first_label": first.label,
                "ensemble_label": result.label,
                "risk": result.document.get("risk"),
                "uncertainty": result.uncertainty,
                "audited": "yes" if row.audited else "no",
                "reader": _quote_formula(final.reader),
                "reviewed_at": final.at,
                "sha256": row.identity,
            }
        )
    return table.getvalue()


def cohort_zip(session: Session, desk: Desk) -> Path:
    """Write an archive of labels.csv and its recordings, under generated names; the caller removes it."""
    handle = _scratch_zip(desk)
    with handle, zipfile.ZipFile(handle, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("labels.csv", labels_csv(session))
        for row in _closed_recordings(session):
            files = [
                NamedFile(file.name, file.ending, file.sha256 or "") for file in recordings.list_files(session, row.id)
            ]
            for name, content in recording_files(row.id, files, desk.files):
                if isinstance(content, bytes):
                    archive.writestr(name, content)
                else:
                    archive.write(content, name)
    return Path(handle.name)


def fhir_zip(session: Session, desk: Desk) -> Path:
    """Write an archive of FHIR R4 resources of all cases that are not open, one NDJSON file per type."""
    lines: dict[str, list[str]] = {}
    for resource in _resources(session, desk):
        text = json.dumps(resource, ensure_ascii=False, separators=(",", ":"))
        lines.setdefault(resource["resourceType"], []).append(text + "\n")
    handle = _scratch_zip(desk)
    with handle, zipfile.ZipFile(handle, "w", zipfile.ZIP_DEFLATED) as archive:
        for kind, texts in lines.items():
            archive.writestr(f"{kind}.ndjson", "".join(texts))
    return Path(handle.name)


def _resources(session: Session, desk: Desk) -> Iterator[Resource]:
    yield make_device(desk.ensemble.card)
    query = select(RecordingRow).where(RecordingRow.classified_at.is_not(None)).order_by(RecordingRow.classified_at)
    for row in session.scalars(query):
        if is_open(row):
            continue
        result = latest_result(session, row.id).result
        resources = make_resources(result, desk.class_names)
        final = next((one for one in list_verdicts(session, row.id) if one.stage == FINAL), None)
        yield from add_verdict(resources, result, final.label, final.at, desk.class_names) if final else resources


def _scratch_zip(desk: Desk) -> "tempfile._TemporaryFileWrapper[bytes]":
    """A new archive; it is removed when it has been sent."""
    return tempfile.NamedTemporaryFile(dir=desk.files.folder / "incoming", suffix=".zip", delete=False)


def audit_lines(session: Session) -> Iterator[str]:
    """The audit log as JSON lines."""
    hidden = open_cases(session)
    for row in audit.entries(session):
        yield json.dumps(entry_values(row, hidden), ensure_ascii=False) + "\n"


def open_cases(session: Session) -> set[str]:
    """Ids of all open cases."""
    return set(session.scalars(select(RecordingRow.id).where(is_open_case())))


def entry_values(row: AuditRow, hidden: Collection[str]) -> dict[str, Any]:
    """An entry of the audit log as a dictionary, without the details of results and verdicts on open cases.

    Whoever may read the log may also read cases; the ensemble's answer and the verdicts of others stay hidden.
    """
    names = ("number", "at", "actor", "action", "subject", "details", "previous_sha256", "sha256")
    values = {name: getattr(row, name) for name in names}
    if row.subject in hidden and (row.action == "classified" or "verdict" in row.action):
        values["details"] = {"hidden": "until the case is closed"}
    return values


def _closed_recordings(session: Session) -> list[RecordingRow]:
    query = select(RecordingRow).where(RecordingRow.state.in_(CLOSED))
    return list(session.scalars(query.order_by(RecordingRow.closed_at, RecordingRow.id)))


def _quote_formula(name: str) -> str:
    """Quote a text that a spreadsheet would take for a formula."""
    return f"'{name}" if name[:1] in "=+-@" else name
