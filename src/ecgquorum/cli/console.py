"""What the command line prints, and how."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

if TYPE_CHECKING:
    from ecgquorum.cohorts import BuildReport, Cohort
    from ecgquorum.ensemble.result import Result
    from ecgquorum.evaluation import Scorecard

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)
_EXAMPLES_SHOWN = 5


def print_answer(answer: "Result", names: dict[str, str]) -> None:
    label = answer.label
    name = f" ({names[label]})" if names.get(label) else ""
    out.print(
        f"{answer.id}  {label}{name}  probability {answer.probability:.3f}  "
        f"uncertainty {answer.uncertainty:.3f}  mutual information {answer.mutual_information:.4f} nat",
        style="bold",
        markup=False,
    )
    rows = [("", *answer.probabilities)]
    everyone = [("calibrated", answer.probabilities), ("raw mean", answer.raw_probabilities)]
    everyone += [(f"raw, member {i}", probs) for i, probs in enumerate(answer.raw_member_probabilities)]
    rows += [(f"  {title}", *(f"{value:.3f}" for value in probs.values())) for title, probs in everyone]
    print_table(rows)
    for line in dict.fromkeys((*answer.notices, *answer.quality.reasons)):
        err.print(f"{answer.id}: {line}", style="yellow", markup=False)


def print_exported(counts: Counter[str], folder: Path) -> None:
    """How many recordings have FHIR resources, and why others have none."""
    from ecgquorum.triage.fhir import REPEATED, REPORTED, UNHASHED

    out.print(f"FHIR R4 reports of {counts[REPORTED]} recordings are in {folder}", markup=False)
    if counts[REPEATED]:
        err.print(f"{counts[REPEATED]} repeat the content of others and share their report", style="yellow")
    if counts[UNHASHED]:
        err.print(f"{counts[UNHASHED]} could not even be opened and have no report", style="yellow")


def print_report(report: "BuildReport") -> None:
    for notice in report.notices:
        err.print(f"note: {notice}", style="yellow", markup=False)
    for entry in report.unreadable:
        err.print(f"left out: {entry.reason}", style="yellow", markup=False)
    counted = (
        (len(report.duplicates), "exact duplicates", [a for a, _ in report.duplicates]),
        (
            len(report.conflicts),
            "exact duplicates with other labels, and their twins",
            [a for a, _ in report.conflicts],
        ),
        (len(report.multi_label), "recordings with more than one label", report.multi_label),
        (len(report.unknown_label), "recordings without a known label", report.unknown_label),
        (
            len(report.same_patient_as_test),
            "recordings of patients in the test part",
            report.same_patient_as_test,
        ),
        (
            len(report.unreadable),
            "recordings that cannot be used",
            [entry.source for entry in report.unreadable],
        ),
    )
    for count, what, ids in counted:
        if count:
            shown = ", ".join(ids[:_EXAMPLES_SHOWN]) + (", ..." if count > _EXAMPLES_SHOWN else "")
            out.print(f"left out {count} {what}: {shown}", markup=False)


def print_cohort(cohort: "Cohort") -> None:
    from ecgquorum.cohorts import PARTS

    lengths = sorted(row.n_samples / cohort.rate_hz for row in cohort.rows)
    patients = {row.patient for row in cohort.rows if row.patient}
    out.print(f"{cohort.path}: {len(cohort)} recordings from {cohort.card['source']}", markup=False)
    out.print(
        f"{cohort.rate_hz:g} Hz, {cohort.card.get('unit', 'mV')}, leads {', '.join(cohort.leads)}, "
        f"{lengths[0]:.1f} to {lengths[-1]:.1f} s (median {median(lengths):.1f})"
        + (f", {len(patients)} patients" if patients else ""),
        markup=False,
    )
    parts = {part: cohort.labels[cohort.part(part)] for part in PARTS}
    rows = [("class", *PARTS, "all")]
    for index, name in enumerate(cohort.classes):
        counts = [int((labels == index).sum()) for labels in parts.values()]
        rows.append((name, *map(str, counts), str(sum(counts))))
    rows.append(("all", *(str(len(labels)) for labels in parts.values()), str(len(cohort))))
    print_table(rows, ["", *(cohort.class_names.get(name, "") for name in cohort.classes), ""])
    out.print(f"data hash {cohort.data_hash}")


def print_scorecard(card: "Scorecard") -> None:
    """Accuracy under every condition, with its interval."""
    from ecgquorum.evaluation.conditions import MASKING, MEMBERS

    data = card.data
    out.print(
        f"accuracy (%) on {data.source}, {data.part} part, {data.n_records} recordings", style="bold", markup=False
    )
    found: dict[str, dict[str, str]] = {}
    for row in card.find(measure="accuracy"):
        if row.target != MEMBERS and row.attack != MASKING and row.estimate:
            value, low, high = (100 * v for v in (row.estimate.value, row.estimate.low, row.estimate.high))
            under = row.attack if not row.epsilon else f"{row.attack} on {row.target}, {row.epsilon:g} {data.unit}"
            found.setdefault(f"  {under}", {})[row.ensemble] = f"{value:.1f} ({low:.1f} to {high:.1f})"
    names = [one.name for one in card.ensembles]
    print_table([("", *names), *((under, *(values.get(n, "") for n in names)) for under, values in found.items())])


def print_table(rows: Sequence[tuple[str, ...]], notes: Sequence[str] = ()) -> None:
    """Columns as wide as what is in them, however narrow the terminal: the first one left-aligned, the others right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for number, (title, *cells) in enumerate(rows):
        right = "  ".join(cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True))
        note = notes[number] if number < len(notes) else ""
        out.print(f"{title.ljust(widths[0])}  {right}  {note}".rstrip(), markup=False)


@contextmanager
def counting(what: str) -> Iterator[Callable[..., None]]:
    """One bar that counts, and may say at what."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=err, transient=True) as bar:
        task = bar.add_task(what, total=None)

        def count(done: int, total: int, now: str = what) -> None:
            bar.update(task, completed=done, total=total, description=now)

        yield count
