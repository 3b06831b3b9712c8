"""Uploaded files, kept by their SHA-256; no name of a client ever becomes a path.

DIR/files/ab/abcdef...    the bytes of one upload
DIR/traces/ID             samples of one recording to draw: float32, (lead, time), millivolt
DIR/incoming/             uploads that are under way
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
from ecgquorum.recordings.readers import signal_files
from ecgquorum.service.http_errors import Full, TooLarge, Unprocessable

_ABANDONED_S = 24 * 3600.0
_AT_ONCE = 1 << 20
_PARTS = ("files", "traces", "incoming")


@dataclass(frozen=True)
class Kept:
    """A file that is safe on the disk."""

    sha256: str
    n_bytes: int


@dataclass(frozen=True)
class NamedFile:
    """A kept file, and what its recording's header calls it."""

    name: str
    ending: str
    sha256: str


class Files:
    """The data folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for part in _PARTS:
            (folder / part).mkdir(parents=True, exist_ok=True, mode=0o700)

    def clear_abandoned(self) -> None:
        """Remove what uploads left that never ended."""
        for path in (self.folder / "incoming").iterdir():
            if path.is_file() and time.time() - path.stat().st_mtime > _ABANDONED_S:
                path.unlink(missing_ok=True)

    def path(self, sha256: str) -> Path:
        """Where a kept file is."""
        return self.folder / "files" / sha256[:2] / sha256

    async def keep(self, chunks: AsyncIterator[bytes], limit: int) -> Kept:
        """Take an upload; when this returns, its bytes survive whatever happens. More than `limit` are refused."""
        scratch = self.folder / "incoming" / secrets.token_hex(16)
        digest, n_bytes, waiting = hashlib.sha256(), 0, bytearray()
        try:
            with scratch.open("xb") as file:
                async for chunk in chunks:
                    n_bytes += len(chunk)
                    if n_bytes > limit:
                        raise TooLarge(f"expected at most {limit} bytes, found more; cut the recording in parts")
                    digest.update(chunk)
                    waiting += chunk
                    if len(waiting) >= _AT_ONCE:
                        await anyio.to_thread.run_sync(file.write, bytes(waiting))
                        waiting.clear()
                if n_bytes == 0:
                    raise Unprocessable("expected a file, found no bytes")
                await anyio.to_thread.run_sync(self._finish, file, bytes(waiting), scratch, digest.hexdigest())
        except OSError as error:
            raise Full(f"expected room for the file, found: {error.strerror}; nothing was kept") from error
        finally:
            scratch.unlink(missing_ok=True)
        return Kept(digest.hexdigest(), n_bytes)

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

    def read(self, sha256: str, limit: int) -> bytes:
        """The first bytes of a kept file."""
        with self.path(sha256).open("rb") as file:
            return file.read(limit)

    @contextmanager
    def lay_out(self, files: Sequence[NamedFile]) -> Iterator[RecordingPath]:
        """A place that readers understand: the files side by side, under names of our own."""
        with tempfile.TemporaryDirectory(prefix="ecgquorum-", dir=self.folder / "incoming") as scratch:
            for name, content in layout("recording", files, self):
                target = Path(scratch) / name
                if isinstance(content, bytes):
                    target.write_bytes(content)
                else:
                    target.symlink_to(content.absolute())
            yield RecordingPath(scratch, f"recording{files[0].ending}")

    def keep_trace(self, recording_id: str, signal: NDArray[np.float32]) -> None:
        """Keep samples to draw; what is not finite is missing."""
        samples = np.where(np.isfinite(signal), signal, np.nan).astype("<f4")
        write_atomic(self.trace_path(recording_id), samples.tobytes())
        _sync_folder(self.folder / "traces")

    def trace_path(self, recording_id: str) -> Path:
        """Where the samples of a recording are."""
        return self.folder / "traces" / recording_id


def layout(stem: str, files: Sequence[NamedFile], kept: Files) -> Iterator[tuple[str, Path | bytes]]:
    """The recording's files, called `stem` and an ending of our own: where each is, or its new bytes.

    A WFDB header is rewritten to name its signal files as they are called here.
    """
    first, *others = files
    names = {file.name: f"{stem}-{i}{_signal_ending(file.ending)}" for i, file in enumerate(others)}
    if first.ending == ".hea":
        yield f"{stem}.hea", _renamed(kept.path(first.sha256).read_bytes(), names)
    else:
        yield f"{stem}{first.ending}", kept.path(first.sha256)
    for file in others:
        yield names[file.name], kept.path(file.sha256)


def _signal_ending(ending: str) -> str:
    return ending if ending in (".dat", ".mat") else ".dat"


def _renamed(header: bytes, names: dict[str, str]) -> bytes:
    """The header, with its signal files called by other names."""
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


def ending_of(name: str) -> str:
    """The ending of a client's name for a file, in small letters."""
    return PurePosixPath(name).suffix.lower()


def _sync_folder(folder: Path) -> None:
    """Have the disk know the folder's entries."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
