"""URLs of files and folders: `s3://bucket/folder`, `gs://`, `http(s)://`; `file://` is a path of this machine."""

import re
from pathlib import Path
from typing import TypeGuard
from urllib.parse import unquote, urlsplit

from ecgquorum.errors import StorageError

SCHEMES = ("s3", "gs", "http", "https", "memory")
_URL = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*://")


def is_url(location: object) -> TypeGuard[str]:
    """Whether this is a URL; a `Path` never is."""
    return isinstance(location, str) and bool(_URL.match(location))


def parse_location(location: str | Path) -> str | Path:
    """Return a URL of a scheme that is known, without a slash at its end, or a path of this machine.

    A URL with a user name, a password or a query is refused: it may hold credentials, and would be written to results.
    """
    if not isinstance(location, str) or not is_url(location):
        return Path(location)
    parts = urlsplit(location)
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    plain = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
    if parts.scheme not in SCHEMES:
        raise StorageError(f"{plain}: expected a URL that begins with {', '.join(SCHEMES)} or file, and ://")
    if "@" in parts.netloc or parts.query:
        raise StorageError(
            f"{plain}: the URL has a password or a query; give credentials by environment variables (docs/scaling.md)"
        )
    if not parts.netloc and parts.scheme != "memory":
        raise StorageError(f"{plain}: the name of the bucket or server is missing")
    if parts.scheme in ("http", "https"):
        return plain.rstrip("/")
    return location.rstrip("/")  # with # and ? that a name in a bucket may have


def join_url(url: str, name: str) -> str:
    """The URL of the file `name` below the folder `url`."""
    return f"{url.rstrip('/')}/{name}" if name else url
