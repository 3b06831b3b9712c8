"""Any folder or archive of recordings with a `labels.csv`: columns `id` (or `file`), `label` and, if known, `patient`.

`id` is a recording's path in the folder, its ending left out or not. Several labels are separated by `|`.
"""

import csv
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import PurePosixPath

from ecgquorum.cohorts.sources.source import Source
from ecgquorum.errors import CohortError
from ecgquorum.recordings import Recording
from ecgquorum.recordings.filetree import FileTree
from ecgquorum.recordings.readers import read_from

LABELS_FILE = "labels.csv"


def labelled_folder(tree: FileTree) -> Source | None:
    """The recordings that `labels.csv` lists; None when there is no such file."""
    places = [name for name in tree.sizes if PurePosixPath(name).name == LABELS_FILE]
    if not places:
        return None
    where = f"{tree.path}/{places[0]}"
    base = PurePosixPath(places[0]).parent
    rows = csv.DictReader(tree.read(places[0], limit=1 << 28).decode("utf-8-sig", errors="replace").splitlines())
    columns = [column.strip() for column in rows.fieldnames or ()]
    rows.fieldnames = columns
    key = next((column for column in ("id", "file") if column in columns), None)
    if key is None or "label" not in columns:
        raise CohortError(f"{where}: expected the columns id and label, found {', '.join(columns) or 'none'}")
    load: dict[str, Callable[[], Recording]] = {}
    seen: set[str] = set()
    for number, row in enumerate(_lines(rows, where), start=2):
        name, text = (row[key] or "").strip(), (row["label"] or "").strip()
        if not name or not text:
            raise CohortError(f"{where}, line {number}: expected an id and a label, found {name!r}, {text!r}")
        if name in load:
            raise CohortError(f"{where}, line {number}: {name} is listed twice")
        labels = tuple(label.strip() for label in text.split("|") if label.strip())
        seen.update(labels)
        patient = (row.get("patient") or "").strip() or None
        load[name] = partial(_load, tree, (base / name).as_posix(), name, labels, patient)
    classes = tuple(sorted(seen))
    return Source(tree.path.name, classes, dict.fromkeys(classes, ""), load)


def _lines(rows: "csv.DictReader[str]", where: str) -> Iterator[dict[str, str | None]]:
    """The table's lines; blank ones are passed over, and a table that cannot be read is refused."""
    try:
        for row in rows:
            if any(value and str(value).strip() for value in row.values()):
                yield dict(row)
    except csv.Error as error:
        raise CohortError(f"{where}: expected a table with commas, found: {error}") from error


def _load(tree: FileTree, path: str, name: str, labels: tuple[str, ...], patient: str | None) -> Recording:
    return replace(read_from(tree, path), id=name, labels=labels, patient=patient)
