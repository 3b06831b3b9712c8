"""Building a cohort: read every recording once, leave out what cannot serve, split, write."""

import csv
import hashlib
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import IO

import numpy as np

from ecgquorum._internal.atomic import atomic_folder, write_atomic
from ecgquorum.cohorts.cohort import FIELDS, FORMAT, PARTS, Cohort, CohortRow, data_hash
from ecgquorum.cohorts.sources.cpsc2018 import cpsc2018
from ecgquorum.cohorts.sources.folder import LABELS_FILE, labelled_folder
from ecgquorum.cohorts.sources.physionet2017 import LABEL_FILES, physionet2017
from ecgquorum.cohorts.sources.simulated import PREFIX, synthetic
from ecgquorum.cohorts.sources.source import Source
from ecgquorum.cohorts.split import permutation_test_ids, split_parts
from ecgquorum.errors import CohortError, FittingError, RecordingError
from ecgquorum.preprocessing.input_spec import fill_gaps, resample, select_leads
from ecgquorum.recordings import Recording, Unreadable
from ecgquorum.recordings.filetree import open_tree
from ecgquorum.recordings.leads import normalise_lead
from ecgquorum.recordings.recording import FASTEST_RATE_HZ, SLOWEST_RATE_HZ

Progress = Callable[[int, int], None]
"""Called with how many are done, of how many."""


@dataclass
class BuildReport:
    """What became of every recording of the source.

    duplicates: a recording left out, and the one with the same samples that stayed
    conflicts:  two recordings with the same samples and different labels: neither can be learned from
    """

    kept: int = 0
    duplicates: list[tuple[str, str]] = field(default_factory=list)
    conflicts: list[tuple[str, str]] = field(default_factory=list)
    multi_label: list[str] = field(default_factory=list)
    unknown_label: list[str] = field(default_factory=list)
    same_patient_as_test: list[str] = field(default_factory=list)
    unreadable: list[Unreadable] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)


def open_source(source: str, *, records: int = 1000, seconds: float = 30.0, seed: int = 0) -> Source:
    """Recognise what `source` is: a data set in a folder or archive, a folder with labels, or a simulation."""
    if source.startswith(PREFIX):
        return synthetic(source.removeprefix(PREFIX), records=records, seconds=seconds, seed=seed)
    tree = open_tree(Path(source))
    for recognise in (labelled_folder, physionet2017, cpsc2018):
        found = recognise(tree)
        if found is not None:
            return found
    raise CohortError(
        f"{source}: expected {LABELS_FILE}, a label file of PhysioNet 2017 ({LABEL_FILES[0]}), a REFERENCE.csv of "
        "CPSC 2018 or WFDB headers with its #Dx codes, found none of them"
    )


def build_cohort(
    source: Source,
    out: str | Path,
    *,
    rate_hz: float | None = None,
    leads: Sequence[str] | None = None,
    test_ids: str | Path | None = None,
    tune_share: float = 0.1,
    test_share: float = 0.1,
    split_seed: int = 0,
    progress: Progress | None = None,
) -> tuple[Cohort, BuildReport]:
    """Read every recording of `source` and write a cohort to `out`, a folder that must not exist yet.

    Exact duplicates (same samples, same rate) and recordings with more than one label are left out and counted, as
    are recordings that cannot be read, and duplicates whose labels disagree. `test_ids` fixes the test part: a file
    with one id a line, or the authors' permutation as `.npy`. A test recording stays whatever duplicates it has.
    """
    out = Path(out)
    if out.exists():
        raise CohortError(f"{out}: expected a new folder, found something there; remove it or choose another --out")
    if not (tune_share > 0 and test_share >= 0 and tune_share + test_share < 1):
        raise CohortError(
            f"expected shares of tune and test that leave some to train, found {tune_share}, {test_share}"
        )
    if rate_hz is not None and not SLOWEST_RATE_HZ <= rate_hz <= FASTEST_RATE_HZ:
        raise CohortError(f"--rate: expected {SLOWEST_RATE_HZ:g} to {FASTEST_RATE_HZ:g} Hz, found {rate_hz:g}")
    fixed = None if test_ids is None else _test_ids(Path(test_ids), list(source.load))
    report = BuildReport(notices=list(source.notices))
    with atomic_folder(out) as folder:
        wanted = tuple(normalise_lead(name) for name in leads or ()) or source.leads
        with (folder / "unsorted.f32").open("wb") as file:
            rows, leads_kept, rate_kept = _written(
                file, source, report, fixed or set(), rate_hz or source.rate_hz, wanted, progress
            )
        if not rows:
            why = f"; the first one: {report.unreadable[0].reason}" if report.unreadable else ""
            raise CohortError(f"{source.name}: expected recordings, found none that can be used{why}")
        rows = _split(rows, report, fixed, split_seed, tune_share, test_share, source.classes)
        rows = _compacted(folder, rows, len(leads_kept))
        report.kept = len(rows)
        table = io.StringIO()
        writer = csv.DictWriter(table, FIELDS)
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)
        write_atomic(folder / "records.csv", table.getvalue())
        card = {
            "format": FORMAT,
            "source": source.name,
            "classes": source.classes,
            "class_names": dict(source.class_names),
            "leads": leads_kept,
            "rate_hz": rate_kept,
            "unit": "mV",
            "split": {"seed": split_seed, "tune_share": tune_share}
            | ({"test_share": test_share} if fixed is None else {"test_ids": Path(str(test_ids)).name}),
            "data_hash": data_hash(rows, source.classes, leads_kept, rate_kept),
            "left_out": asdict(report),
        }
        write_atomic(folder / "cohort.json", json.dumps(card, indent=1, ensure_ascii=False) + "\n")
    return Cohort(out), report


def _written(
    file: IO[bytes],
    source: Source,
    report: BuildReport,
    fixed: set[str],
    rate_hz: float | None,
    leads: tuple[str, ...] | None,
    progress: Progress | None,
) -> tuple[list[CohortRow], tuple[str, ...], float]:
    """Append every usable recording to `file`, test recordings first: of two duplicates, the later one goes."""
    rows: dict[str, CohortRow] = {}
    first_with: dict[str, tuple[str, tuple[str, ...]]] = {}
    corrected: list[str] = []
    start = 0
    order = sorted(source.load, key=lambda record: record not in fixed)
    for done, record in enumerate(order, start=1):
        try:
            recording = source.load[record]()
            if recording.correction:
                corrected.append(f"{record}: {recording.correction}")
            leads, rate_hz = leads or recording.leads, rate_hz or recording.rate_hz
            chosen = select_leads(recording, leads)
            content = hashlib.sha256(f"{chosen.rate_hz:g}".encode() + chosen.signal.tobytes()).hexdigest()
            first, labels = first_with.setdefault(content, (record, recording.labels))
            if first != record and labels != recording.labels and first not in fixed:
                report.conflicts.append((record, first))
                rows.pop(first, None)
            elif first != record:
                report.duplicates.append((record, first))
            elif (label := _single_label(recording, record, source, report)) is not None:
                signal = resample(fill_gaps(chosen), chosen.rate_hz, rate_hz)
                samples = np.ascontiguousarray(signal, dtype="<f4").tobytes()
                file.write(samples)
                kept_hash = hashlib.sha256(samples).hexdigest()
                rows[record] = CohortRow(record, label, recording.patient or "", "", start, signal.shape[1], kept_hash)
                start += signal.size
        except (RecordingError, FittingError) as error:
            report.unreadable.append(Unreadable(record, str(error)))
        if progress:
            progress(done, len(order))
    if corrected:
        report.notices.append(
            f"{len(corrected)} recordings are read in another unit than they state, the first {corrected[0]}"
        )
    return list(rows.values()), leads or (), rate_hz or 0.0


def _compacted(folder: Path, rows: list[CohortRow], n_leads: int) -> list[CohortRow]:
    """Turn `unsorted.f32` into `signal.f32`, which holds the kept recordings and nothing else."""
    written = (folder / "unsorted.f32").stat().st_size // 4
    if sum(row.n_samples for row in rows) * n_leads == written:
        (folder / "unsorted.f32").rename(folder / "signal.f32")
        return rows
    moved, start = [], 0
    with (folder / "unsorted.f32").open("rb") as source, (folder / "signal.f32").open("wb") as target:
        for row in rows:
            source.seek(4 * row.start)
            target.write(source.read(4 * row.n_samples * n_leads))
            moved.append(replace(row, start=start))
            start += row.n_samples * n_leads
    (folder / "unsorted.f32").unlink()
    return moved


def _single_label(recording: Recording, record: str, source: Source, report: BuildReport) -> str | None:
    """The recording's one class; None, and a line in the report, when it has several or none that we know."""
    known = [label for label in recording.labels if label in source.classes]
    if len(recording.labels) > 1:
        report.multi_label.append(record)
    elif not known:
        report.unknown_label.append(record)
    else:
        return known[0]
    return None


def _split(
    rows: list[CohortRow],
    report: BuildReport,
    fixed: set[str] | None,
    seed: int,
    tune_share: float,
    test_share: float,
    classes: tuple[str, ...],
) -> list[CohortRow]:
    parts = split_parts(
        [row.label for row in rows],
        [row.patient for row in rows],
        seed=seed,
        tune=tune_share,
        test=test_share,
        fixed_test=None if fixed is None else [row.id in fixed for row in rows],
    )
    report.same_patient_as_test = [row.id for row, part in zip(rows, parts, strict=True) if part is None]
    kept = [replace(row, part=part) for row, part in zip(rows, parts, strict=True) if part is not None]
    missing = [part for part in PARTS if part not in {row.part for row in kept}]
    if missing:
        report.notices.append(f"no recording is left for the part {', '.join(missing)}; the cohort is very small")
    untrained = [name for name in classes if name not in {row.label for row in kept if row.part == "train"}]
    if untrained:
        report.notices.append(f"no recording to train on for the class {', '.join(untrained)}")
    return kept


def _test_ids(path: Path, ids: list[str]) -> set[str]:
    """The ids that the file names; every one must be in the source."""
    try:
        if path.suffix == ".npy":
            return set(permutation_test_ids(np.load(path, allow_pickle=False), ids))
        wanted = {line.strip() for line in path.read_text().splitlines() if line.strip()}
    except (OSError, ValueError) as error:
        raise CohortError(f"{path}: expected one id a line, or a permutation as .npy; found: {error}") from error
    unknown = sorted(wanted - set(ids))
    if unknown or not wanted:
        raise CohortError(
            f"{path}: expected ids of the source, found {len(unknown)} unknown ones: {', '.join(unknown[:3]) or 'none'}"
        )
    return wanted
