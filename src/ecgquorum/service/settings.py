"""Settings of the desk."""

import re
from dataclasses import dataclass
from pathlib import Path

LOOPBACK = ("127.0.0.1", "::1", "localhost")
_HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([\w.-]+))(?::[0-9]*)?", re.ASCII)


@dataclass(frozen=True)
class Settings:
    """Options of the administrator.

    data:         folder for uploaded files, traces and, unless `database` says otherwise, the database
    member:       name of the model's networks, where they are not built in
    database:     URL of another database, such as postgresql://user@host/name
    tokens:       every request needs a token; without tokens only this machine is served
    blind_first:  the ensemble's result is shown only after the reader's first verdict
    audit_share:  proportion of certain recordings that people review as well
    claim_s:      how long a reader's claim on a case lasts · worker_claim_s: how long a worker's claim lasts
    identify:     keep what files state about patient, time and device, and show it to readers
    undo_s:       how long a reader can withdraw a final verdict
    second_share: proportion of cases that a second reader reads as well · second_classes: classes that always are
    reclassify:   whether open cases of another model are classified again; None: refuse to start if there are any
    upload_bytes: size of the largest file
    quota_bytes:  size of all files · uploader_quota_bytes: of the files of one uploader; 0: no limit
    session_s:    how long a session of a browser lasts · idle_s: how long without a request by a person
    workers:      processes that classify
    """

    data: Path
    model: str
    member: str | None = None
    database: str = ""
    host: str = "127.0.0.1"
    port: int = 8000
    lead: str | None = None
    identify: bool = False
    tokens: bool = False
    blind_first: bool = True
    audit_share: float = 0.02
    claim_s: float = 900.0
    worker_claim_s: float = 120.0
    undo_s: float = 20.0
    second_share: float = 0.0
    second_classes: tuple[str, ...] = ()
    reclassify: bool | None = None
    upload_bytes: int = 64 << 20
    quota_bytes: int = 0
    uploader_quota_bytes: int = 0
    session_s: float = 12 * 3600.0
    idle_s: float = 2 * 3600.0
    workers: int = 1
    allowed_hosts: tuple[str, ...] = ()

    @property
    def database_url(self) -> str:
        """URL of the database, with its driver."""
        if not self.database:
            return f"sqlite:///{(self.data / 'desk.sqlite').absolute()}"
        scheme, separator, rest = self.database.partition("://")
        return f"postgresql+psycopg{separator}{rest}" if scheme in ("postgres", "postgresql") else self.database

    @property
    def is_loopback(self) -> bool:
        """Whether the desk can be reached from this machine alone."""
        return self.host in LOOPBACK

    @property
    def is_behind_proxy(self) -> bool:
        """Whether a proxy is expected: it has another host name."""
        return bool(self.allowed_hosts)

    def accepts_host(self, header: str) -> bool:
        """Whether a request's Host header names this desk (protection against DNS rebinding)."""
        found = _HOST.fullmatch(header)
        if found is None:
            return False
        if not self.is_loopback:
            return True  # every request needs a token there
        return (found[1] or found[2]).lower() in {*LOOPBACK, *self.allowed_hosts}
