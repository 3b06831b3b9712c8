"""The tables. Times are text, UTC in ISO 8601 with microseconds: they sort and hash alike in every database."""

from enum import StrEnum
from typing import Any

from sqlalchemy import JSON, BigInteger, Float, ForeignKey, Index, String, Text, UniqueConstraint, false
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from ecgquorum.ensemble.result import Result

TIME = String(27)
SHA256 = String(64)


class State(StrEnum):
    """State of a recording."""

    INCOMPLETE = "incomplete"
    WAITING = "waiting"
    UNREADABLE = "unreadable"
    CERTAIN = "certain"
    DEFERRED = "deferred"
    CONFIRMED = "confirmed"
    AMENDED = "amended"
    MERGED = "merged"


CLOSED = (State.CONFIRMED, State.AMENDED)


class Base(DeclarativeBase):
    """Base class of all tables."""

    type_annotation_map = {dict[str, Any]: JSON, list[Any]: JSON}  # noqa: RUF012 (SQLAlchemy's own spelling)


class RecordingRow(Base):
    """An uploaded recording.

    identity:     SHA-256 of its content, once it is complete
    name:         the uploader's file name: displayed, never used as a path
    merged_into:  the recording that it became a part of
    worker:       claim of a worker and its end · reader: claim of a reader and its end
    priority:     order of the worklist · audited: certain, and drawn for review
    urgent:       to be read first · assigned_to: the reader who should read it
    drawn:        in the random sample of all recordings, doubtful or not; audited: drawn and certain
    patient:      pseudonym of the patient whom the file states · recorded_at: when it was recorded, as the file states
    n_readers:    final verdicts that close the case · round: 1, and one more each time the case is reopened
    """

    __tablename__ = "recordings"
    __table_args__ = (
        Index("ix_recordings_state", "state", "audited"),
        Index("ix_recordings_reader_until", "reader_until"),
        Index("ix_recordings_patient", "patient"),
    )

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    identity: Mapped[str | None] = mapped_column(SHA256, unique=True)
    name: Mapped[str] = mapped_column(String(200))
    uploader: Mapped[str] = mapped_column(String(100))
    state: Mapped[str] = mapped_column(String(16))
    merged_into: Mapped[str | None] = mapped_column(ForeignKey("recordings.id"))
    uploaded_at: Mapped[str] = mapped_column(TIME)
    completed_at: Mapped[str | None] = mapped_column(TIME)
    classified_at: Mapped[str | None] = mapped_column(TIME)
    closed_at: Mapped[str | None] = mapped_column(TIME)
    worker: Mapped[str | None] = mapped_column(String(64))
    worker_until: Mapped[str | None] = mapped_column(TIME)
    attempts: Mapped[int] = mapped_column(default=0)
    reader: Mapped[str | None] = mapped_column(String(100))
    reader_until: Mapped[str | None] = mapped_column(TIME)
    audited: Mapped[bool] = mapped_column(default=False)
    priority: Mapped[float] = mapped_column(Float, default=0.0)
    rate_hz: Mapped[float | None] = mapped_column(Float)
    leads: Mapped[list[Any] | None]
    n_samples: Mapped[int | None] = mapped_column(BigInteger)
    urgent: Mapped[bool] = mapped_column(default=False, server_default=false())
    assigned_to: Mapped[str | None] = mapped_column(String(100))
    n_readers: Mapped[int] = mapped_column(default=1, server_default="1")
    round: Mapped[int] = mapped_column(default=1, server_default="1")
    patient: Mapped[str | None] = mapped_column(String(64))
    recorded_at: Mapped[str | None] = mapped_column(String(40))
    drawn: Mapped[bool] = mapped_column(default=False, server_default=false())


class FileRow(Base):
    """A file of a recording; a WFDB header is at place 0, followed by its signal files.

    name: name in the header, or of the upload · sha256: None while it is missing
    """

    __tablename__ = "files"
    __table_args__ = (Index("ix_files_sha256", "sha256"),)

    recording_id: Mapped[str] = mapped_column(ForeignKey("recordings.id"), primary_key=True)
    place: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(200))
    ending: Mapped[str] = mapped_column(String(8))
    sha256: Mapped[str | None] = mapped_column(SHA256)
    n_bytes: Mapped[int | None] = mapped_column(BigInteger)


class ResultRow(Base):
    """The result of one model for one recording: columns for queries, and the whole result as JSON."""

    __tablename__ = "results"
    __table_args__ = (UniqueConstraint("recording_id", "model_sha256", name="one_result"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    recording_id: Mapped[str] = mapped_column(ForeignKey("recordings.id"))
    model_sha256: Mapped[str] = mapped_column(SHA256)
    at: Mapped[str] = mapped_column(TIME)
    label: Mapped[str] = mapped_column(String(100))
    decision: Mapped[str] = mapped_column(String(16))
    uncertainty: Mapped[float | None] = mapped_column(Float)
    risk: Mapped[float | None] = mapped_column(Float)
    probability: Mapped[float | None] = mapped_column(Float)
    quality: Mapped[str] = mapped_column(String(16))
    document: Mapped[dict[str, Any]]

    @property
    def result(self) -> Result:
        """The whole result."""
        return Result.from_json(self.document)


class VerdictRow(Base):
    """A verdict of a reader: before the ensemble's result is shown ("first") or after ("final").

    kind:   class, classes, none or unclear · labels: its classes · label: the same as text
    round:  that of the recording when it was given; verdicts of earlier rounds no longer count
    """

    __tablename__ = "verdicts"
    __table_args__ = (UniqueConstraint("recording_id", "reader", "stage", "round", name="one_verdict"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    recording_id: Mapped[str] = mapped_column(ForeignKey("recordings.id"))
    reader: Mapped[str] = mapped_column(String(100))
    stage: Mapped[str] = mapped_column(String(8))
    label: Mapped[str] = mapped_column(String(100))
    was_blind: Mapped[bool]
    at: Mapped[str] = mapped_column(TIME)
    round: Mapped[int] = mapped_column(default=1, server_default="1")
    kind: Mapped[str] = mapped_column(String(8), default="class", server_default="class")
    labels: Mapped[list[Any]]
    comment: Mapped[str] = mapped_column(Text, default="", server_default="")


class TokenRow(Base):
    """A token; only its hash is stored."""

    __tablename__ = "tokens"

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    name: Mapped[str] = mapped_column(String(100), unique=True)
    role: Mapped[str] = mapped_column(String(16))
    sha256: Mapped[str] = mapped_column(SHA256, unique=True)
    created_at: Mapped[str] = mapped_column(TIME)
    revoked_at: Mapped[str | None] = mapped_column(TIME)
    expires_at: Mapped[str | None] = mapped_column(TIME)


class SessionRow(Base):
    """A session of a browser; only the hash of its secret is stored. `seen_at`: its last request by a person."""

    __tablename__ = "sessions"

    sha256: Mapped[str] = mapped_column(SHA256, primary_key=True)
    token_id: Mapped[str] = mapped_column(ForeignKey("tokens.id"))
    until: Mapped[str] = mapped_column(TIME)
    seen_at: Mapped[str] = mapped_column(TIME, server_default="")


class ModelRow(Base):
    """A model that has classified recordings here; a case offers the classes of its own model.

    leads, rate_hz: of its input; None for a model of an older version
    """

    __tablename__ = "models"

    sha256: Mapped[str] = mapped_column(SHA256, primary_key=True)
    name: Mapped[str] = mapped_column(String(200))
    classes: Mapped[list[Any]]
    class_names: Mapped[dict[str, Any]]
    used_at: Mapped[str] = mapped_column(TIME)
    leads: Mapped[list[Any] | None]
    rate_hz: Mapped[float | None] = mapped_column(Float)


class SenderRow(Base):
    """Another uploader of a recording, and the name of their file."""

    __tablename__ = "senders"

    recording_id: Mapped[str] = mapped_column(ForeignKey("recordings.id"), primary_key=True)
    uploader: Mapped[str] = mapped_column(String(100), primary_key=True)
    name: Mapped[str] = mapped_column(String(200))
    at: Mapped[str] = mapped_column(TIME)


class AuditRow(Base):
    """An entry of the audit log; `sha256` covers all other fields."""

    __tablename__ = "audit"

    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    at: Mapped[str] = mapped_column(TIME)
    actor: Mapped[str] = mapped_column(String(100))
    action: Mapped[str] = mapped_column(String(32))
    subject: Mapped[str] = mapped_column(String(64))
    details: Mapped[dict[str, Any]]
    previous_sha256: Mapped[str] = mapped_column(SHA256)
    sha256: Mapped[str] = mapped_column(SHA256)


class HeadRow(Base):
    """One row: the number of entries of the audit log and the hash of the last one. Every writer locks it first."""

    __tablename__ = "audit_head"

    id: Mapped[int] = mapped_column(primary_key=True)
    number: Mapped[int]
    sha256: Mapped[str] = mapped_column(SHA256)


class SecretRow(Base):
    """A random secret of this desk, created by its first migration."""

    __tablename__ = "secrets"

    name: Mapped[str] = mapped_column(String(32), primary_key=True)
    value: Mapped[str] = mapped_column(String(64))
