"""What an administrator may choose about the desk."""

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True)
class Settings:
    """The desk's settings.

    data:         folder for uploaded files, traces and, unless `database` says otherwise, the database
    database:     URL of another database, such as postgresql://user@host/name
    tokens:       everybody needs a token; without them the desk answers this machine alone
    blind_first:  the ensemble's answer is shown only after the reader's own
    audit_share:  of certain recordings, which people read as well
    claim_s:      for how long a case is one reader's · worker_claim_s: for how long a recording is one worker's
    upload_bytes: the largest file that is taken
    """

    data: Path
    model: str
    database: str = ""
    host: str = "127.0.0.1"
    port: int = 8000
    lead: str | None = None
    tokens: bool = False
    blind_first: bool = True
    audit_share: float = 0.02
    claim_s: float = 900.0
    worker_claim_s: float = 120.0
    upload_bytes: int = 64 << 20
    session_s: float = 12 * 3600.0
    allowed_hosts: tuple[str, ...] = ()

    @property
    def database_url(self) -> str:
        """With the driver that is used."""
        if not self.database:
            return f"sqlite:///{(self.data / 'desk.sqlite').absolute()}"
        scheme, separator, rest = self.database.partition("://")
        return f"postgresql+psycopg{separator}{rest}" if scheme in ("postgres", "postgresql") else self.database

    @property
    def is_loopback(self) -> bool:
        """Whether the desk can be reached from this machine alone."""
        return self.host in LOOPBACK

    def accepts_host(self, header: str) -> bool:
        """Whether a request's Host header names this desk, and not a stranger's domain that points to this machine."""
        if not self.is_loopback:
            return True  # everybody needs a token there
        try:
            name = urlsplit(f"//{header}").hostname or ""
        except ValueError:
            return False
        return name in {*LOOPBACK, *self.allowed_hosts}
