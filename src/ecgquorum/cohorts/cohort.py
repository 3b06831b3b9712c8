"""Many labelled recordings on disk or in a bucket.

A cohort is a folder of three files: `cohort.json` (classes, leads, rate, where it came from, what was left out),
`records.csv` (one line for each recording: id, label, patient, part, offset in the signal file, content hash) and
`signal.f32` (all samples, one recording after another, each as lead x time, float32 millivolts). The signal file is
memory-mapped, so a cohort may be larger than memory. One at a URL is fetched to this machine first.
"""

import csv
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ecgquorum.errors import CohortError
from ecgquorum.preprocessing import InputSpec
from ecgquorum.recordings import Acquisition, Recording
from ecgquorum.storage import FileMissingError, fetch, join_url, parse_location

if TYPE_CHECKING:
    from ecgquorum.cohorts.batch import Batch

Part = Literal["train", "tune", "test"]
PARTS: tuple[Part, ...] = ("train", "tune", "test")
FORMAT = 1
FIELDS = ("id", "label", "patient", "part", "start", "n_samples", "sha256")


@dataclass(frozen=True)
class CohortRow:
    """One recording's line in `records.csv`.

    start:  offset of its samples in the signal file, in float32 values
    sha256: of its samples there
    """

    id: str
    label: str
    patient: str
    part: str
    start: int
    n_samples: int
    sha256: str


class Cohort:
    """Labelled recordings of one rate and one set of leads, split in train, tune and test parts."""

    def __init__(self, path: str | Path) -> None:
        self.path = parse_location(path)
        self.card = _read_card(self.path)
        self.rows = _read_rows(self.path)
        self.classes: tuple[str, ...] = tuple(self.card["classes"])
        self.class_names: dict[str, str] = dict(self.card["class_names"])
        self.leads: tuple[str, ...] = tuple(self.card["leads"])
        self.rate_hz = float(self.card["rate_hz"])
        self.labels: NDArray[np.int64] = np.array([self._class_index(row) for row in self.rows], dtype=np.int64)
        self._signal = self._map_samples()

    @staticmethod
    def from_arrays(x: Any, y: Any, *, rate_hz: float, **options: Any) -> "Cohort":
        """Return a cohort in memory; options as for `cohorts.arrays.cohort_from_arrays`."""
        from ecgquorum.cohorts.arrays import cohort_from_arrays  # which needs this module

        return cohort_from_arrays(x, y, rate_hz=rate_hz, **options)

    def __len__(self) -> int:
        return len(self.rows)

    def __reduce__(self) -> tuple[Callable[[str | Path, str], "Cohort"], tuple[str | Path, str]]:
        """Sent to another process as its path or URL, not as its samples."""
        return _open_same, (self.path.resolve() if isinstance(self.path, Path) else self.path, self.data_hash)

    @property
    def data_hash(self) -> str:
        """A hash of everything that training on this cohort depends on."""
        return data_hash(self.rows, self.classes, self.leads, self.rate_hz)

    def part(self, name: Part) -> NDArray[np.int64]:
        """Indices of the recordings in a part."""
        return np.flatnonzero([row.part == name for row in self.rows])

    def signal(self, index: int) -> NDArray[np.float32]:
        """(lead, time) in millivolts, from the memory-mapped file."""
        row = self.rows[index]
        stop = row.start + row.n_samples * len(self.leads)
        return self._signal[row.start : stop].reshape(len(self.leads), row.n_samples)

    def recording(self, index: int) -> Recording:
        """The recording at `index`, as if read from its file."""
        row = self.rows[index]
        return Recording(
            id=row.id,
            signal=np.array(self.signal(index)),
            rate_hz=self.rate_hz,
            leads=self.leads,
            acquisition=Acquisition(patient_id=row.patient),
            labels=(row.label,),
            source=f"{self.path}: {row.id}",
        )

    def batch(self, indices: Sequence[int] | NDArray[np.int64], spec: InputSpec) -> "Batch":
        """These recordings, scaled and padded or cut to the window of `spec`."""
        from ecgquorum.cohorts.batch import make_batch  # here, so that a cohort opens without PyTorch

        signals = [spec.scale(self.signal(int(index))) for index in indices]
        return make_batch(signals, spec.n_window, self.labels[list(indices)].tolist())

    def by_length(self, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        """Positions in `indices`, the shortest recording first."""
        return np.argsort([self.rows[index].n_samples for index in indices], kind="stable")

    def count_unseen(self, part: Part) -> dict[str, int]:  # noqa: ARG002 (none here; see `MappedCohort`)
        """Classes that a mapping of labels left out, and how many recordings of the part have them."""
        return {}

    def unseen_signal(self, name: str, part: Part, number: int) -> NDArray[np.float32]:
        """(lead, time) of a recording of a class that was left out."""
        raise CohortError(
            f"{self.path}: there is no recording {number} of the {part} part whose class {name} is left out"
        )

    def verify(self) -> None:
        """Read every sample; raise if one has changed since the cohort was built."""
        for index, row in enumerate(self.rows):
            if hashlib.sha256(np.ascontiguousarray(self.signal(index)).tobytes()).hexdigest() != row.sha256:
                raise CohortError(
                    f"{self.path}/signal.f32: the samples of {row.id} have changed; build the cohort again"
                )

    def _class_index(self, row: CohortRow) -> int:
        try:
            return self.classes.index(row.label)
        except ValueError:
            raise CohortError(
                f"{self.path}/records.csv: {row.id}: expected a class of {', '.join(self.classes)}, found {row.label!r}"
            ) from None

    def _map_samples(self) -> NDArray[np.float32]:
        path = _open_file(self.path, "signal.f32")
        expected = 4 * max((row.start + row.n_samples * len(self.leads) for row in self.rows), default=0)
        found = path.stat().st_size if path.is_file() else 0
        if found != expected or not expected:
            raise CohortError(
                f"{self.path}/signal.f32: expected {expected} bytes, found {found}; build the cohort again"
            )
        return np.memmap(path, dtype=np.float32, mode="r")


def _open_same(path: str | Path, expected: str) -> Cohort:
    """Open the cohort that another process has sent; this machine may have another one at the same path."""
    cohort = Cohort(path)
    if cohort.data_hash != expected:
        raise CohortError(f"{path}: expected the cohort that the work is about, found another one there")
    return cohort


def data_hash(rows: Sequence[CohortRow], classes: tuple[str, ...], leads: tuple[str, ...], rate_hz: float) -> str:
    """A hash over ids, labels, parts, samples, classes, leads and rate."""
    digest = hashlib.sha256(json.dumps([classes, leads, rate_hz]).encode())
    for row in rows:
        digest.update(f"{row.id}\0{row.label}\0{row.part}\0{row.sha256}\n".encode())
    return digest.hexdigest()


def _open_file(location: str | Path, name: str) -> Path:
    """The path on this machine of a file of the cohort, which may not exist."""
    return location / name if isinstance(location, Path) else fetch(join_url(location, name))


def _read_card(path: str | Path) -> dict[str, Any]:
    try:
        card = json.loads(_open_file(path, "cohort.json").read_text())
    except (FileNotFoundError, FileMissingError):
        raise CohortError(
            f"{path}: expected a cohort (cohort.json, records.csv, signal.f32), found none; "
            "make one with: ecgquorum cohort build SOURCE --out DIR"
        ) from None
    except (OSError, ValueError) as error:
        raise CohortError(f"{path}/cohort.json: expected JSON, found: {error}") from error
    if not isinstance(card, dict) or card.get("format") != FORMAT:
        raise CohortError(f"{path}/cohort.json: expected format {FORMAT}, found another; build the cohort again")
    missing = {"classes", "class_names", "leads", "rate_hz"} - card.keys()
    if missing:
        raise CohortError(f"{path}/cohort.json: expected {', '.join(sorted(missing))}, found none")
    return card


def _read_rows(path: str | Path) -> list[CohortRow]:
    try:
        with _open_file(path, "records.csv").open(newline="") as file:
            reader = csv.DictReader(file)
            if tuple(reader.fieldnames or ()) != FIELDS:
                raise CohortError(
                    f"{path}/records.csv: expected the columns {', '.join(FIELDS)}, found {reader.fieldnames}"
                )
            return [
                CohortRow(
                    r["id"],
                    r["label"],
                    r["patient"],
                    r["part"],
                    int(r["start"]),
                    int(r["n_samples"]),
                    r["sha256"],
                )
                for r in reader
            ]
    except (OSError, ValueError, TypeError) as error:
        raise CohortError(f"{path}/records.csv: expected one line a recording, found: {error}") from error
