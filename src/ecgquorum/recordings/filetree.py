"""Read files in a folder or in a zip archive through one interface."""

import lzma
import os
import stat
import tempfile
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import IO, final

from ecgquorum.errors import RecordingError

_DAMAGED = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, RuntimeError, EOFError, OSError, ValueError)


class FileTree(ABC):
    """Files by their relative name, always with forward slashes.

    path: on this machine · url: where the files were fetched from
    """

    def __init__(self, path: Path, url: str = "") -> None:
        self.path, self.url = path, url

    @property
    @abstractmethod
    def sizes(self) -> Mapping[str, int]:
        """Every file's relative name and its size in bytes, sorted by name."""

    @property
    def unlisted(self) -> Mapping[str, str]:
        """What is in the tree but not in `sizes`, and why: a folder without permission, a link that leads nowhere."""
        return {}

    @abstractmethod
    def open(self, name: str) -> IO[bytes]:
        """The file's bytes, as a stream."""

    @abstractmethod
    def on_disk(self, limits: Mapping[str, int]) -> AbstractContextManager[Path]:
        """A folder that holds the named files side by side, of each at least the first `limit` bytes."""

    def where(self, name: str) -> str:
        """The file's path or URL, for messages."""
        return f"{self.url}/{name}" if self.url else str(self.path / name)

    def size(self, name: str) -> int | None:
        """The file's size in bytes; None when there is no such file."""
        return self.sizes.get(name)

    def first(self, name: str, n_bytes: int) -> bytes:
        """The first `n_bytes` of the file, or all of a shorter one."""
        try:
            with self.open(name) as file:
                return file.read(min(n_bytes, self.size(name) or 0))
        except _DAMAGED as error:
            raise RecordingError(f"{self.where(name)}: cannot be read, it is damaged: {error}") from error

    def read(self, name: str, limit: int = 1 << 20) -> bytes:
        """The whole file; raises if it is larger than `limit` bytes."""
        content = self.first(name, limit + 1)
        if len(content) > limit:
            raise RecordingError(f"{self.where(name)}: expected at most {limit} bytes, found more")
        return content


@final
class Folder(FileTree):
    """A folder and all that is below it."""

    @property
    def sizes(self) -> Mapping[str, int]:
        return self._listing[0]

    @property
    def unlisted(self) -> Mapping[str, str]:
        return self._listing[1]

    @cached_property
    def _listing(self) -> tuple[dict[str, int], dict[str, str]]:
        """Sizes of regular files, and why everything else has none; raises if the folder itself cannot be listed."""
        sizes: dict[str, int] = {}
        unlisted: dict[str, str] = {}

        def name_of(path: str | Path) -> str:
            return Path(path).relative_to(self.path).as_posix()

        def note(error: OSError) -> None:
            if Path(error.filename) == self.path:
                raise RecordingError(f"{self.path}: the folder cannot be listed: {error.strerror}") from error
            unlisted[name_of(error.filename)] = f"the folder cannot be listed: {error.strerror}"

        for folder, inner, names in os.walk(self.path, onerror=note):
            links = (path for path in (Path(folder, name) for name in inner) if _is_link(path))
            unlisted |= {name_of(path): "a link to a folder, which is not followed" for path in links}
            for path in (Path(folder, name) for name in names):
                size = _file_size(path)
                if size is None:
                    unlisted[name_of(path)] = "not a file that can be opened"
                else:
                    sizes[name_of(path)] = size
        return dict(sorted(sizes.items())), dict(sorted(unlisted.items()))

    def size(self, name: str) -> int | None:
        return _file_size(self.path / name)

    def open(self, name: str) -> IO[bytes]:
        try:
            return (self.path / name).open("rb")
        except OSError as error:
            raise RecordingError(f"{self.where(name)}: {error.strerror}") from error

    @contextmanager
    def on_disk(self, limits: Mapping[str, int]) -> Iterator[Path]:
        yield self.path / PurePosixPath(next(iter(limits))).parent


@final
class ZipArchive(FileTree):
    """A zip archive; only the recording that is being read is unpacked."""

    def __init__(self, path: Path, url: str = "") -> None:
        super().__init__(path, url)
        try:
            self._archive = zipfile.ZipFile(path)
        except Exception as error:  # what a damaged directory makes zipfile raise is not documented
            raise RecordingError(f"{url or path}: expected a zip archive, found it damaged: {error}") from error

    @cached_property
    def sizes(self) -> Mapping[str, int]:
        return {info.filename: info.file_size for info in sorted(self._infos(), key=lambda i: i.filename)}

    @property
    def unlisted(self) -> Mapping[str, str]:
        counts = Counter(info.filename for info in self._infos())
        return {
            f"{name} ({number})": "an earlier file of the same name in the archive"
            for name, count in counts.items()
            for number in range(1, count)
        }

    def _infos(self) -> list[zipfile.ZipInfo]:
        return [info for info in self._archive.infolist() if not info.is_dir()]

    def open(self, name: str) -> IO[bytes]:
        try:
            return self._archive.open(name)
        except (KeyError, *_DAMAGED) as error:
            raise RecordingError(f"{self.where(name)}: cannot be extracted from the archive: {error}") from error

    @contextmanager
    def on_disk(self, limits: Mapping[str, int]) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(prefix="ecgquorum-") as scratch:
            folder = Path(scratch)
            for name, limit in limits.items():
                (folder / PurePosixPath(name).name).write_bytes(self.first(name, limit))
            yield folder


@dataclass(frozen=True)
class OpenedFile:
    """One file that a reader is to read, in a folder or an archive."""

    tree: FileTree
    name: str

    @property
    def path(self) -> str:
        """Its path, for messages and `Recording.source`."""
        return self.tree.where(self.name)

    @property
    def stem(self) -> str:
        """Its name without folders and suffix."""
        return PurePosixPath(self.name).stem

    def read(self, limit: int = 256 << 20) -> bytes:
        """All its bytes; raises if there are more than `limit`."""
        return self.tree.read(self.name, limit)

    def head(self, n_bytes: int) -> bytes:
        """Its first `n_bytes`."""
        return self.tree.first(self.name, n_bytes)


def _file_size(path: Path) -> int | None:
    """In bytes; None for what is not a regular file, was deleted, is not accessible or has an invalid name."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None


def _is_link(path: Path) -> bool:
    try:
        return path.is_symlink()
    except OSError:  # a path that is too long; listing it says so
        return False


def open_tree(path: Path) -> FileTree:
    """The folder or zip archive at `path`."""
    if path.is_dir():
        return Folder(path)
    if path.is_file() and zipfile.is_zipfile(path):
        return ZipArchive(path)
    found = "another kind of file" if path.exists() else "nothing"
    raise RecordingError(f"{path}: expected a folder or a zip archive, found {found}")
