"""A folder of files that several processes share: on this machine, or in a store."""

import mmap
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import final

from ecgquorum._internal.atomic import write_atomic
from ecgquorum.storage.backends import FileVersion, open_backend
from ecgquorum.storage.cache import download, root_of
from ecgquorum.storage.retries import FileMissingError, call_store
from ecgquorum.storage.urls import join_url, parse_location


class FileStore(ABC):
    """Files by their relative names; it is sent to other processes as its path or URL."""

    @abstractmethod
    def where(self, name: str = "") -> str:
        """The path or URL of a file, for messages."""

    @abstractmethod
    def stamp(self, name: str) -> str:
        """Changes with the content of a file; empty if there is none."""

    @abstractmethod
    def open(self, name: str) -> AbstractContextManager[Path]:
        """A context with the path of the file on this machine; raises `FileNotFoundError` if there is none."""

    @abstractmethod
    def write(self, name: str, content: bytes) -> None:
        """Create or replace a file, atomically."""

    @abstractmethod
    def join(self, folder: str) -> "FileStore":
        """The store of a folder in this one."""


@final
@dataclass(frozen=True)
class LocalStore(FileStore):
    """A folder of this machine, or one that it shares with others."""

    path: Path

    def where(self, name: str = "") -> str:
        return str(self.path / name)

    def stamp(self, name: str) -> str:
        try:
            found = (self.path / name).stat()
        except OSError:
            return ""
        return f"{found.st_mtime_ns}:{found.st_size}"

    @contextmanager
    def open(self, name: str) -> Iterator[Path]:
        yield self.path / name

    def write(self, name: str, content: bytes) -> None:
        write_atomic(self.path / name, content)

    def join(self, folder: str) -> "LocalStore":
        return LocalStore(self.path / folder)


@final
@dataclass(frozen=True)
class RemoteStore(FileStore):
    """A folder of a bucket or a server."""

    url: str

    def where(self, name: str = "") -> str:
        return join_url(self.url, name)

    def stamp(self, name: str) -> str:
        url = self.where(name)
        found = call_store(url, lambda: open_backend(root_of(url)).find(url))
        return f"{found.version}:{found.size}" if found else ""

    @contextmanager
    def open(self, name: str) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(prefix="ecgquorum-") as folder:
            path = Path(folder) / name.rpartition("/")[2]
            try:
                download(self.where(name), path)
            except FileMissingError as error:
                raise FileNotFoundError(str(error)) from None
            yield path

    def write(self, name: str, content: bytes) -> None:
        url = self.where(name)
        call_store(url, lambda: open_backend(root_of(url)).put(url, content))

    def write_file(self, name: str, path: Path) -> None:
        """Put a file of this machine, without reading it into memory as a whole."""
        if not path.stat().st_size:
            self.write(name, b"")
            return
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            url = self.where(name)
            call_store(url, lambda: open_backend(root_of(url)).put(url, content))

    def join(self, folder: str) -> "RemoteStore":
        return RemoteStore(self.where(folder))

    def list_files(self) -> dict[str, FileVersion]:
        """Every file below the folder, by its relative name."""
        return call_store(self.url, lambda: open_backend(root_of(self.url)).list_files(self.url))

    def delete(self, name: str) -> None:
        """Remove a file."""
        url = self.where(name)
        call_store(url, lambda: open_backend(root_of(url)).delete(url))


def open_store(location: str | Path) -> FileStore:
    """The store at a path or URL; a path is made absolute, since processes may have other working folders."""
    parsed = parse_location(location)
    return LocalStore(parsed.resolve()) if isinstance(parsed, Path) else RemoteStore(parsed)
