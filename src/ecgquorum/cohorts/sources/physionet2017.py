"""PhysioNet/CinC Challenge 2017: single-lead recordings of 9 to 61 s at 300 Hz; normal, fibrillation, other, noise."""

import csv
from pathlib import Path, PurePosixPath

from ecgquorum.cohorts.sources.source import Source, SourceRecord
from ecgquorum.errors import CohortError
from ecgquorum.recordings import UNNAMED_LEAD, RecordingPath
from ecgquorum.recordings.filetree import FileTree, Folder, open_tree

NAME = "PhysioNet/CinC Challenge 2017"
CLASS_NAMES = {
    "N": "normal rhythm",
    "A": "atrial fibrillation",
    "O": "other rhythm",
    "~": "too noisy to tell",
}
RATE_HZ = 300.0
ARCHIVE = "training2017.zip"
LABEL_FILES = (
    "REFERENCE-v3.csv",
    "REFERENCE-v2.csv",
    "REFERENCE-v1.csv",
    "REFERENCE-v0.csv",
    "REFERENCE.csv",
    "REFERENCE-original.csv",
)
"""From the newest labels to the oldest."""


def physionet2017(tree: FileTree) -> Source | None:
    """Recognise the data set in a folder or archive; None if it is something else.

    Labels are taken from the newest label file inside or beside the archive.
    """
    label_trees: list[FileTree | _Beside] = [tree]
    if isinstance(tree, Folder):
        if (tree.path / ARCHIVE).is_file():
            tree = open_tree(tree.path / ARCHIVE)
            label_trees.append(tree)
    else:
        label_trees.append(_Beside(tree.path.parent))
    for label_file in LABEL_FILES:
        for label_tree in label_trees:
            for name in label_tree.sizes:
                if PurePosixPath(name).name == label_file:
                    labels = _read_labels(label_tree.read(name), label_tree.where(name))
                    if labels is not None:
                        return _make_source(tree, labels, label_tree.where(name), label_file)
    return None


class _Beside:
    """The label files next to an archive."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.sizes = {name: 0 for name in LABEL_FILES if (path / name).is_file()}

    def where(self, name: str) -> str:
        return str(self.path / name)

    def read(self, name: str) -> bytes:
        return (self.path / name).read_bytes()


def _read_labels(content: bytes, where: str) -> dict[str, str] | None:
    """id -> label; None if this is a label file of something else."""
    rows = [[cell.strip() for cell in row] for row in csv.reader(content.decode("utf-8-sig", "replace").splitlines())]
    numbered = [(number, row) for number, row in enumerate(rows, start=1) if any(row)]
    wrong = [(number, row) for number, row in numbered if len(row) != 2 or row[1] not in CLASS_NAMES]
    if len(wrong) * 2 >= len(numbered):
        return None
    if wrong:
        number, row = wrong[0]
        raise CohortError(
            f"{where}, line {number}: expected an id and one of {', '.join(CLASS_NAMES)}, found {','.join(row)[:80]!r}"
        )
    return {row[0]: row[1] for _, row in numbered}


def _make_source(tree: FileTree, labels: dict[str, str], where: str, label_file: str) -> Source:
    headers: dict[str, str] = {}  # the sample entry next to the training set holds copies with the same names
    for name in tree.sizes:
        if name.endswith(".hea"):
            headers.setdefault(PurePosixPath(name).stem, name)
    if not headers:
        raise CohortError(f"{tree.path}: expected recordings (.hea) that {label_file} labels, found none")
    notices = []
    if label_file != LABEL_FILES[0]:
        notices.append(f"labels come from {where}: {LABEL_FILES[0]}, which corrects it, was not found")
    unlabelled = len(headers.keys() - labels.keys())
    if unlabelled:
        notices.append(f"{unlabelled} recordings have no line in {label_file} and are left out")
    records = {
        record: SourceRecord(RecordingPath(str(tree.path), headers.get(record, f"{record}.hea")), (label,))
        for record, label in labels.items()
    }
    return Source(
        name=NAME,
        classes=tuple(CLASS_NAMES),
        class_names=CLASS_NAMES,
        records=records,
        leads=(UNNAMED_LEAD,),
        rate_hz=RATE_HZ,
        notices=tuple(notices),
    )
