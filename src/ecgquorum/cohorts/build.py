"""Build a cohort: read every recording once, leave out what cannot be used, split, write."""

import csv
import hashlib
import io
import json
from collections.abc import Generator, Sequence
from contextlib import closing
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
from ecgquorum.cohorts.sources.source import Source, join_sources
from ecgquorum.cohorts.split import DEFAULT_SPLIT, SplitOptions, permutation_test_ids, split_parts
from ecgquorum.errors import CohortError, FittingError, RecordingError
from ecgquorum.preprocessing.input_spec import fill_gaps, resample, select_leads
from ecgquorum.preprocessing.prepare import read_recordings
from ecgquorum.progress import NO_PROGRESS, Progress
from ecgquorum.recordings import ReadFailure, Recording
from ecgquorum.recordings.filetree import open_tree
from ecgquorum.recordings.leads import normalise_lead
from ecgquorum.recordings.recording import FASTEST_RATE_HZ, SLOWEST_RATE_HZ


@dataclass
class BuildReport:
    """How many recordings of the source were kept, and which were left out.

    duplicates: a recording left out, and the one with the same samples that was kept
    conflicts:  two recordings with the same samples and different labels; neither is kept
    """

    kept: int = 0
    duplicates: list[tuple[str, str]] = field(default_factory=list)
    conflicts: list[tuple[str, str]] = field(default_factory=list)
    multi_label: list[str] = field(default_factory=list)
    unknown_label: list[str] = field(default_factory=list)
    same_patient_as_test: list[str] = field(default_factory=list)
    unreadable: list[ReadFailure] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)


def open_source(*sources: str, records: int = 1000, seconds: float = 30.0, seed: int = 0) -> Source:
    """Recognise a source: a data set in folders or archives, a folder with labels, or a simulation."""
    return join_sources([_open_source(source, records, seconds, seed) for source in sources])


def _open_source(source: str, records: int, seconds: float, seed: int) -> Source:
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
    split: SplitOptions = DEFAULT_SPLIT,
    progress: Progress = NO_PROGRESS,
    sandbox: bool = True,
) -> tuple[Cohort, BuildReport]:
    """Read every recording of `source` and write a cohort to `out`, a folder that must not exist yet.

    Left out and counted are exact duplicates (same samples, same rate), duplicates whose labels disagree, recordings
    with more than one label, and recordings that cannot be read. A test recording of `split.test_ids` stays whatever
    duplicates it has.

    sandbox: read files in worker processes with limits; False: in this process, for trusted files
    """
    out = Path(out)
    if out.exists():
        raise CohortError(f"{out}: exists already; remove it or choose another --out")
    if rate_hz is not None and not SLOWEST_RATE_HZ <= rate_hz <= FASTEST_RATE_HZ:
        raise CohortError(f"--rate: expected {SLOWEST_RATE_HZ:g} to {FASTEST_RATE_HZ:g} Hz, found {rate_hz:g}")
    fixed = None if split.test_ids is None else _read_test_ids(Path(split.test_ids), list(source.records))
    report = BuildReport(notices=list(source.notices))
    chosen = tuple(normalise_lead(name) for name in leads or ()) or source.leads
    with atomic_folder(out) as folder:
        writer = _SampleWriter(source, report, fixed or set(), rate_hz or source.rate_hz, chosen)
        with (folder / "unsorted.f32").open("wb") as file:
            order = sorted(source.records, key=lambda record: record not in writer.fixed)
            with closing(_read_source(source, order, report, sandbox)) as outcomes:
                for done, (record, recording) in enumerate(outcomes, start=1):
                    if recording is not None:
                        writer.add(file, record, recording)
                    progress.update("reading", done, len(order))
        if not writer.rows:
            why = f"; the first one: {report.unreadable[0].reason}" if report.unreadable else ""
            raise CohortError(f"{source.name}: expected recordings, found none that can be used{why}")
        rows = _split(list(writer.rows.values()), report, fixed, split, source.classes)
        rows = _compact(folder, rows, len(writer.leads or ()))
        report.kept = len(rows)
        _write_tables(folder, source, rows, writer.leads or (), writer.rate_hz or 0.0, split, report)
    return Cohort(out), report


def _write_tables(
    folder: Path,
    source: Source,
    rows: list[CohortRow],
    leads: tuple[str, ...],
    rate_hz: float,
    split: SplitOptions,
    report: BuildReport,
) -> None:
    table = io.StringIO()
    writer = csv.DictWriter(table, FIELDS)
    writer.writeheader()
    writer.writerows(asdict(row) for row in rows)
    write_atomic(folder / "records.csv", table.getvalue())
    test = {"test_share": split.test_share} if split.test_ids is None else {"test_ids": Path(split.test_ids).name}
    card = {
        "format": FORMAT,
        "source": source.name,
        "classes": source.classes,
        "class_names": dict(source.class_names),
        "leads": leads,
        "rate_hz": rate_hz,
        "unit": "mV",
        "split": {"seed": split.seed, "tune_share": split.tune_share} | test,
        "data_hash": data_hash(rows, source.classes, leads, rate_hz),
        "left_out": asdict(report),
    }
    write_atomic(folder / "cohort.json", json.dumps(card, indent=1, ensure_ascii=False) + "\n")


def _read_source(
    source: Source, order: Sequence[str], report: BuildReport, sandbox: bool
) -> Generator[tuple[str, Recording | None], None, None]:
    """(id, recording with its labels) in this order; None, and a line in the report, for one that cannot be read."""
    records = [source.records[record] for record in order]
    outcomes = read_recordings([one.path for one in records if one.path], sandbox=sandbox)
    corrected, doubtful = [], []
    with closing(outcomes):
        for record, one in zip(order, records, strict=True):
            if one.simulate:
                yield record, one.simulate()
                continue
            outcome = next(outcomes)
            if isinstance(outcome, ReadFailure):
                report.unreadable.append(replace(outcome, source=record))
                yield record, None
                continue
            recording = outcome.recording
            if recording.correction:
                corrected.append(f"{record}: {recording.correction}")
            if outcome.quality.severity:
                doubtful.append(f"{record}: {outcome.quality.reasons[0]}")
            stated = recording.labels if one.labels is None else one.labels
            labels = tuple((source.class_of_code or {}).get(code, code) for code in stated)
            known = replace(recording.acquisition, patient_id=one.patient or recording.patient)
            yield record, replace(recording, labels=labels, acquisition=known)
    if corrected:
        report.notices.append(f"{len(corrected)} recordings are read in another unit than stated; first {corrected[0]}")
    if doubtful:
        report.notices.append(f"{len(doubtful)} recordings of doubtful quality are kept; first {doubtful[0]}")


class _SampleWriter:
    """Appends usable recordings to the signal file; of two duplicates, the later one is left out."""

    def __init__(
        self,
        source: Source,
        report: BuildReport,
        fixed: set[str],
        rate_hz: float | None,
        leads: tuple[str, ...] | None,
    ) -> None:
        self.source, self.report, self.fixed = source, report, fixed
        self.rate_hz, self.leads = rate_hz, leads
        self.rows: dict[str, CohortRow] = {}
        self._first_with: dict[str, tuple[str, tuple[str, ...]]] = {}
        self._start = 0

    def add(self, file: IO[bytes], record: str, recording: Recording) -> None:
        """Append the recording, or report why it is left out."""
        self.leads, self.rate_hz = self.leads or recording.leads, self.rate_hz or recording.rate_hz
        try:
            chosen = select_leads(recording, self.leads)
            content = hashlib.sha256(f"{chosen.rate_hz:g}".encode() + chosen.signal.tobytes()).hexdigest()
            first, labels = self._first_with.setdefault(content, (record, recording.labels))
            if first != record and labels != recording.labels and first not in self.fixed:
                self.report.conflicts.append((record, first))
                self.rows.pop(first, None)
            elif first != record:
                self.report.duplicates.append((record, first))
            elif (label := _single_label(recording, record, self.source, self.report)) is not None:
                signal = resample(fill_gaps(chosen), chosen.rate_hz, self.rate_hz)
                samples = np.ascontiguousarray(signal, dtype="<f4").tobytes()
                file.write(samples)
                sha256 = hashlib.sha256(samples).hexdigest()
                patient = recording.patient or ""
                self.rows[record] = CohortRow(record, label, patient, "", self._start, signal.shape[1], sha256)
                self._start += signal.size
        except (RecordingError, FittingError) as error:
            self.report.unreadable.append(ReadFailure(record, str(error)))


def _compact(folder: Path, rows: list[CohortRow], n_leads: int) -> list[CohortRow]:
    """Turn `unsorted.f32` into `signal.f32`, which holds only the kept recordings."""
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
    """The class of the recording; None, and a line in the report, if it has several or an unknown one."""
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
    split: SplitOptions,
    classes: tuple[str, ...],
) -> list[CohortRow]:
    parts = split_parts(
        [row.label for row in rows],
        [row.patient for row in rows],
        seed=split.seed,
        tune=split.tune_share,
        test=split.test_share,
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


def _read_test_ids(path: Path, ids: list[str]) -> set[str]:
    """Ids of the test part, from a file; every one must be in the source."""
    try:
        if path.suffix == ".npy":
            return set(permutation_test_ids(np.load(path, allow_pickle=False), ids))
        ids_read = {line.strip() for line in path.read_text().splitlines() if line.strip()}
    except (OSError, ValueError) as error:
        raise CohortError(f"{path}: expected one id on each line, or a permutation as .npy; found: {error}") from error
    unknown = sorted(ids_read - set(ids))
    if unknown or not ids_read:
        raise CohortError(
            f"{path}: expected ids of the source, found {len(unknown)} unknown ones: {', '.join(unknown[:3]) or 'none'}"
        )
    return ids_read
