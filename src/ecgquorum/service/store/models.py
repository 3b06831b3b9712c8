"""The models that have classified recordings at this desk; a result belongs to its model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from ecgquorum.service.store import audit
from ecgquorum.service.store.tables import ModelRow, RecordingRow, ResultRow, State, VerdictRow
from ecgquorum.service.store.worklist import is_latest_result, is_open_case


@dataclass(frozen=True)
class KnownModel:
    """What the desk stores of a model: its hash, name, classes, and the leads and rate of its input."""

    sha256: str
    name: str
    classes: Sequence[str]
    class_names: Mapping[str, str]
    leads: Sequence[str]
    rate_hz: float


def register_model(session: Session, at: str, model: KnownModel) -> None:
    """Store what is known of the model, and note in the audit log that the desk now uses it."""
    classes = list(model.classes)
    row = session.get(ModelRow, model.sha256)
    is_new = newest_model(session) != model.sha256
    if row is None:
        row = ModelRow(sha256=model.sha256, name=model.name, classes=classes, class_names=dict(model.class_names))
        session.add(row)
    row.leads, row.rate_hz = list(model.leads), model.rate_hz
    if is_new:
        row.used_at = at
        audit.append(
            session, at, audit.DESK, "model", "", {"model": model.sha256, "name": model.name, "classes": classes}
        )


def newest_model(session: Session) -> str | None:
    """SHA-256 of the model that the desk used last."""
    return session.scalars(select(ModelRow.sha256).order_by(ModelRow.used_at.desc()).limit(1)).first()


def classes_of(session: Session, result: ResultRow) -> tuple[list[str], dict[str, str]]:
    """The classes of a result's model, and their names; those of a model from before are in the result itself."""
    known: dict[str, ModelRow | None] = session.info.setdefault("models", {})
    if result.model_sha256 not in known:
        known[result.model_sha256] = session.get(ModelRow, result.model_sha256)
    row = known[result.model_sha256]
    if row is None:
        return list(result.document.get("raw_probabilities") or {}), {}
    return [str(name) for name in row.classes], {str(key): str(value) for key, value in row.class_names.items()}


def known_classes(session: Session) -> list[str]:
    """The classes of all models, those of the newest first."""
    rows = session.scalars(select(ModelRow).order_by(ModelRow.used_at.desc()))
    return list(dict.fromkeys(str(name) for row in rows for name in row.classes))


def _of_other_models(sha256: str) -> tuple[object, ...]:
    """Conditions: open, without a verdict in this round, and classified by another model."""
    judged = select(VerdictRow.id).where(
        VerdictRow.recording_id == RecordingRow.id, VerdictRow.round == RecordingRow.round
    )
    return (is_open_case(), ResultRow.model_sha256 != sha256, ~judged.correlate(RecordingRow).exists())


def count_open_of_others(session: Session, sha256: str) -> int:
    """Number of open cases without a verdict whose result is of another model."""
    query = select(func.count()).select_from(RecordingRow).join(ResultRow, is_latest_result())
    return session.scalar(query.where(*_of_other_models(sha256))) or 0  # type: ignore[arg-type]


def reclassify_open(session: Session, at: str, sha256: str) -> int:
    """Queue the open cases of other models again; returns their number. Earlier results stay stored."""
    query = select(RecordingRow).join(ResultRow, is_latest_result())
    rows = session.scalars(query.where(*_of_other_models(sha256))).all()  # type: ignore[arg-type]
    for row in rows:
        again = select(ResultRow).where(ResultRow.recording_id == row.id, ResultRow.model_sha256 == sha256)
        for old in session.scalars(again):
            session.delete(old)
        row.state, row.audited, row.attempts = State.WAITING, False, 0
        row.reader = row.reader_until = row.worker = row.worker_until = None
        audit.append(session, at, audit.DESK, "queued again", row.id, {"model": sha256})
    return len(rows)
