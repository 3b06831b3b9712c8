"""CPSC 2018: 12-lead recordings of 6 to 144 s, nine classes, in either of the two layouts that are about.

The original release has `.mat` files and a REFERENCE.csv with up to three labels a recording, numbered 1 to 9; the
PhysioNet/CinC Challenge 2020 has WFDB records with SNOMED CT codes in a `#Dx:` comment.
"""

import csv
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import PurePosixPath

from ecgquorum.cohorts.sources.source import Source, names_by_id
from ecgquorum.errors import RecordingError
from ecgquorum.recordings import STANDARD_LEADS, Recording
from ecgquorum.recordings.filetree import FileTree
from ecgquorum.recordings.readers import read_from

NAME = "CPSC 2018"
CLASS_NAMES = {
    "Normal": "normal rhythm",
    "AF": "atrial fibrillation",
    "I-AVB": "first-degree atrioventricular block",
    "LBBB": "left bundle branch block",
    "RBBB": "right bundle branch block",
    "PAC": "premature atrial contraction",
    "PVC": "premature ventricular contraction",
    "STD": "ST-segment depression",
    "STE": "ST-segment elevation",
}
CLASSES = tuple(CLASS_NAMES)
SNOMED = {
    "426783006": "Normal",
    "164889003": "AF",
    "270492004": "I-AVB",
    "164909002": "LBBB",
    "59118001": "RBBB",
    "284470004": "PAC",
    "164884008": "PVC",
    "429622005": "STD",
    "164931005": "STE",
}
RATE_HZ = 500.0
_REFERENCE_HEADER = ["recording", "first_label", "second_label", "third_label"]


def cpsc2018(tree: FileTree) -> Source | None:
    """The data set in this folder or archive; None when it is not there."""
    for name in tree.sizes:
        if PurePosixPath(name).name.lower() == "reference.csv":
            rows = list(csv.reader(tree.read(name).decode("utf-8-sig", errors="replace").splitlines()))
            if rows and [cell.strip().lower() for cell in rows[0]] == _REFERENCE_HEADER:
                return _source(_original(tree, rows[1:], name))
    headers = [name for name in tree.sizes if name.endswith(".hea")]
    if headers and any(_has_known_code(tree, name) for name in headers[:5]):
        return _source({record: partial(_load_coded, tree, name) for record, name in names_by_id(headers).items()})
    return None


def _source(load: dict[str, Callable[[], Recording]]) -> Source:
    return Source(NAME, CLASSES, CLASS_NAMES, load, leads=STANDARD_LEADS)


def _original(tree: FileTree, rows: list[list[str]], reference: str) -> dict[str, Callable[[], Recording]]:
    names = names_by_id(name for name in tree.sizes if name.endswith(".mat"))
    load: dict[str, Callable[[], Recording]] = {}
    for row in rows:
        if row and row[0].strip():
            record = row[0].strip().removesuffix(".mat")
            load[record] = partial(_load_numbered, tree, names.get(record, f"{record}.mat"), row[1:], reference)
    return load


def _load_numbered(tree: FileTree, name: str, numbers: list[str], reference: str) -> Recording:
    labels = []
    for number in numbers:
        if number.strip():
            if not number.strip().isdigit() or not 1 <= int(number) <= len(CLASSES):
                raise RecordingError(f"{tree.where(reference)}: {name}: expected labels from 1 to 9, found {number!r}")
            labels.append(CLASSES[int(number) - 1])
    return replace(read_from(tree, name), labels=tuple(labels))


def _load_coded(tree: FileTree, name: str) -> Recording:
    recording = read_from(tree, name)
    return replace(recording, labels=tuple(SNOMED.get(code, code) for code in recording.labels))


def _has_known_code(tree: FileTree, name: str) -> bool:
    text = tree.read(name).decode(errors="replace")
    comments = (line.lstrip("# ").lower() for line in text.splitlines() if line.startswith("#"))
    return any(comment.startswith("dx") and any(code in comment for code in SNOMED) for comment in comments)
