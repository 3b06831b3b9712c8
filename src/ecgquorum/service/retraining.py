"""Train again on the verdicts of a desk: a cohort of its closed cases, whose random sample is the test part.

OUT/cohort  the cohort, as `ecgquorum cohort build` writes it
OUT/model   the run and its bundle, as `ecgquorum train` writes them
"""

import csv
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.orm import Session

from ecgquorum.cohorts import BuildReport, Cohort, SplitOptions, build_cohort
from ecgquorum.cohorts.sources.folder import LABELS_FILE, labelled_folder
from ecgquorum.cohorts.sources.source import Source
from ecgquorum.ensemble import Ensemble
from ecgquorum.errors import DeskError
from ecgquorum.progress import NO_PROGRESS, Progress
from ecgquorum.recipes import Recipe
from ecgquorum.recordings.filetree import open_tree
from ecgquorum.service.exports import closed_cases
from ecgquorum.service.files import FileStore, NamedFile, recording_files
from ecgquorum.service.proportions import Proportion, proportion
from ecgquorum.service.settings import Settings
from ecgquorum.service.store.database import open_store
from ecgquorum.service.store.judgements import CLASS
from ecgquorum.service.store.tables import ModelRow, RecordingRow
from ecgquorum.service.store.worklist import is_open_case
from ecgquorum.training import train_ensemble

FEWEST_LABELS = 5
"""Verdicts of each class that it takes to train, beside those of the test part."""


@dataclass(frozen=True)
class LabelledCase:
    """A closed case whose verdict is one class; `drawn`: in the desk's random sample of all recordings.

    id: name of its first file in the cohort · ensemble_label: the class that the desk's model gave it
    """

    id: str
    label: str
    ensemble_label: str
    drawn: bool
    files: tuple[NamedFile, ...]


@dataclass(frozen=True)
class DeskLabels:
    """What a desk has to train on.

    model:         the newest model of the desk, whose classes, leads and rate are kept
    other_answers: closed cases that are left out: several classes, none of these, cannot tell, or a class of an
                   older model
    n_unread:      cases of the random sample that nobody has read yet
    """

    model: ModelRow
    cases: tuple[LabelledCase, ...]
    other_answers: Counter[str]
    n_unread: int

    @property
    def test_ids(self) -> list[str]:
        """Ids of the cases in the random sample."""
        return [case.id for case in self.cases if case.drawn]

    def check(self, data: Path) -> None:
        """Raise unless there are enough verdicts of every class."""
        found = Counter(case.label for case in self.cases if not case.drawn)
        few = [name for name in self.model.classes if found[name] < FEWEST_LABELS]
        if few:
            counts = ", ".join(f"{name} {found[name]}" for name in self.model.classes)
            raise DeskError(
                f"{data}: expected at least {FEWEST_LABELS} verdicts of each class outside the test part, found too "
                f"few of {', '.join(few)} ({counts}); read more cases first"
            )


@dataclass(frozen=True)
class RetrainingOptions:
    """How the cohort is built and the ensemble trained.

    database:       of a desk that does not use SQLite
    leads, rate_hz: of the cohort; None: those of the desk's newest model
    resume:         continue an interrupted call with the cohort that it built
    """

    database: str = ""
    leads: Sequence[str] | None = None
    rate_hz: float | None = None
    tune_share: float = 0.1
    split_seed: int = 0
    device: str = "auto"
    resume: bool = False
    progress: Progress = field(default=NO_PROGRESS)


DEFAULT_OPTIONS = RetrainingOptions()


@dataclass(frozen=True, eq=False)
class Retrained:
    """The outcome: accuracies on the test part of the new ensemble, and of the results that the desk had.

    report: what the cohort was built without; None if it was built by an earlier call
    """

    ensemble: Ensemble
    cohort: Cohort
    labels: DeskLabels
    report: BuildReport | None
    accuracy: Proportion
    accuracy_before: Proportion


def read_labels(data: str | Path, database: str = "") -> DeskLabels:
    """The verdicts of a desk that can be trained on, and how many cannot."""
    data = Path(data)
    store = open_store(Settings(data=data, model="", database=database).database_url, data, must_exist=True)
    try:
        with store.read_session() as session:
            return _read_labels(session, data)
    finally:
        store.close()


def _read_labels(session: Session, data: Path) -> DeskLabels:
    model = session.scalars(select(ModelRow).order_by(ModelRow.used_at.desc()).limit(1)).first()
    if model is None:
        raise DeskError(f"{data}: this desk has not classified anything yet; there are no verdicts to train on")
    unread = session.scalars(select(RecordingRow.id).where(RecordingRow.drawn.is_(True), is_open_case())).all()
    session.expunge(model)
    cases, others = [], Counter[str]()
    for case in closed_cases(session):
        if case.final.kind != CLASS:
            others["several classes" if case.final.labels else case.final.label] += 1
        elif case.final.label not in model.classes:
            others["a class of another model"] += 1
        else:
            files = tuple(NamedFile(file.name, file.ending, file.sha256 or "") for file in case.files)
            name = f"{case.row.id}{case.files[0].ending}"
            cases.append(LabelledCase(name, case.final.label, case.result.label, case.row.drawn, files))
    return DeskLabels(model, tuple(cases), others, len(unread))


def build_verdict_cohort(
    labels: DeskLabels, data: str | Path, out: str | Path, options: RetrainingOptions = DEFAULT_OPTIONS
) -> tuple[Cohort, BuildReport]:
    """Build a cohort of the labelled cases; those of the random sample are the test part, and no others.

    A patient's recordings stay in one part, where files state the patient: other recordings of patients in the test
    part are left out.
    """
    data, out = Path(data), Path(out)
    labels.check(data)
    leads = options.leads or labels.model.leads
    with tempfile.TemporaryDirectory(prefix="ecgquorum-") as scratch:
        source = _lay_out(labels, FileStore(data), Path(scratch) / "cases")
        test_ids = Path(scratch) / "random-sample.txt"
        test_ids.write_text("\n".join(labels.test_ids))
        drawn = test_ids if labels.test_ids else None
        split = SplitOptions(drawn, options.tune_share, 0.0, options.split_seed)
        return build_cohort(
            replace(source, name=f"desk {data.resolve().name}"),
            out,
            rate_hz=options.rate_hz or labels.model.rate_hz,
            leads=tuple(map(str, leads)) if leads else None,
            split=split,
            progress=options.progress,
        )


def _lay_out(labels: DeskLabels, files: FileStore, folder: Path) -> Source:
    """A folder of links to the stored files with their labels, as a source."""
    folder.mkdir()
    for name, content in _named_files(labels, files):
        if isinstance(content, bytes):
            (folder / name).write_bytes(content)
        else:
            (folder / name).symlink_to(content.absolute())
    with (folder / LABELS_FILE).open("w", newline="") as table:
        csv.writer(table).writerows([("id", "label"), *((case.id, case.label) for case in labels.cases)])
    source = labelled_folder(open_tree(folder))
    if source is None:
        raise DeskError(f"{folder}: the table of labels cannot be read")
    names = {str(key): str(value) for key, value in labels.model.class_names.items()}
    classes = tuple(str(name) for name in labels.model.classes)
    return replace(source, classes=classes, class_names={name: names.get(name, "") for name in classes})


def _named_files(labels: DeskLabels, files: FileStore) -> Iterator[tuple[str, Path | bytes]]:
    for case in labels.cases:
        yield from recording_files(case.id.partition(".")[0], case.files, files)


def retrain(
    data: str | Path, recipe: Recipe, out: str | Path, options: RetrainingOptions = DEFAULT_OPTIONS
) -> Retrained:
    """Build a cohort of the verdicts of the desk in `data`, train the recipe on it, and evaluate on the test part.

    Interrupted, the same call with `options.resume` continues.
    """
    out = Path(out)
    labels = read_labels(data, options.database)
    report: BuildReport | None = None
    if options.resume and (out / "cohort").is_dir():
        cohort = Cohort(out / "cohort")
    else:
        cohort, report = build_verdict_cohort(labels, data, out / "cohort", options)
    resume = options.resume and (out / "model").is_dir()
    ensemble = train_ensemble(
        recipe, cohort, out / "model", resume=resume, device=options.device, progress=options.progress
    )
    indices = cohort.part("test")
    before = {case.id: case.ensemble_label for case in labels.cases}
    rows = [cohort.rows[index] for index in indices]
    found = ensemble.predict_part(cohort, "test").labels if rows else []
    right = sum(label == row.label for label, row in zip(found, rows, strict=True))
    right_before = sum(before.get(row.id) == row.label for row in rows)
    total = len(rows)
    return Retrained(ensemble, cohort, labels, report, proportion(right, total), proportion(right_before, total))
