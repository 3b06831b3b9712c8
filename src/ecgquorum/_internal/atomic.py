"""Writes that happen whole or not at all."""

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import BinaryIO, TextIO

_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def write_atomic(path: Path, content: bytes | str) -> None:
    """Replace the file at `path` with `content`; a crash leaves the old file or the new one, never a part."""
    with _replacing(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def atomic_file(path: Path) -> Iterator[TextIO]:
    """Yield a text file to write line by line, which becomes `path` when the block ends well."""
    with _replacing(path) as file:
        text = TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
        yield text
        text.detach()


@contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = _scratch(path)
    try:
        with scratch.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        scratch.replace(path)
    except BaseException as error:
        scratch.unlink(missing_ok=True)
        _add_path(error, path)
        raise


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Yield a scratch folder that becomes `path` when the block ends well and vanishes when it does not."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = _scratch(path)
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    try:
        yield scratch
        scratch.replace(path)
    except BaseException as error:
        shutil.rmtree(scratch, ignore_errors=True)
        _add_path(error, path)
        raise


def _add_path(error: BaseException, path: Path) -> None:
    """Name the file in an error of a full disk, which the system raises without one."""
    if isinstance(error, OSError) and error.filename is None and error.errno in _NO_SPACE:
        error.filename = str(path)


def _scratch(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.partial")
