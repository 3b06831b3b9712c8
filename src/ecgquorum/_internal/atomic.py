"""Atomic writes of files and folders; errors name the file that could not be written."""

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import BinaryIO, TextIO

_DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG, errno.EROFS)  # of a write, which names no file
_PAGES = 64 << 10  # with less than this left, SQLite's journal cannot grow


def write_atomic(path: Path, content: bytes | str) -> None:
    """Replace the file at `path` with `content`; a crash leaves the old file or the new one, never a part."""
    with _open_scratch(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def atomic_file(path: Path) -> Iterator[TextIO]:
    """Yield a text file that becomes `path` at the end of the block, unless there is an error."""
    with _open_scratch(path) as file:
        text = TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
        yield text
        text.detach()


@contextmanager
def _open_scratch(path: Path) -> Iterator[BinaryIO]:
    scratch = _scratch_path(path)
    with _name_in_errors(path, scratch):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with scratch.open("wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            scratch.replace(path)
        except BaseException:
            scratch.unlink(missing_ok=True)
            raise


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Yield a scratch folder that becomes `path` at the end of the block; after an error it is removed."""
    scratch = _scratch_path(path)
    with _name_in_errors(path, scratch):
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch.mkdir()
        try:
            yield scratch
            scratch.replace(path)
        except BaseException:
            shutil.rmtree(scratch, ignore_errors=True)
            raise


@contextmanager
def _name_in_errors(path: Path, scratch: Path) -> Iterator[None]:
    """Raise errors of the scratch file, and of the disk, again with the name of the file to be written."""
    try:
        yield
    except OSError as error:
        is_ours = str(error.filename).startswith(str(scratch)) if error.filename else error.errno in _DISK_ERRORS
        if not is_ours:
            raise
        raise _disk_error(path, error.errno) from error


def check_disk_full(path: Path, error: Exception) -> None:
    """Raise the error of a full disk if that is what an error of the SQLite database at `path` means."""
    text = str(error)
    if "disk is full" in text or ("disk I/O" in text and shutil.disk_usage(path.parent).free < _PAGES):
        raise _disk_error(path, errno.ENOSPC) from error


def _disk_error(path: Path, number: int | None) -> OSError:
    reason = f"could not be written: {os.strerror(number or errno.EIO)}"
    if number in (errno.ENOSPC, errno.EDQUOT):
        reason += "; free some disk space and run the command again"
    return OSError(number, reason, str(path))


def _scratch_path(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.partial")
