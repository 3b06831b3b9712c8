"""Files of a web server, to read only: a folder is a page of links."""

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, NoReturn, TypeVar

from ecgquorum.errors import StorageError
from ecgquorum.storage.backends import CHUNK, Backend, Content, FileVersion, number_version
from ecgquorum.storage.retries import FileMissingError, FileRefusedError, call_store

_ABSENT = (404, 410)
_NO_HEAD = (400, 403, 405, 501)
"""Answers of servers that know no HEAD requests."""
_DEAD = FileVersion(-1, number_version("dead link"))

T = TypeVar("T")


class WebBackend(Backend):
    """http and https; a request that fails for a moment raises, so that only 404 and 410 are a missing file."""

    def __init__(self, scheme: str) -> None:
        try:
            import aiohttp
            import fsspec

            self._store = fsspec.filesystem(scheme)
        except ImportError:
            raise StorageError(f'{scheme}://: needs further packages: pip install "ecgquorum[cloud]"') from None
        self._status_error = aiohttp.ClientResponseError

    def list_files(self, url: str) -> dict[str, FileVersion]:
        """Every file that the pages below the folder link to; a dead link is listed with an unknown size."""
        folder, files = url.rstrip("/"), dict[str, FileVersion]()
        waiting, seen = [f"{folder}/"], {f"{folder}/"}
        while waiting:
            page = waiting.pop()
            try:
                links = call_store(page, lambda page=page: self._store.ls(page, detail=True))  # type: ignore[misc]
            except (FileMissingError, FileRefusedError) as error:
                if page == f"{folder}/":
                    if isinstance(error, FileMissingError):
                        return {}
                    raise
                files[page[len(folder) + 1 :].rstrip("/")] = _DEAD
                continue
            for link in (str(one["name"]) for one in links):
                name = link[len(folder) + 1 :]
                if link in seen or name.rpartition("/")[2].startswith(("?", "#")):  # the page itself, sorted otherwise
                    continue
                seen.add(link)
                if link.endswith("/") and not {"", ".", ".."} & set(name[:-1].split("/")):
                    waiting.append(link)
                else:
                    files[name.rstrip("/")] = self._find_link(link)
        return files

    def _find_link(self, url: str) -> FileVersion:
        try:
            return call_store(url, lambda: self.find(url)) or _DEAD
        except FileRefusedError:
            return _DEAD

    def find(self, url: str) -> FileVersion | None:
        try:
            return self._run(self._ask, url)
        except self._status_error as error:
            if error.status in _ABSENT:
                return None
            raise

    def read_into(self, url: str, file: Any) -> FileVersion:
        try:
            return self._run(self._get, url, file)
        except self._status_error as error:
            if error.status in _ABSENT:
                raise FileMissingError(f"{url}: no such file") from None
            raise

    def put(self, url: str, content: Content) -> NoReturn:  # noqa: ARG002 (as all have it)
        raise StorageError(f"{url}: files can be read from a web server, not written; name a bucket or a folder")

    def delete(self, url: str) -> NoReturn:
        raise StorageError(f"{url}: files on a web server cannot be removed")

    def _run(self, request: Callable[..., Coroutine[Any, Any, T]], *arguments: Any) -> T:
        from fsspec.asyn import sync

        result: T = sync(self._store.loop, request, *arguments)
        return result

    async def _ask(self, url: str) -> FileVersion:
        session, at = await self._store.set_session(), self._store.encode_url(url)
        options = {"headers": {"Accept-Encoding": "identity"}, "allow_redirects": True}
        async with session.head(at, **options) as answer:
            if answer.status not in _NO_HEAD:
                answer.raise_for_status()
                return _read_version(answer.headers)
        async with session.get(at, **options) as answer:  # closed before its content arrives
            answer.raise_for_status()
            return _read_version(answer.headers)

    async def _get(self, url: str, file: Any) -> FileVersion:
        session, at = await self._store.set_session(), self._store.encode_url(url)
        async with session.get(at, headers={"Accept-Encoding": "identity"}) as answer:
            answer.raise_for_status()
            found, size = _read_version(answer.headers), 0
            async for chunk in answer.content.iter_chunked(CHUNK):
                size += file.write(chunk)
        if found.size not in (-1, size):
            raise ConnectionError("the file ended early")
        return found


def _read_version(headers: Mapping[str, str]) -> FileVersion:
    is_encoded = headers.get("Content-Encoding", "identity") not in ("", "identity")
    size = -1 if is_encoded else int(headers.get("Content-Length", -1))
    changed = headers.get("ETag", "").strip('"') or headers.get("Last-Modified") or "unknown"
    return FileVersion(size, number_version(changed))
