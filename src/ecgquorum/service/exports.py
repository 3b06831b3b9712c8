"""Exports: labels.csv and cohort.zip for `ecgquorum cohort build`, FHIR, and the audit log; all are streamed."""

import csv
import io
import json
import tempfile
import zipfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from ecgquorum.service.desk import Desk
from ecgquorum.service.files import NamedFile, recording_files
from ecgquorum.service.store import audit, models
from ecgquorum.service.store.judgements import CLASS
from ecgquorum.service.store.reviews import FINAL, FIRST
from ecgquorum.service.store.tables import CLOSED, AuditRow, FileRow, RecordingRow, ResultRow, VerdictRow
from ecgquorum.service.store.worklist import is_blind_case
from ecgquorum.triage.fhir import add_verdict, make_device, make_resources
from ecgquorum.triage.fhir_elements import Resource
from ecgquorum.triage.fhir_patient import make_patient, make_recorder

_BATCH = 500
_PIECE_BYTES = 1 << 18
COLUMNS = (
    "id",
    "label",
    "kind",
    "first_label",
    "ensemble_label",
    "risk",
    "uncertainty",
    "audited",
    "drawn",
    "reader",
    "n_readers",
    "comment",
    "reviewed_at",
    "sha256",
)


def split_in_batches(ids: Iterable[str], size: int) -> Iterator[list[str]]:
    """The ids in lists of at most `size`."""
    rest = iter(ids)
    while batch := list(islice(rest, size)):
        yield batch


@dataclass(frozen=True)
class ClosedCase:
    """A closed case: its result, its files, its verdicts of the last round, and the one that closed it."""

    row: RecordingRow
    result: ResultRow
    files: list[FileRow]
    verdicts: list[VerdictRow]
    final: VerdictRow


def closed_cases(session: Session) -> Iterator[ClosedCase]:
    """All closed cases in the order in which they were closed, in batches."""
    query = select(RecordingRow.id).where(RecordingRow.state.in_(CLOSED))
    ids = session.scalars(query.order_by(RecordingRow.closed_at, RecordingRow.id)).all()
    for batch in split_in_batches(ids, _BATCH):
        rows = {row.id: row for row in session.scalars(select(RecordingRow).where(RecordingRow.id.in_(batch)))}
        results = _latest_results(session, batch)
        files: dict[str, list[FileRow]] = {}
        for file in session.scalars(select(FileRow).where(FileRow.recording_id.in_(batch)).order_by(FileRow.place)):
            files.setdefault(file.recording_id, []).append(file)
        verdicts = _verdicts(session, batch)
        for one in batch:
            current = [verdict for verdict in verdicts[one] if verdict.round == rows[one].round]
            final = next(verdict for verdict in reversed(current) if verdict.stage == FINAL)
            yield ClosedCase(rows[one], results[one], files[one], current, final)
        session.expunge_all()


def _latest_results(session: Session, ids: Sequence[str]) -> dict[str, ResultRow]:
    query = select(ResultRow).where(ResultRow.recording_id.in_(ids)).order_by(ResultRow.id)
    return {result.recording_id: result for result in session.scalars(query)}


def _verdicts(session: Session, ids: Sequence[str]) -> dict[str, list[VerdictRow]]:
    found: dict[str, list[VerdictRow]] = {one: [] for one in ids}
    query = select(VerdictRow).where(VerdictRow.recording_id.in_(ids)).order_by(VerdictRow.id)
    for verdict in session.scalars(query):
        found[verdict.recording_id].append(verdict)
    return found


def label_values(case: ClosedCase) -> dict[str, Any]:
    """One line of labels.csv; `id` is the name of the recording's file in `cohort.zip`."""
    final, result = case.final, case.result
    first = next(one for one in case.verdicts if one.stage == FIRST and one.reader == final.reader)
    return {
        "id": f"{case.row.id}{case.files[0].ending}",
        "label": final.label,
        "kind": final.kind,
        "first_label": first.label,
        "ensemble_label": result.label,
        "risk": result.risk,
        "uncertainty": result.uncertainty,
        "audited": "yes" if case.row.audited else "no",
        "drawn": "yes" if case.row.drawn else "no",
        "reader": _quote_formula(final.reader),
        "n_readers": case.row.n_readers,
        "comment": _quote_formula(final.comment),
        "reviewed_at": final.at,
        "sha256": case.row.identity,
    }


def labels_csv(session: Session, *, single: bool = False) -> Iterator[str]:
    """The lines of labels.csv; `single`: only cases whose verdict is one class."""
    line = io.StringIO()
    writer = csv.DictWriter(line, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for case in closed_cases(session):
        if not single or case.final.kind == CLASS:
            writer.writerow(label_values(case))
            yield _drain(line)
    yield _drain(line)


def _drain(text: io.StringIO) -> str:
    content = text.getvalue()
    text.seek(0)
    text.truncate()
    return content


class _Sink(io.RawIOBase):
    """A file that cannot be read or sought; what was written to it is taken away piece by piece."""

    def __init__(self) -> None:
        super().__init__()
        self._pieces: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, piece: Any) -> int:
        self._pieces.append(bytes(piece))
        return len(piece)

    def take(self) -> bytes:
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)


def stream_cohort(session: Session, desk: Desk) -> Iterator[bytes]:
    """The bytes of an archive of labels.csv and its recordings, under generated names.

    Verdicts that are not one class are in other-answers.jsonl: nothing can be trained on them as a single label.
    """
    sink = _Sink()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("labels.csv", "w", force_zip64=True) as member:
            for line in labels_csv(session, single=True):
                member.write(line.encode())
        with archive.open("other-answers.jsonl", "w", force_zip64=True) as member:
            for case in closed_cases(session):
                if case.final.kind != CLASS:
                    values = label_values(case) | {"labels": case.final.labels}
                    member.write((json.dumps(values, ensure_ascii=False) + "\n").encode())
        yield sink.take()
        for case in closed_cases(session):
            if case.final.kind != CLASS:
                continue
            files = [NamedFile(file.name, file.ending, file.sha256 or "") for file in case.files]
            for name, content in recording_files(case.row.id, files, desk.files):
                with archive.open(name, "w", force_zip64=True) as member:
                    for piece in _pieces_of(content):
                        member.write(piece)
                        yield sink.take()
    yield sink.take()


def _pieces_of(content: Path | bytes) -> Iterator[bytes]:
    if isinstance(content, bytes):
        yield content
        return
    with content.open("rb") as file:
        while piece := file.read(_PIECE_BYTES):
            yield piece


def stream_fhir(session: Session, desk: Desk) -> Iterator[bytes]:
    """The bytes of an archive of FHIR R4 resources of all cases that are not open, one NDJSON file per type.

    Observations are sent while they are made; resources that refer to them wait in temporary files.
    """
    sink, later = _Sink(), {}
    with ExitStack() as stack, zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("Device.ndjson", _ndjson(make_device(desk.ensemble.card)))
        with archive.open("Observation.ndjson", "w", force_zip64=True) as member:
            for resource in _resources(session):
                kind = resource["resourceType"]
                if kind == "Observation":
                    member.write(_ndjson(resource))
                    yield sink.take()
                    continue
                if kind not in later:
                    folder = desk.files.folder / "incoming"
                    later[kind] = stack.enter_context(tempfile.TemporaryFile(dir=folder))
                later[kind].write(_ndjson(resource))
        for kind, file in later.items():
            file.seek(0)
            with archive.open(f"{kind}.ndjson", "w", force_zip64=True) as member:
                while piece := file.read(_PIECE_BYTES):
                    member.write(piece)
                    yield sink.take()
    yield sink.take()


def _ndjson(resource: Resource) -> bytes:
    return (json.dumps(resource, ensure_ascii=False, separators=(",", ":")) + "\n").encode()


def _resources(session: Session) -> Iterator[Resource]:
    seen: set[str] = set()
    query = select(RecordingRow.id).where(RecordingRow.classified_at.is_not(None), ~is_blind_case())
    ids = session.scalars(query.order_by(RecordingRow.classified_at, RecordingRow.id)).all()
    for batch in split_in_batches(ids, _BATCH):
        results, verdicts = _latest_results(session, batch), _verdicts(session, batch)
        rounds = session.execute(select(RecordingRow.id, RecordingRow.round).where(RecordingRow.id.in_(batch)))
        current = {recording_id: number for recording_id, number in rounds}  # noqa: C416 (rows are no pairs)
        for one in batch:
            result, names = results[one].result, models.classes_of(session, results[one])[1]
            resources = make_resources(result, names)
            finals = [each for each in verdicts[one] if each.stage == FINAL and each.round == current[one]]
            if finals:
                resources = add_verdict(resources, result, finals[-1].label, finals[-1].at, names)
            about = [one for one in (make_patient(result), make_recorder(result)) if one and one["id"] not in seen]
            seen.update(one["id"] for one in about)
            yield from (*about, *resources)
        session.expunge_all()


def audit_lines(session: Session) -> Iterator[str]:
    """The audit log as JSON lines."""
    hidden = blind_cases(session)
    for row in audit.entries(session):
        yield json.dumps(entry_values(row, hidden), ensure_ascii=False) + "\n"


def blind_cases(session: Session) -> set[str]:
    """Ids of all cases whose result is hidden."""
    return set(session.scalars(select(RecordingRow.id).where(is_blind_case())))


def entry_values(row: AuditRow, hidden: Collection[str]) -> dict[str, Any]:
    """An entry of the audit log as a dictionary, without the details of results and verdicts on open cases.

    People who may read the log may also read cases; the ensemble's answer and the verdicts of others stay hidden.
    """
    names = ("number", "at", "actor", "action", "subject", "details", "previous_sha256", "sha256")
    values = {name: getattr(row, name) for name in names}
    if row.subject in hidden and (row.action == "classified" or "verdict" in row.action):
        values["details"] = {"hidden": "until the case is closed"}
    return values


def _quote_formula(name: str) -> str:
    """Quote a text that a spreadsheet would take for a formula."""
    return f"'{name}" if name.startswith(("=", "+", "-", "@")) else name
