"""Open, migrate and lock the database: SQLite in the data folder, or PostgreSQL by its URL.

Writers are serialised: in SQLite by its own lock, in PostgreSQL by a lock on the head of the audit log, to which every
writer appends. What a writer has read is then still true when it writes.
"""

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from sqlalchemy import Engine, create_engine, event, select
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, OperationalError, SQLAlchemyError
from sqlalchemy.orm import Session

from ecgquorum.errors import DeskError
from ecgquorum.recordings.recording import one_line
from ecgquorum.service.store.tables import HeadRow, SecretRow

_BUSY_MS = 60_000
_CONNECT_S = 10
_MIGRATION_LOCK = 0x65636771
DRAW_SECRET, SESSION_SECRET = "draw", "session"
Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """The current time in UTC."""
    return datetime.now(UTC)


def timestamp(moment: datetime) -> str:
    """Format a time as it is stored."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Store:
    """The database of the desk.

    clock: returns the current time
    """

    def __init__(self, url: str, clock: Clock = utc_now) -> None:
        self._engine = _engine(url)
        is_sqlite = self._engine.dialect.name == "sqlite"  # where every transaction has its snapshot
        snapshot = {} if is_sqlite else {"isolation_level": "REPEATABLE READ"}
        self._reading_engine = self._engine.execution_options(**snapshot)
        self._clock = clock
        self.url = url

    def migrate(self) -> None:
        """Migrate the tables to the current schema, and create the secrets of a new desk."""
        config = Config()
        config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
        try:
            with self._engine.connect() as connection, connection.begin():
                if connection.dialect.name == "postgresql":
                    connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_MIGRATION_LOCK})")
                config.attributes["connection"] = connection
                command.upgrade(config, "head")
        except OperationalError as error:
            raise _connection_error(self.url, error) from error
        with self.write_session() as session:
            for name in (DRAW_SECRET, SESSION_SECRET):
                if session.get(SecretRow, name) is None:
                    session.add(SecretRow(name=name, value=secrets.token_hex(32)))

    def secret(self, name: str) -> bytes:
        """A secret of this desk."""
        with self.read_session() as session:
            row = session.get_one(SecretRow, name)
            return bytes.fromhex(row.value)

    def now(self) -> str:
        """The current time as it is stored."""
        return timestamp(self._clock())

    def after(self, seconds: float) -> str:
        """The time in so many seconds, as it is stored."""
        return timestamp(self._clock() + timedelta(seconds=seconds))

    @contextmanager
    def read_session(self) -> Iterator[Session]:
        """A read-only session with a consistent snapshot."""
        with Session(self._reading_engine, expire_on_commit=False, autoflush=False) as session:
            yield session

    @contextmanager
    def write_session(self) -> Iterator[Session]:
        """A session with the write lock; it commits at the end of the block unless there is an error."""
        engine = self._engine.execution_options(writes=True)
        with Session(engine, expire_on_commit=False) as session, session.begin():
            locked = session.scalars(select(HeadRow).with_for_update()).all()
            session.info["head"] = locked  # a reference, so that entries of the log need not read it again
            yield session

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()


def open_store(url: str, data: Path, *, must_exist: bool = False) -> Store:
    """Open and migrate the database of the desk in the folder `data`; `must_exist`: raise if there is no desk."""
    if must_exist and url.startswith("sqlite") and not Path(make_url(url).database or "").is_file():
        raise DeskError(f"{data}: this is no folder of a review desk; choose the one that `serve --data` was given")
    data.mkdir(parents=True, exist_ok=True, mode=0o700)
    store = Store(url)
    store.migrate()
    return store


def _engine(url: str) -> Engine:
    try:
        parsed = make_url(url)
        if parsed.get_backend_name() == "sqlite":
            return _sqlite(url)
        return create_engine(
            url,
            pool_size=10,
            max_overflow=30,
            pool_pre_ping=True,
            isolation_level="READ COMMITTED",
            connect_args={"connect_timeout": _CONNECT_S} if parsed.get_backend_name() == "postgresql" else {},
        )
    except (ArgumentError, NoSuchModuleError, ImportError) as error:
        raise DeskError(
            f"--database: expected postgresql://USER@HOST/NAME or sqlite:///PATH, found: {one_line(error)}"
        ) from error


def _sqlite(url: str) -> Engine:
    path = make_url(url).database
    if path and path != ":memory:" and Path(path).parent.is_dir():
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))  # SQLite gives its other files the same mode
    engine = create_engine(
        url, connect_args={"check_same_thread": False, "timeout": _BUSY_MS / 1000}, pool_size=10, max_overflow=60
    )

    @event.listens_for(engine, "connect")
    def _configure(connection: Any, _: Any) -> None:
        connection.isolation_level = None  # transactions begin explicitly, not where the driver guesses
        for pragma in (
            "journal_mode=WAL",
            "synchronous=FULL",
            "foreign_keys=ON",
            "secure_delete=ON",
            f"busy_timeout={_BUSY_MS}",
        ):
            connection.execute(f"PRAGMA {pragma}").close()

    @event.listens_for(engine, "begin")
    def _begin(connection: Any) -> None:
        writes = connection.get_execution_options().get("writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _connection_error(url: str, error: SQLAlchemyError) -> DeskError:
    reason = one_line(error.orig) if isinstance(error, DBAPIError) and isinstance(error.orig, Exception) else str(error)
    where = make_url(url).render_as_string(hide_password=True)
    return DeskError(f"{where}: could not open the database: {reason}")
