"""Measure the review desk with many recordings: processor time of each page, time and peak memory of each export.

python -m benchmarks.desk [--records 20000] [--folder DIR] [--model NAME]

The recordings are rows without files, written straight to the database, with a valid audit log. Processor time does not
depend on what else the machine does.
"""

import argparse
import asyncio
import hashlib
import json
import resource
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import httpx
from sqlalchemy import func, insert, select

from ecgquorum.ensemble.result import Result, WindowResult
from ecgquorum.preprocessing.quality import NO_FINDINGS
from ecgquorum.recordings.acquisition import Acquisition
from ecgquorum.service.application import desk_application
from ecgquorum.service.desk import Desk
from ecgquorum.service.exports import audit_lines, labels_csv, stream_fhir
from ecgquorum.service.server import open_desk, warm_up
from ecgquorum.service.settings import Settings
from ecgquorum.service.store.audit import document_sha256, entry_sha256
from ecgquorum.service.store.tables import AuditRow, FileRow, HeadRow, RecordingRow, ResultRow, VerdictRow

STATES = ("certain",) * 12 + ("deferred",) * 3 + ("confirmed",) * 3 + ("amended",) + ("unreadable",)
READERS = ("Ada", "Ben", "Cem")
ROUNDS = 5


def moment(number: int, minute: int = 0) -> str:
    """A stored time; recordings come every two minutes."""
    return time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime(1.75e9 + 120 * number + 60 * minute))


def make_result(desk: Desk, number: int, decision: str) -> Result:
    """A result with different numbers for each recording."""
    classes = desk.classes
    label, risk = classes[number * 7 % len(classes)], (number * 37 % 1000) / 1000
    probs = {name: 0.8 if name == label else 0.2 / (len(classes) - 1) for name in classes}
    return Result(
        id=f"{number:032x}",
        source=f"recording-{number}.npz",
        label="" if decision == "unreadable" else label,
        probabilities=probs,
        raw_probabilities=probs,
        raw_member_probabilities=(probs,) * 3,
        uncertainty=risk / 2,
        risk=risk,
        windows=(WindowResult(0.0, 30.0, label, 0.8, risk),),
        quality=NO_FINDINGS,
        decision=decision,
        seconds=30.0,
        acquisition=Acquisition(patient_id=str(number // 2)) if number % 4 == 0 else Acquisition(),
        sha256=hashlib.sha256(str(number).encode()).hexdigest(),
        model_sha256=desk.model_sha256,
    )


def make_rows(desk: Desk, number: int) -> Iterator[tuple[type, dict[str, Any]]]:
    """The rows of one recording: itself, its file, result and verdicts, and what the log says of them."""
    state = STATES[number % len(STATES)]
    closed = state in ("confirmed", "amended")
    result = make_result(desk, number, "deferred" if closed else state)
    document, one, sha256 = result.to_json(), result.id, result.sha256
    yield (
        RecordingRow,
        {"id": one, "identity": sha256, "name": result.source, "uploader": f"uploader {number % 5}", "state": state}
        | {"uploaded_at": moment(number), "completed_at": moment(number), "classified_at": moment(number, 1)}
        | {"closed_at": moment(number, 9) if closed else None, "attempts": 1, "priority": result.risk or 0.0}
        | {"rate_hz": 300.0, "leads": ["ECG"], "n_samples": 9000, "audited": number % 50 == 0 and state == "certain"}
        | {"patient": hashlib.sha256(str(number // 2).encode()).hexdigest(), "drawn": number % 50 == 0},
    )
    yield FileRow, {"recording_id": one, "place": 0, "name": result.source, "ending": ".npz", "sha256": sha256}
    yield (
        ResultRow,
        {"recording_id": one, "model_sha256": desk.model_sha256, "at": moment(number, 1), "label": result.label}
        | {"decision": result.decision, "uncertainty": result.uncertainty, "risk": result.risk, "probability": 0.8}
        | {"quality": "usable", "document": document},
    )
    details = {"model": desk.model_sha256, "decision": result.decision, "class": result.label, "risk": result.risk}
    details |= {"uncertainty": result.uncertainty, "result_sha256": document_sha256(document)}
    yield _entry(moment(number), f"uploader {number % 5}", "uploaded", one, {"sha256": sha256, "bytes": 1})
    yield _entry(moment(number, 1), "worker", "classified", one, details)
    if closed:
        final = result.label if state == "confirmed" else desk.classes[number % len(desk.classes)]
        answer = {"recording_id": one, "reader": READERS[number % 3], "round": 1, "kind": "class", "label": final}
        answer |= {"labels": [final], "comment": ""}
        for minute, stage in ((8, "first"), (9, "final")):
            at = moment(number, minute)
            yield VerdictRow, answer | {"stage": stage, "was_blind": stage == "first", "at": at}
            told = {"label": final, "state": state, "round": 1, "kind": "class", "labels": [final]}
            yield _entry(at, READERS[number % 3], f"{stage} verdict", one, told)


def _entry(at: str, actor: str, action: str, subject: str, details: dict[str, Any]) -> tuple[type, dict[str, Any]]:
    return AuditRow, {"at": at, "actor": actor, "action": action, "subject": subject, "details": details}


def fill_desk(desk: Desk, n_records: int) -> None:
    """Write the rows, unless they are there."""
    with desk.store.write_session() as session:
        if session.scalar(select(func.count()).select_from(RecordingRow)):
            return
        head = session.get_one(HeadRow, 1)
        rows: dict[type, list[dict[str, Any]]] = {}
        for number in range(n_records):
            for table, values in make_rows(desk, number):
                if table is AuditRow:
                    values |= {"number": head.number + 1, "previous_sha256": head.sha256}
                    values["sha256"] = entry_sha256(AuditRow(**values))
                    head.number, head.sha256 = values["number"], values["sha256"]
                rows.setdefault(table, []).append(values)
        for table, values_of_table in rows.items():
            session.execute(insert(table), values_of_table)


def measure_pages(desk: Desk) -> Iterator[tuple[str, float, float]]:
    """Page, processor time of the first request and the median of later ones, in ms."""
    application, _ = desk_application(desk, with_worker=False)
    with desk.store.read_session() as session:
        is_open = select(RecordingRow.id).where(RecordingRow.state == "deferred")
        case = session.scalars(is_open.order_by(RecordingRow.priority.desc()).limit(1)).one()
    pages = {"worklist": "/", "worklist, open": "/?state=open", "worklist, search": "/?q=recording-19"}
    pages |= {"worklist, class and days": f"/?label={desk.classes[0]}&since=2025-06-20", "last page": "/?offset=19900"}
    pages |= {"case": f"/cases/{case}", "metrics": "/measures", "audit log": "/audit", "admin": "/admin"}
    pages |= {"export": "/export", "API worklist": "/api/recordings"}
    for name, path in pages.items():
        times = [asyncio.run(_request(application, path)) for _ in range(1 + ROUNDS)]
        yield name, 1000 * times[0], 1000 * median(times[1:])


async def _request(application: Any, path: str) -> float:
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(application), base_url="http://127.0.0.1", timeout=600
    ) as client:
        began = time.process_time()
        (await client.get(path)).raise_for_status()
        return time.process_time() - began


def measure_export(make: Callable[[], Iterable[str | bytes]]) -> tuple[float, float, float]:
    """Processor time in s, size in MB, and by how many MB the peak memory of the process has grown."""
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    size = sum(map(len, make()))
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return time.process_time() - began, size / 1e6, grown / 1e3


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=20_000)
    parser.add_argument("--folder", type=Path, help="folder of the desk; kept, and used again")
    parser.add_argument("--model", default="physionet2017")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        desk = open_desk(Settings(data=chosen.folder or Path(scratch) / "desk", model=chosen.model))
        fill_desk(desk, chosen.records)
        began = time.process_time()
        warm_up(desk)
        print(f"{chosen.records} recordings; metrics and check of the log, once: {time.process_time() - began:.1f} s")
        print("\n| page | first request, ms | later ones, ms |\n|---|---|---|")
        for name, first, later in measure_pages(desk):
            print(f"| {name} | {first:.0f} | {later:.0f} |")
        print("\n| export | s | MB | more memory at the peak, MB |\n|---|---|---|---|")
        with desk.store.read_session() as session:
            exports: dict[str, Callable[[], Iterable[str | bytes]]] = {
                "labels.csv": lambda: labels_csv(session),
                "audit.jsonl": lambda: audit_lines(session),
                "fhir.zip": lambda: stream_fhir(session, desk),
            }
            for name, make in exports.items():
                seconds, size, grown = measure_export(make)
                print(f"| {name} | {seconds:.1f} | {size:.1f} | {grown:.0f} |")
        print(json.dumps({"peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1000}))
        desk.close()


if __name__ == "__main__":
    main()
