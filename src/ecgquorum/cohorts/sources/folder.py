"""Any folder or archive of recordings with a `labels.csv`: columns `id` (or `file`), `label` and, if known, `patient`.

`id` is a recording's path in the folder, with or without its suffix. Several labels are separated by `|`.
"""

import csv
from collections.abc import Iterator
from pathlib import PurePosixPath

from ecgquorum.cohorts.sources.source import Source, SourceRecord
from ecgquorum.errors import CohortError
from ecgquorum.recordings import RecordingPath
from ecgquorum.recordings.filetree import FileTree
from ecgquorum.recordings.readers import recording_names

LABELS_FILE = "labels.csv"


def labelled_folder(tree: FileTree) -> Source | None:
    """The recordings that `labels.csv` lists; None if there is no such file."""
    tables = [name for name in tree.sizes if PurePosixPath(name).name == LABELS_FILE]
    if not tables:
        return None
    where = f"{tree.path}/{tables[0]}"
    base = PurePosixPath(tables[0]).parent
    rows = csv.DictReader(tree.read(tables[0], limit=1 << 28).decode("utf-8-sig", errors="replace").splitlines())
    columns = [column.strip() for column in rows.fieldnames or ()]
    rows.fieldnames = columns
    key = next((column for column in ("id", "file") if column in columns), None)
    if key is None or "label" not in columns:
        raise CohortError(f"{where}: expected the columns id and label, found {', '.join(columns) or 'none'}")
    by_stem = {name.rsplit(".", 1)[0]: name for name in recording_names(tree)}
    records: dict[str, SourceRecord] = {}
    seen: set[str] = set()
    for number, row in enumerate(_lines(rows, where), start=2):
        name, text = (row[key] or "").strip(), (row["label"] or "").strip()
        if not name or not text:
            raise CohortError(f"{where}, line {number}: expected an id and a label, found {name!r}, {text!r}")
        if name in records:
            raise CohortError(f"{where}, line {number}: {name} is listed twice")
        labels = tuple(label.strip() for label in text.split("|") if label.strip())
        seen.update(labels)
        patient = (row.get("patient") or "").strip() or None
        file = (base / name).as_posix()
        records[name] = SourceRecord(RecordingPath(str(tree.path), by_stem.get(file, file)), labels, patient)
    classes = tuple(sorted(seen))
    return Source(tree.path.name, classes, dict.fromkeys(classes, ""), records)


def _lines(rows: "csv.DictReader[str]", where: str) -> Iterator[dict[str, str | None]]:
    """The lines of the table that are not blank."""
    try:
        for row in rows:
            if any(value and str(value).strip() for value in row.values()):
                yield dict(row)
    except csv.Error as error:
        raise CohortError(f"{where}: expected a table with commas, found: {error}") from error
