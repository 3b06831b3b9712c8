"""The output of a triage at a URL: results are put in parts while it runs, everything else at the end.

URL/journal.sqlite       the journal of the last call that ended
URL/journal-parts/*      groups of results since then, as lines of JSON; NUMBER-HASH.jsonl
URL/worklist.csv, ...    as in a folder

Any machine can continue from the journal and the parts. Only one may at a time.
"""

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ecgquorum.ensemble.result import Result
from ecgquorum.errors import TriageError
from ecgquorum.preprocessing.prepare import TracePreview
from ecgquorum.storage import RemoteStore, cache_folder, parse_location
from ecgquorum.triage.journal import Journal, JournalEntry

PARTS = "journal-parts"
LOG = "triage.log"
_JOURNAL = "journal.sqlite"


def output_folder(out: str | Path) -> Path:
    """The folder on this machine for the output of a triage: itself, or that of a URL in the cache."""
    location = parse_location(out)
    if isinstance(location, Path):
        return location
    return cache_folder() / "outputs" / hashlib.sha256(location.encode()).hexdigest()[:24]


def open_journal(out: str | Path, about: Mapping[str, Any]) -> Journal:
    """The journal of a triage into a folder, or into the folder of a URL."""
    location = parse_location(out)
    if isinstance(location, Path):
        return Journal(location / _JOURNAL, about)
    return RemoteJournal(location, about)


def publish_output(out: str | Path) -> None:
    """Put the journal, and what was written to `output_folder`, and remove the parts; for a folder, do nothing."""
    location = parse_location(out)
    if isinstance(location, Path):
        return
    store, folder = RemoteStore(location), output_folder(location)
    there = store.list_files()
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
    for path in sorted(files, key=lambda path: path.name != _JOURNAL):  # the journal first
        name = path.relative_to(folder).as_posix()
        is_drawn = path.parent.name == "plots" and name in there and there[name].size == path.stat().st_size
        if not is_drawn and not name.startswith(f"{_JOURNAL}-"):
            store.write_file(name, path)
    for name in there:
        if name.startswith(f"{PARTS}/"):
            store.delete(name)


def forget_erased(out: str | Path) -> None:
    """Remove what this machine keeps of the output at a URL if it was erased there; call it before a log is opened."""
    location = parse_location(out)
    if isinstance(location, str) and _JOURNAL not in RemoteStore(location).list_files():
        shutil.rmtree(output_folder(location), ignore_errors=True)


class RemoteJournal(Journal):
    """A journal on this machine, made from what is at a URL; every group that is added is put there as a part."""

    def __init__(self, url: str, about: Mapping[str, Any]) -> None:
        self._store = RemoteStore(url)
        folder = output_folder(url)
        there = self._store.list_files()
        path = folder / _JOURNAL
        for old in folder.glob(f"{_JOURNAL}*" if _JOURNAL in there else "*"):
            if old.is_dir():
                shutil.rmtree(old)
            elif old.name != LOG:  # which is open; another machine may have continued, or the output was erased
                old.unlink()
        if _JOURNAL in there:
            folder.mkdir(parents=True, exist_ok=True)
            with self._store.open(_JOURNAL) as fetched:
                shutil.copyfile(fetched, path)
        try:
            super().__init__(path, about)
        except TriageError as error:
            raise TriageError(str(error).replace(str(folder), url)) from None
        if _JOURNAL not in there:
            self._store.write_file(_JOURNAL, path)  # with what all results will depend on
        parts = sorted(name for name in there if name.startswith(f"{PARTS}/"))
        for name in parts:
            super().add(self._read_part(name))
        self.n_added = 0
        self._n_parts = int(parts[-1].rpartition("/")[2].partition("-")[0]) if parts else 0

    def add(self, entries: Sequence[JournalEntry]) -> None:
        """Add a group of results; they are in the store when this returns."""
        super().add(entries)
        lines = [json.dumps(_entry_to_json(entry), ensure_ascii=False) + "\n" for entry in entries]
        content = "".join(lines).encode()
        self._n_parts += 1
        self._store.write(f"{PARTS}/{self._n_parts:08d}-{_digest(content)}.jsonl", content)

    def _read_part(self, name: str) -> list[JournalEntry]:
        with self._store.open(name) as path:
            content = path.read_bytes()
        if _digest(content) not in name:
            raise TriageError(f"{self._store.where(name)}: the content does not match its name; remove it")
        return [_entry_from_json(json.loads(line)) for line in content.decode().split("\n") if line]


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]


def _entry_to_json(entry: JournalEntry) -> dict[str, Any]:
    return {"result": entry.result.to_json(), "stamp": entry.stamp, "preview": asdict(entry.preview)}


def _entry_from_json(plain: Mapping[str, Any]) -> JournalEntry:
    return JournalEntry(Result.from_json(plain["result"]), plain["stamp"], TracePreview(**plain["preview"]))
