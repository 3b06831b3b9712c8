"""CPSC 2018: 12-lead recordings of 6 to 144 s, nine classes, in either of its two layouts.

The original release has `.mat` files and a REFERENCE.csv with up to three labels a recording, numbered 1 to 9; the
PhysioNet/CinC Challenge 2020 has WFDB records with SNOMED CT codes in a `#Dx:` comment.
"""

import csv
from pathlib import PurePosixPath

from ecgquorum.cohorts.sources.source import Source, SourceRecord, names_by_id
from ecgquorum.recordings import STANDARD_LEADS, RecordingPath
from ecgquorum.recordings.filetree import FileTree

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
_NUMBERS = {str(number): name for number, name in enumerate(CLASSES, start=1)}
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
    """Recognise the data set in a folder or archive; None if it is something else."""
    for name in tree.sizes:
        if PurePosixPath(name).name.lower() == "reference.csv":
            rows = list(csv.reader(tree.read(name).decode("utf-8-sig", errors="replace").splitlines()))
            if rows and [cell.strip().lower() for cell in rows[0]] == _REFERENCE_HEADER:
                return _make_source(_original_records(tree, rows[1:]), _NUMBERS)
    headers = [name for name in tree.sizes if name.endswith(".hea")]
    if headers and any(_has_known_code(tree, name) for name in headers[:5]):
        records = {
            record: SourceRecord(RecordingPath(str(tree.path), name)) for record, name in names_by_id(headers).items()
        }
        return _make_source(records, SNOMED)
    return None


def _make_source(records: dict[str, SourceRecord], class_of_code: dict[str, str]) -> Source:
    return Source(NAME, CLASSES, CLASS_NAMES, records, leads=STANDARD_LEADS, class_of_code=class_of_code)


def _original_records(tree: FileTree, rows: list[list[str]]) -> dict[str, SourceRecord]:
    names = names_by_id(name for name in tree.sizes if name.endswith(".mat"))
    records: dict[str, SourceRecord] = {}
    for row in rows:
        if row and row[0].strip():
            record = row[0].strip().removesuffix(".mat")
            numbers = tuple(number.strip() for number in row[1:] if number.strip())
            records[record] = SourceRecord(RecordingPath(str(tree.path), names.get(record, f"{record}.mat")), numbers)
    return records


def _has_known_code(tree: FileTree, name: str) -> bool:
    text = tree.read(name).decode(errors="replace")
    comments = (line.lstrip("# ").lower() for line in text.splitlines() if line.startswith("#"))
    return any(comment.startswith("dx") and any(code in comment for code in SNOMED) for comment in comments)
