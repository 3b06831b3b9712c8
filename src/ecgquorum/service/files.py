"""Store of uploaded files, named by their SHA-256; a client's file name never becomes a path.

DIR/files/ab/abcdef...    the bytes of one upload
DIR/traces/ID             samples of one recording for the viewer: float32, (lead, time), millivolt
DIR/incoming/             uploads in progress
"""

import hashlib
import os
import secrets
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO

import anyio.to_thread
import numpy as np
from numpy.typing import NDArray

from ecgquorum._internal.atomic import write_atomic
from ecgquorum.recordings.discovery import RecordingPath
from ecgquorum.recordings.wfdb_files import signal_files
from ecgquorum.service.http_errors import DiskFullError, TooLargeError, UnprocessableError

_ABANDONED_S = 24 * 3600.0
_BUFFER_BYTES = 1 << 20
_FOLDERS = ("files", "traces", "incoming")


@dataclass(frozen=True)
class StoredFile:
    """A file that is written and synced to disk."""

    sha256: str
    n_bytes: int


@dataclass(frozen=True)
class NamedFile:
    """A stored file and its name in the recording's header."""

    name: str
    ending: str
    sha256: str


class FileStore:
    """The data folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for part in _FOLDERS:
            (folder / part).mkdir(parents=True, exist_ok=True, mode=0o700)

    def clear_abandoned(self) -> None:
        """Remove files of uploads that were interrupted long ago."""
        for path in (self.folder / "incoming").iterdir():
            if path.is_file() and time.time() - path.stat().st_mtime > _ABANDONED_S:
                path.unlink(missing_ok=True)

    def path(self, sha256: str) -> Path:
        """Path of a stored file."""
        return self.folder / "files" / sha256[:2] / sha256

    async def store(self, chunks: AsyncIterator[bytes], limit: int) -> StoredFile:
        """Store an upload of at most `limit` bytes; when this returns, the file is synced to disk."""
        scratch = self.folder / "incoming" / secrets.token_hex(16)
        digest, n_bytes, buffer = hashlib.sha256(), 0, bytearray()
        try:
            with scratch.open("xb") as file:
                async for chunk in chunks:
                    n_bytes += len(chunk)
                    if n_bytes > limit:
                        raise TooLargeError(f"the file has more than {limit} bytes; split the recording")
                    digest.update(chunk)
                    buffer += chunk
                    if len(buffer) >= _BUFFER_BYTES:
                        await anyio.to_thread.run_sync(file.write, bytes(buffer))
                        buffer.clear()
                if n_bytes == 0:
                    raise UnprocessableError("the file is empty")
                await anyio.to_thread.run_sync(self._finish, file, bytes(buffer), scratch, digest.hexdigest())
        except OSError as error:
            raise DiskFullError(f"could not store the file: {error.strerror}; nothing was saved") from error
        finally:
            scratch.unlink(missing_ok=True)
        return StoredFile(digest.hexdigest(), n_bytes)

    def _finish(self, file: BinaryIO, rest: bytes, scratch: Path, sha256: str) -> None:
        file.write(rest)
        file.flush()
        os.fsync(file.fileno())
        target = self.path(sha256)
        if not target.parent.is_dir():
            target.parent.mkdir(exist_ok=True, mode=0o700)
            _sync_folder(target.parent.parent)
        scratch.replace(target)
        _sync_folder(target.parent)

    def hash_file(self, sha256: str) -> str | None:
        """SHA-256 of the content of a stored file now; None if it is missing."""
        try:
            with self.path(sha256).open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except FileNotFoundError:
            return None

    def read(self, sha256: str, limit: int) -> bytes:
        """The first bytes of a stored file."""
        with self.path(sha256).open("rb") as file:
            return file.read(limit)

    @contextmanager
    def lay_out(self, files: Sequence[NamedFile]) -> Iterator[RecordingPath]:
        """Lay the files of a recording out in a temporary folder, under generated names, for a reader."""
        with tempfile.TemporaryDirectory(prefix="ecgquorum-", dir=self.folder / "incoming") as scratch:
            for name, content in recording_files("recording", files, self):
                target = Path(scratch) / name
                if isinstance(content, bytes):
                    target.write_bytes(content)
                else:
                    target.symlink_to(content.absolute())
            yield RecordingPath(scratch, f"recording{files[0].ending}")

    def store_trace(self, recording_id: str, signal: NDArray[np.float32]) -> None:
        """Store samples for the viewer; a sample that is not finite becomes NaN. After some, call `sync_traces`."""
        samples = np.where(np.isfinite(signal), signal, np.nan).astype("<f4")
        write_atomic(self.trace_path(recording_id), samples.tobytes())

    def sync_traces(self) -> None:
        """Sync the names of stored samples to disk."""
        _sync_folder(self.folder / "traces")

    def trace_path(self, recording_id: str) -> Path:
        """Path of the samples of a recording."""
        return self.folder / "traces" / recording_id


def recording_files(stem: str, files: Sequence[NamedFile], store: FileStore) -> Iterator[tuple[str, Path | bytes]]:
    """Names, from `stem`, and paths or contents of the files of a recording.

    A WFDB header is rewritten to name its signal files as they are called here.
    """
    first, *others = files
    names = {file.name: f"{stem}-{i}{_signal_ending(file.ending)}" for i, file in enumerate(others)}
    if first.ending == ".hea":
        yield f"{stem}.hea", _rename_signal_files(store.path(first.sha256).read_bytes(), names)
    else:
        yield f"{stem}{first.ending}", store.path(first.sha256)
    for file in others:
        yield names[file.name], store.path(file.sha256)


def _signal_ending(ending: str) -> str:
    return ending if ending in (".dat", ".mat") else ".dat"


def _rename_signal_files(header: bytes, names: dict[str, str]) -> bytes:
    """Replace the names of signal files in a WFDB header."""
    known = set(signal_files(header))
    lines, is_first = [], True
    for line in header.decode("latin-1").splitlines():
        words = line.split(maxsplit=1)
        if words and not words[0].startswith("#"):
            if not is_first and words[0] in known & names.keys():
                line = " ".join([names[words[0]], *words[1:]])
            is_first = False
        lines.append(line)
    return ("\n".join(lines) + "\n").encode("latin-1")


def suffix_of(name: str) -> str:
    """The suffix of a client's file name, in lower case."""
    return PurePosixPath(name).suffix.lower()


def _sync_folder(folder: Path) -> None:
    """Sync the entries of a folder to disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
