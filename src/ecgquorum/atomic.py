"""Writes that happen whole or not at all."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def write_atomically(path: Path, content: bytes | str) -> None:
    """Replace the file at `path` with `content`; a crash leaves the old file or the new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = _scratch(path)
    try:
        with scratch.open("wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        scratch.replace(path)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise


@contextmanager
def folder_written_whole(path: Path) -> Iterator[Path]:
    """Yield a scratch folder that becomes `path` when the block ends well and vanishes when it does not."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = _scratch(path)
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    try:
        yield scratch
        scratch.replace(path)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise


def _scratch(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.partial")
