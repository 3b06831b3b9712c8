"""Verify the stored data against the audit log: verdicts, results, states and files."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from ecgquorum.service.store import audit
from ecgquorum.service.store.audit import document_sha256
from ecgquorum.service.store.reviews import FINAL, FIRST, verdict_details
from ecgquorum.service.store.tables import CLOSED, AuditRow, FileRow, RecordingRow, ResultRow, State, VerdictRow

_BATCH = 500
ERASED = "erased"


@dataclass
class _Expected:
    """What must be stored, as the audit log has it."""

    verdicts: dict[tuple[str, str, str, int], dict[str, Any]] = field(default_factory=dict)
    results: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)
    decisions: dict[str, str] = field(default_factory=dict)
    audited: dict[str, bool] = field(default_factory=dict)
    files: set[str] = field(default_factory=set)

    def follow(self, entry: AuditRow) -> None:
        """Apply one entry."""
        subject, details = entry.subject, entry.details
        if entry.action == "uploaded":
            self.files.add(details["sha256"])
            if details["state"] in (State.INCOMPLETE, State.WAITING):
                self.states[subject] = details["state"]
        elif entry.action == "classified":
            self.results[subject, details["model"]] = details
            self.states[subject] = self.decisions[subject] = details["decision"]
            self.audited.pop(subject, None)
            if "audited" in details:  # not in the log of an older desk
                self.audited[subject] = details["audited"]
        elif entry.action == "queued again":
            self.results.pop((subject, details["model"]), None)
            self.states[subject], self.audited[subject] = State.WAITING, False
        elif entry.action in ("first verdict", "final verdict"):
            stage = entry.action.split()[0]
            self.verdicts[subject, entry.actor, stage, details.get("round", 1)] = details | {"at": entry.at}
            if stage == FINAL and details["state"] in CLOSED:
                self.states[subject] = details["state"]
        elif entry.action == "verdict withdrawn":
            self.verdicts.pop((subject, entry.actor, details["stage"], details["round"]), None)
            self.states[subject] = self.decisions[subject]
        elif entry.action == "reopened":
            self.states[subject] = self.decisions[subject]
        elif entry.action == ERASED:
            self._forget({subject, *details.get("merged", ())})

    def _forget(self, ids: set[str]) -> None:
        self.verdicts = {key: value for key, value in self.verdicts.items() if key[0] not in ids}
        self.results = {key: value for key, value in self.results.items() if key[0] not in ids}
        for known in (self.states, self.decisions, self.audited):
            for one in ids:
                known.pop(one, None)


def verify_data(session: Session, hash_file: Callable[[str], str | None] | None = None) -> Iterator[str]:
    """Compare all data with the audit log; yields one line for each difference.

    hash_file: SHA-256 of the stored file with this name, None if it is missing; without it files are not read
    """
    expected = _Expected()
    for entry in audit.entries(session):
        expected.follow(entry)
    yield from _verify_verdicts(session, expected)
    yield from _verify_results(session, expected)
    yield from _verify_states(session, expected)
    yield from _verify_files(session, expected, hash_file)


def _verify_verdicts(session: Session, expected: _Expected) -> Iterator[str]:
    left = dict(expected.verdicts)
    for row in session.scalars(select(VerdictRow).order_by(VerdictRow.id).execution_options(yield_per=_BATCH)):
        what = f"the {row.stage} verdict of {row.reader} on {row.recording_id}"
        logged = left.pop((row.recording_id, row.reader, row.stage, row.round), None)
        if logged is None:
            final = expected.verdicts.get((row.recording_id, row.reader, FINAL, row.round), {})
            # an older desk that was not blind logged one verdict for both stages
            if row.stage != FIRST or row.was_blind or final.get("label") != row.label:
                yield f"{what} is not in the audit log"
            continue
        if logged["label"] != row.label:
            yield f"{what} has been changed: the audit log has {logged['label']}, not {row.label}"
        elif "kind" in logged and {**logged, **verdict_details(row.kind, row.labels, row.comment)} != logged:
            yield f"{what} has been changed: its classes or its comment"
        elif logged["at"] != row.at:
            yield f"{what} has been changed: its time"
    for recording_id, reader, stage, _ in left:
        yield f"the {stage} verdict of {reader} on {recording_id} is missing"


def _verify_results(session: Session, expected: _Expected) -> Iterator[str]:
    left = dict(expected.results)
    for row in session.scalars(select(ResultRow).order_by(ResultRow.id).execution_options(yield_per=_BATCH)):
        what = f"the result of {row.recording_id} by model {row.model_sha256[:12]}"
        logged = left.pop((row.recording_id, row.model_sha256), None)
        if logged is None:
            yield f"{what} is not in the audit log"
            continue
        pairs = {"class": row.label, "decision": row.decision, "uncertainty": row.uncertainty}
        stored = {"class": row.document.get("label"), "decision": row.document.get("decision")}
        if row.risk != row.document.get("risk"):
            yield f"{what} has been changed: risk"
        changed = [name for name, value in pairs.items() if name in logged and logged[name] != value]
        changed += [name for name, value in stored.items() if logged[name] != value and name not in changed]
        if changed:
            yield f"{what} has been changed: {', '.join(changed)}"
        elif "result_sha256" in logged and logged["result_sha256"] != document_sha256(row.document):
            yield f"{what} has been changed"
    for recording_id, model in left:
        yield f"the result of {recording_id} by model {model[:12]} is missing"


def _verify_states(session: Session, expected: _Expected) -> Iterator[str]:
    left = dict(expected.states)
    for one, state, audited in session.execute(select(RecordingRow.id, RecordingRow.state, RecordingRow.audited)):
        logged = left.pop(one, None)
        if state == State.MERGED and one not in expected.decisions:
            continue
        if logged is None:
            yield f"recording {one} is not in the audit log"
        elif state != logged:
            yield f"the state of {one} has been changed: the audit log has {logged}, not {state}"
        if audited != expected.audited.get(one, audited):
            yield f"whether {one} was drawn at random has been changed"
    yield from (f"recording {one} is missing" for one in left)


def _verify_files(
    session: Session, expected: _Expected, hash_file: Callable[[str], str | None] | None
) -> Iterator[str]:
    query = select(FileRow.recording_id, FileRow.sha256).where(FileRow.sha256.is_not(None)).distinct()
    for recording_id, sha256 in session.execute(query).all():
        if sha256 is None:
            continue
        if sha256 not in expected.files:
            yield f"the file {sha256} of {recording_id} is not in the audit log"
        if hash_file is not None and (found := hash_file(sha256)) != sha256:
            yield f"the file {sha256} of {recording_id} {'has been changed' if found else 'is missing'}"
