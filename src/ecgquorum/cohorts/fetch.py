"""Download data sets and recorded noise from PhysioNet; each file is checked by SHA-256, a stopped one resumed."""

import hashlib
import http.client
import re
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from ecgquorum._internal.atomic import write_atomic
from ecgquorum.cohorts.sources import cpsc2018, physionet2017
from ecgquorum.errors import FetchError
from ecgquorum.progress import NO_PROGRESS, Progress

_AT_ONCE = 8
_TIMEOUT_S = 60
_CHUNK = 1 << 20
_TRIES = 4


@dataclass(frozen=True)
class DataSet:
    """Name, address, files (a regular expression) and terms of a data set."""

    title: str
    url: str
    pattern: str
    terms: str


DATA_SETS = {
    "physionet2017": DataSet(
        physionet2017.NAME,
        "https://physionet.org/files/challenge-2017/1.0.0/",
        r"^(training2017\.zip|REFERENCE-v3\.csv)$",
        "Open Data Commons Attribution 1.0; cite Clifford et al. 2017 and PhysioNet",
    ),
    "cpsc2018": DataSet(
        cpsc2018.NAME,
        "https://physionet.org/files/challenge-2020/1.0.2/",
        r"^training/cpsc_2018/.*\.(hea|mat)$",
        "CC BY 4.0; cite Liu et al. 2018 and Perez Alday et al. 2020",
    ),
    "nstdb": DataSet(
        "MIT-BIH Noise Stress Test Database",
        "https://physionet.org/files/nstdb/1.0.0/",
        r"^(bw|em|ma)\.(hea|dat)$",
        "Open Data Commons Attribution 1.0; cite Moody et al. 1984 and PhysioNet",
    ),
}


def fetch(name: str, out: str | Path, *, url: str | None = None, progress: Progress = NO_PROGRESS) -> Path:
    """Download the data set `name` into the folder `out`; complete files are not fetched again.

    url: a mirror with the same layout and a SHA256SUMS.txt
    """
    if name not in DATA_SETS:
        raise FetchError(f"expected one of {', '.join(DATA_SETS)}, found {name!r}")
    data_set, out = DATA_SETS[name], Path(out)
    base = (url or data_set.url).rstrip("/") + "/"
    if not base.startswith(("http://", "https://")):
        raise FetchError(f"expected an http or https address, found {base}")
    sums = _read_sums(base, data_set.pattern)
    done = 0
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        jobs = [pool.submit(_fetch_file, base, out, file, sha256) for file, sha256 in sums.items()]
        try:
            for job in jobs:
                job.result()
                done += 1
                progress.update("files", done, len(jobs))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    write_atomic(out / "TERMS.txt", f"{name} from {base}\n{data_set.terms}\n")
    return out


def _read_sums(base: str, pattern: str) -> dict[str, str]:
    """file -> SHA-256, for the files of the data set."""
    with _open_url(base + "SHA256SUMS.txt") as response:
        text = response.read().decode(errors="replace")
    sums = {}
    for line in text.splitlines():
        sha256, _, file = line.strip().partition(" ")
        file = file.strip().lstrip("*")
        parts = PurePosixPath(file).parts
        if re.search(pattern, file) and ".." not in parts and not file.startswith("/"):
            sums[file] = sha256.lower()
    if not sums:
        raise FetchError(f"{base}SHA256SUMS.txt: expected files like {pattern}, found none")
    return sums


def _fetch_file(base: str, out: Path, file: str, sha256: str) -> None:
    target = out / file
    if target.is_file() and _sha256(target) == sha256:
        return
    partial = target.with_name(target.name + ".part")
    target.parent.mkdir(parents=True, exist_ok=True)
    for fresh in (False, True):  # a partial file of another version cannot be completed: then start again
        if fresh:
            partial.unlink(missing_ok=True)
        _continue(base + file, partial)
        if _sha256(partial) == sha256:
            partial.replace(target)
            return
    partial.unlink(missing_ok=True)
    raise FetchError(f"{base}{file}: expected SHA-256 {sha256[:12]}..., found another; try again later")


def _continue(url: str, partial: Path) -> None:
    """Append the missing bytes to `partial`; a broken connection is resumed a few times."""
    for _ in range(_TRIES):
        have = partial.stat().st_size if partial.is_file() else 0
        try:
            response = _open_url(url, have)
        except _NothingLeftError:
            return
        with response, partial.open("ab" if have and response.status == 206 else "wb") as file:
            while chunk := _read_chunk(response):
                file.write(chunk)
        if not response.length:  # bytes that the server announced but did not send
            return
    raise FetchError(f"{url}: the connection broke {_TRIES} times; run the same command to resume")


def _read_chunk(response: Any) -> bytes:
    """The next bytes; none if the connection breaks."""
    try:
        return bytes(response.read(_CHUNK))
    except (OSError, http.client.HTTPException):
        return b""


class _NothingLeftError(Exception):
    """The server has no bytes after those we have."""


def _open_url(url: str, start: int = 0) -> Any:
    request = urllib.request.Request(url, headers={"Range": f"bytes={start}-"} if start else {})  # noqa: S310
    try:
        return urllib.request.urlopen(request, timeout=_TIMEOUT_S)  # noqa: S310
    except urllib.error.HTTPError as error:
        if error.code == 416 and start:
            raise _NothingLeftError from error
        raise FetchError(f"{url}: expected a file, found: {error.code} {error.reason}") from error
    except (urllib.error.URLError, OSError) as error:
        reason = getattr(error, "reason", error)
        raise FetchError(
            f"{url}: no answer ({reason}); this needs a network: fetch the files on another machine and copy them, "
            "or name a mirror with --url"
        ) from error


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
