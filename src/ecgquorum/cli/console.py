"""Console output of the command line: lines, tables, progress bars."""

from collections import Counter
from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING

from rich.console import Console

if TYPE_CHECKING:
    from ecgquorum.cohorts import BuildReport, Cohort
    from ecgquorum.ensemble.result import Result
    from ecgquorum.evaluation import Scorecard

out = Console(highlight=False, soft_wrap=True, emoji=False)
err = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)
_EXAMPLES_SHOWN = 5


def print_line(text: str) -> None:
    """Print a line on standard output, its characters as they are."""
    out.print(text, markup=False)


def print_warning(text: str) -> None:
    """Print a line on standard error, in yellow."""
    err.print(text, style="yellow", markup=False)


def print_error(text: str) -> None:
    """Print an error on standard error, in red."""
    err.print(f"error: {text}", style="red", markup=False)


def print_answer(result: "Result", names: dict[str, str]) -> None:
    """Print one recording's class, calibrated probabilities, members' raw probabilities, risk and uncertainty."""
    label = result.label
    name = f" ({names[label]})" if names.get(label) else ""
    out.print(
        f"{result.id}  {label}{name}  probability {result.probability:.3f} (calibrated)  "
        f"risk {result.risk:.3f}  uncertainty {result.uncertainty:.3f}  "
        f"mutual information {result.mutual_information:.4f} nat",
        style="bold",
        markup=False,
    )
    rows = [("", *result.probabilities)]
    lines = [("calibrated", result.probabilities), ("raw mean", result.raw_probabilities)]
    lines += [(f"raw, member {i}", probs) for i, probs in enumerate(result.raw_member_probabilities)]
    rows += [(f"  {title}", *(f"{value:.3f}" for value in probs.values())) for title, probs in lines]
    print_table(rows)
    for line in filter(None, (result.measurements.line(), *result.acquisition.lines())):
        print_line(f"  {line}")
    if worst := result.worst_window:
        found = Counter(window.label for window in result.windows)
        counts = ", ".join(f"{n} {label}" for label, n in found.most_common())
        print_line(
            f"  windows: {counts}; highest risk {worst.risk:.3f} at {worst.start_s:.0f} s ({worst.label}, "
            f"probability {worst.probability:.3f})"
        )
    for line in dict.fromkeys((*result.notices, *result.quality.reasons)):
        print_warning(f"{result.id}: {line}")


def print_fhir(counts: Counter[str], folder: str) -> None:
    """Print how many recordings have FHIR resources, and why others have none."""
    from ecgquorum.triage.fhir import REPEATED, REPORTED, UNHASHED

    print_line(f"FHIR R4 reports of {counts[REPORTED]} recordings are in {folder}")
    if counts[REPEATED]:
        print_warning(f"{counts[REPEATED]} are copies of other recordings and share their report")
    if counts[UNHASHED]:
        print_warning(f"{counts[UNHASHED]} could not be opened and have no report")


def print_build_report(report: "BuildReport") -> None:
    """Print what a cohort was built without, and why."""
    for notice in report.notices:
        print_warning(f"note: {notice}")
    for entry in report.unreadable:
        print_warning(f"left out: {entry.reason}")
    left_out = (
        ("exact duplicates", [one for one, _ in report.duplicates]),
        ("exact duplicates that have different labels", [one for one, _ in report.conflicts]),
        ("recordings with more than one label", report.multi_label),
        ("recordings without a known label", report.unknown_label),
        ("recordings of patients in the test part", report.same_patient_as_test),
        ("recordings that cannot be read or used", [entry.source for entry in report.unreadable]),
    )
    for what, ids in left_out:
        if ids:
            shown = ", ".join(ids[:_EXAMPLES_SHOWN]) + (", ..." if len(ids) > _EXAMPLES_SHOWN else "")
            print_line(f"left out {len(ids)} {what}: {shown}")


def print_cohort(cohort: "Cohort") -> None:
    """Print a cohort's size, rate, leads, lengths, and the counts of each class in each part."""
    from ecgquorum.cohorts import PARTS

    lengths = sorted(row.n_samples / cohort.rate_hz for row in cohort.rows)
    patients = {row.patient for row in cohort.rows if row.patient}
    print_line(f"{cohort.path}: {len(cohort)} recordings from {cohort.card['source']}")
    print_line(
        f"{cohort.rate_hz:g} Hz, {cohort.card.get('unit', 'mV')}, leads {', '.join(cohort.leads)}, "
        f"{lengths[0]:.1f} to {lengths[-1]:.1f} s (median {median(lengths):.1f})"
        + (f", {len(patients)} patients" if patients else "")
    )
    parts = {part: cohort.labels[cohort.part(part)] for part in PARTS}
    rows = [("class", *PARTS, "all")]
    for index, name in enumerate(cohort.classes):
        counts = [int((labels == index).sum()) for labels in parts.values()]
        rows.append((name, *map(str, counts), str(sum(counts))))
    rows.append(("all", *(str(len(labels)) for labels in parts.values()), str(len(cohort))))
    print_table(rows, ["", *(cohort.class_names.get(name, "") for name in cohort.classes), ""])
    print_line(f"data hash {cohort.data_hash}")


def print_scorecard(card: "Scorecard") -> None:
    """Print the accuracy under every condition, with its 95 % interval; under corruptions, one line for each."""
    from dataclasses import replace

    from ecgquorum.evaluation.conditions import ALL_CORRUPTIONS, CORRUPTION, OOD

    corrupted = {str(one) for one in card.conditions if one.target == CORRUPTION} | {ALL_CORRUPTIONS}
    table = card.table("accuracy")
    shown = replace(table, rows=tuple(row for row in table.rows if row[0] not in corrupted))
    title, _, rows = str(shown).partition("\n")
    out.print(title, style="bold", markup=False)
    out.print(rows, markup=False)
    for one in card.ensembles:
        if any(condition.target == CORRUPTION for condition in card.conditions):
            _print_corruptions(card, one.name)
        if any(condition.target == OOD for condition in card.conditions):
            _print_unknown(card, one.name)


def _print_corruptions(card: "Scorecard", ensemble: str) -> None:
    """Print one line for each corruption, one column for each severity."""
    from ecgquorum.evaluation.conditions import ALL_CORRUPTIONS, CORRUPTION

    conditions = [one for one in card.conditions if one.target == CORRUPTION]
    severities = sorted({one.epsilon for one in conditions})
    found = {
        (row.attack, row.epsilon): row.value
        for row in card.find(ensemble=ensemble, target=CORRUPTION, metric="accuracy")
    }
    out.print(f"{ensemble}: accuracy (%) under corruptions, by severity", style="bold", markup=False)
    rows = [("", *(f"{severity:g}" for severity in severities))]
    rows += [
        (f"  {name}", *(_percent(found.get((name, severity))) for severity in severities))
        for name in dict.fromkeys(one.attack for one in conditions)
    ]
    print_table(rows)
    summary = {row.metric: row for row in card.find(ensemble=ensemble, attack=ALL_CORRUPTIONS) if row.metric != "augrc"}
    relative = ", ".join(
        f"{name.replace('_', ' ')} {_percent(summary[name].value)} % of that of {summary[name].detail}"
        for name in ("mean_corruption_error", "relative_corruption_error")
        if name in summary and summary[name].detail != ensemble
    )
    print_line(f"  mean over corruptions: {_percent(summary['accuracy'].value)}{'; ' if relative else ''}{relative}")


def _print_unknown(card: "Scorecard", ensemble: str) -> None:
    """Print one line for each set out of distribution, one column for each score."""
    found = {(row.attack, row.detail): row.value for row in card.find(ensemble=ensemble, metric="ood_auroc")}
    scores = list(dict.fromkeys(score for _, score in found))
    out.print(f"{ensemble}: out of distribution, AUROC (%) against natural, by score", style="bold", markup=False)
    rows = [("", *(score.replace("_", " ") for score in scores))]
    rows += [
        (f"  {name}", *(_percent(found.get((name, score))) for score in scores))
        for name in dict.fromkeys(name for name, _ in found)
    ]
    print_table(rows)


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"


def print_table(rows: Sequence[tuple[str, ...]], notes: Sequence[str] = ()) -> None:
    """Print columns as wide as their content: the first aligned left, the others right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for number, (title, *cells) in enumerate(rows):
        right = "  ".join(cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True))
        note = notes[number] if number < len(notes) else ""
        print_line(f"{title.ljust(widths[0])}  {right}  {note}".rstrip())
