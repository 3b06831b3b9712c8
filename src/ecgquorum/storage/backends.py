"""List, read and write files of a store: S3 and Google Cloud Storage by PyArrow, web servers by aiohttp.

They are imported when a URL is used for the first time.
"""

import hashlib
import mmap
import os
import re
import secrets
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from ecgquorum.errors import StorageError
from ecgquorum.storage.retries import FileMissingError, call_store

CHUNK = 16 << 20
_ONE_PUT = 10_000_000
_PARTIAL = re.compile(r"\.partial-[0-9a-f]{32}$")

Content = bytes | mmap.mmap


@dataclass(frozen=True)
class FileVersion:
    """Size in bytes (-1: unknown), and a number that changes with the content: a time in ns, or a hash."""

    size: int
    version: int


class Backend(ABC):
    """One kind of store; every method takes whole URLs and is one attempt."""

    @abstractmethod
    def list_files(self, url: str) -> dict[str, FileVersion]:
        """Every file below the folder, by its name relative to it."""

    @abstractmethod
    def find(self, url: str) -> FileVersion | None:
        """The version of a file; None if there is none."""

    @abstractmethod
    def read_into(self, url: str, file: Any) -> FileVersion:
        """Write the content of a file to an open file; returns its version."""

    @abstractmethod
    def put(self, url: str, content: Content) -> None:
        """Create or replace a file; readers see the old content or the new one."""

    @abstractmethod
    def delete(self, url: str) -> None:
        """Remove a file."""


@lru_cache(maxsize=32)
def open_backend(url: str) -> Backend:
    """The backend for a URL of this scheme and host, kept while the process lives."""
    scheme = urlsplit(url).scheme
    if scheme in ("s3", "gs"):
        return _ArrowBackend(url)
    if scheme == "memory":
        return _MemoryBackend()
    from ecgquorum.storage.web_server import WebBackend

    return WebBackend(scheme)


class _ArrowBackend(Backend):
    """S3 and Google Cloud Storage.

    A put of up to 10 MB is one request. A larger one goes to a key beside the file, which is copied when it is whole:
    PyArrow completes a multipart upload also after a part of it has failed.
    """

    def __init__(self, url: str) -> None:
        try:
            from pyarrow import fs
        except ImportError:
            raise StorageError(f'{url}: needs further packages: pip install "ecgquorum[cloud]"') from None
        self._fs = fs
        if urlsplit(url).scheme == "gs":
            self._store = fs.GcsFileSystem()
            return
        endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
        region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
        if not endpoint and not region:
            region = call_store(url, lambda: fs.resolve_s3_region(urlsplit(url).netloc))
        options: dict[str, Any] = {"region": region or "us-east-1", "allow_delayed_open": True}
        if endpoint:
            options |= {"endpoint_override": endpoint, "scheme": urlsplit(endpoint).scheme or "https"}
        retries = fs.AwsDefaultS3RetryStrategy(max_attempts=0)  # `call_store` repeats, and says so
        self._store = fs.S3FileSystem(background_writes=False, retry_strategy=retries, **options)

    def list_files(self, url: str) -> dict[str, FileVersion]:
        path = _bucket_path(url)
        try:
            found = self._store.get_file_info(self._fs.FileSelector(path, recursive=True))
        except FileNotFoundError:
            return {}
        return {
            one.path[len(path) + 1 :]: FileVersion(one.size, one.mtime_ns or 0)
            for one in found
            if one.is_file and not _PARTIAL.search(one.path)
        }

    def find(self, url: str) -> FileVersion | None:
        try:
            with self._store.open_input_file(_bucket_path(url)) as source:  # one HEAD request, with the ETag
                return _arrow_version(source)
        except FileNotFoundError:
            return None

    def read_into(self, url: str, file: Any) -> FileVersion:
        with self._store.open_input_file(_bucket_path(url)) as source:
            version = _arrow_version(source)
            left = version.size
            while left:
                chunk = source.read(min(left, CHUNK))
                if not chunk:
                    raise ConnectionError("the file ended early")
                file.write(chunk)
                left -= len(chunk)
            return version

    def put(self, url: str, content: Content) -> None:
        if len(content) <= _ONE_PUT:
            self._send(url, content)
            return
        partial = f"{url}.partial-{secrets.token_hex(16)}"
        try:
            self._send(partial, content)
            self._store.copy_file(_bucket_path(partial), _bucket_path(url))
            self._compare_size(url, content)
        finally:
            with suppress(Exception):  # listings leave it out
                self.delete(partial)

    def _send(self, url: str, content: Content) -> None:
        with self._store.open_output_stream(_bucket_path(url)) as stream:
            stream.write(content)
        self._compare_size(url, content)

    def _compare_size(self, url: str, content: Content) -> None:
        found = self.find(url)  # an ETag is no MD5 of an encrypted object
        if found is None or found.size != len(content):
            raise ConnectionError("the file in the store is not the one that was sent")

    def delete(self, url: str) -> None:
        self._store.delete_file(_bucket_path(url))


def _bucket_path(url: str) -> str:
    return url.partition("://")[2]


def _arrow_version(source: Any) -> FileVersion:
    known = {name: value.decode() for name, value in (source.metadata() or {}).items()}
    etag = known.get("ETag", "").strip('"') or known.get("etag", "")
    return FileVersion(source.size(), number_version(etag or known.get("Last-Modified", "")))


def number_version(text: str) -> int:
    """A number for an ETag or a date; 0 for none."""
    return int(hashlib.sha256(text.encode()).hexdigest()[:15], 16) if text else 0


class _MemoryBackend(Backend):
    """The memory of this process, for tests."""

    def __init__(self) -> None:
        try:
            import fsspec
        except ImportError:
            raise StorageError('memory://: needs further packages: pip install "ecgquorum[cloud]"') from None
        self._store = fsspec.filesystem("memory")

    def list_files(self, url: str) -> dict[str, FileVersion]:
        folder = self._store._strip_protocol(url).rstrip("/")
        try:
            found = self._store.find(folder, detail=True)
        except FileNotFoundError:
            return {}
        return {name[len(folder) + 1 :]: _memory_version(info) for name, info in found.items()}

    def find(self, url: str) -> FileVersion | None:
        try:
            info = self._store.info(self._store._strip_protocol(url))
        except FileNotFoundError:
            return None
        return _memory_version(info) if info.get("type") == "file" else None

    def read_into(self, url: str, file: Any) -> FileVersion:
        found = self.find(url)
        if found is None:
            raise FileMissingError(f"{url}: no such file")
        file.write(self._store.cat_file(self._store._strip_protocol(url)))
        return found

    def put(self, url: str, content: Content) -> None:
        self._store.pipe_file(self._store._strip_protocol(url), bytes(content))

    def delete(self, url: str) -> None:
        self._store.rm_file(self._store._strip_protocol(url))


def _memory_version(info: dict[str, Any]) -> FileVersion:
    return FileVersion(int(info["size"]), number_version(str(info["created"])))
