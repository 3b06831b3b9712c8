"""The command line: every command is one library call and the printing of what it gives."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from ecgquorum.errors import EcgQuorumError
from ecgquorum.recipe import load_recipe, recipe_names

if TYPE_CHECKING:  # the rest is imported by the command that needs it: `--help` should not wait for PyTorch
    from ecgquorum.cohorts import BuildReport, Cohort
    from ecgquorum.cohorts.build import Progress as Report

app = typer.Typer(
    help="Small ensembles of ECG classifiers whose disagreement tells when not to trust them. Research use only.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
cohort_app = typer.Typer(help="Labelled recordings: build, inspect and fetch cohorts.", no_args_is_help=True)
app.add_typer(cohort_app, name="cohort")

_out = Console(highlight=False, soft_wrap=True)
_err = Console(stderr=True, highlight=False, soft_wrap=True)
_EXAMPLES_SHOWN = 5
INTERRUPTED = 130


def main() -> None:
    """Run the command line; an error that we foresaw is one line, its traceback shown only with --debug."""
    try:
        app()
    except EcgQuorumError as error:
        if "--debug" in sys.argv:
            raise
        _err.print(f"error: {error}", style="red", markup=False)
        sys.exit(1)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)


def _print_version(wanted: bool) -> None:
    if wanted:
        _out.print(f"ecgquorum {version('ecgquorum')}")
        raise typer.Exit


@app.callback()
def _options(
    show_version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop."),
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Small ensembles of ECG classifiers whose disagreement tells when not to trust them. Research use only."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the cohort, the run and the report.")] = Path("runs/demo"),
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier demo in that folder.")] = False,
) -> None:
    """Simulate recordings, train a small ensemble on them, test it and write a report, in a minute or two."""
    from ecgquorum.demo import run_demo
    from ecgquorum.training import training_progress

    recipe = load_recipe("demo")
    with training_progress(recipe, _err) as observer:
        card, page = run_demo(out, force=force, observer=observer)
    _out.print(f"accuracy on {sum(card.n_recordings.values())} test recordings: {card.accuracy}")
    _out.print(f"the ensemble is in {out / 'run'}; try: ecgquorum predict FILE --model {out / 'run'}")
    _out.print(f"report: {page}")


@app.command()
def train(
    recipe: Annotated[
        str,
        typer.Argument(help="A recipe's TOML file, or the name of one that ships.", autocompletion=recipe_names),
    ],
    cohort: Annotated[Path, typer.Option(help="The cohort's folder, from `ecgquorum cohort build`.")],
    out: Annotated[Path, typer.Option(help="The run's folder: recipe, history, checkpoints, and the bundle.")],
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in --out after its last epoch.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
) -> None:
    """Train an ensemble. It can be stopped at any time (Ctrl-C) and continued with --resume, to the same bits."""
    from ecgquorum import Cohort, train_ensemble
    from ecgquorum.training import training_progress

    loaded = load_recipe(recipe)
    try:
        with training_progress(loaded, _err) as observer:
            ensemble = train_ensemble(loaded, Cohort(cohort), out, resume=resume, device=device, observer=observer)
    except KeyboardInterrupt:
        _err.print(f"stopped; finished epochs are in {out}; go on with: {_resume_command()}", markup=False)
        raise typer.Exit(INTERRUPTED) from None
    _out.print(f"accuracy on the tune part: {ensemble.card['tune_accuracy']:.4f}")
    _out.print(f"bundle: {out}")


def _resume_command() -> str:
    arguments = [argument for argument in sys.argv[1:] if argument != "--resume"]
    return " ".join(["ecgquorum", *arguments, "--resume"])


@app.command()
def predict(
    files: Annotated[
        list[str],
        typer.Argument(help="Recordings, folders or zip archives of them; ARCHIVE.zip/NAME is one in an archive."),
    ],
    model: Annotated[str, typer.Option(help="A bundle's folder (what `train` wrote), or the name of one that ships.")],
    lead: Annotated[str | None, typer.Option(help="Which lead to take, for a model of one lead.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON array, one object a recording.")] = False,
) -> None:
    """Classify recordings: class, probabilities, every member's own, and how uncertain the ensemble is.

    Files that cannot be read are named on standard error; the others are classified, and the exit code is 1.
    """
    from ecgquorum import Unreadable, classify_files, load_ensemble

    ensemble = load_ensemble(model)
    names: dict[str, str] = ensemble.card.get("class_names", {})
    failed = shown = 0
    for answer in classify_files(ensemble, files, lead):
        if isinstance(answer, Unreadable):
            failed += 1
            _err.print(f"error: {answer.reason}", style="red", markup=False)
        elif as_json:
            print("[" if shown == 0 else ",", json.dumps(answer, ensure_ascii=False), sep="\n" if shown else "")
            shown += 1
        else:
            _print_answer(answer, names)
            shown += 1
    if as_json:
        print("]" if shown else "[]")
    if failed:
        raise typer.Exit(1)


def _print_answer(answer: dict[str, Any], names: dict[str, str]) -> None:
    label = answer["label"]
    name = f" ({names[label]})" if names.get(label) else ""
    _out.print(
        f"[bold]{answer['id']}[/bold]  {label}{name}  probability {answer['probabilities'][label]:.3f}  "
        f"uncertainty {answer['uncertainty']:.3f}  mutual information {answer['mutual_information']:.4f} nat"
    )
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("")
    for code in answer["probabilities"]:
        table.add_column(code, justify="right")
    rows = [("ensemble", answer["probabilities"])]
    rows += [(f"member {i}", probs) for i, probs in enumerate(answer["member_probabilities"], start=1)]
    for title, probs in rows:
        table.add_row(f"  {title}", *(f"{value:.3f}" for value in probs.values()))
    _out.print(table)
    if answer["notice"]:
        _err.print(f"{answer['id']}: {answer['notice']}", style="yellow", markup=False)


@cohort_app.command("build")
def cohort_build(
    source: Annotated[
        str,
        typer.Argument(
            help="PhysioNet 2017 or CPSC 2018 (folder or zip), any folder or zip with a labels.csv, "
            "synthetic:physionet2017 or synthetic:cpsc2018."
        ),
    ],
    out: Annotated[Path, typer.Option(help="The cohort's folder; must not exist yet.")],
    rate: Annotated[float | None, typer.Option(help="Resample to this rate in Hz.")] = None,
    leads: Annotated[str | None, typer.Option(help="Keep these leads, in this order: I,II,V1.")] = None,
    test_ids: Annotated[
        Path | None, typer.Option(help="Fix the test part: one id a line, or a permutation as .npy.")
    ] = None,
    tune_share: Annotated[float, typer.Option(help="Share of the recordings to tune on.")] = 0.1,
    test_share: Annotated[float, typer.Option(help="Share to test on, when no --test-ids are given.")] = 0.1,
    split_seed: Annotated[int, typer.Option(help="Seed of the split.")] = 0,
    records: Annotated[int, typer.Option(help="How many to simulate (synthetic sources).", min=1)] = 1000,
    seconds: Annotated[float, typer.Option(help="Their length (synthetic sources).", min=1)] = 30.0,
    seed: Annotated[int, typer.Option(help="Seed of the simulation (synthetic sources).")] = 0,
) -> None:
    """Build a cohort: read every recording, leave out duplicates and what cannot serve, split in three, write.

    A labels.csv has the columns id (the recording's path in the folder), label (several separated by |) and, if
    known, patient: a patient's recordings always stay in one part.
    """
    from ecgquorum import build_cohort, open_source

    opened = open_source(source, records=records, seconds=seconds, seed=seed)
    with _progress("reading") as progress:
        cohort, report = build_cohort(
            opened,
            out,
            rate_hz=rate,
            leads=[name.strip() for name in leads.split(",")] if leads else None,
            test_ids=test_ids,
            tune_share=tune_share,
            test_share=test_share,
            split_seed=split_seed,
            progress=progress,
        )
    _print_report(report)
    _print_cohort(cohort)


@cohort_app.command("info")
def cohort_info(path: Annotated[Path, typer.Argument(help="The cohort's folder.")]) -> None:
    """Show a cohort: counts per class and part, lengths, rate, leads, units."""
    from ecgquorum import Cohort

    _print_cohort(Cohort(path))


@cohort_app.command("fetch")
def cohort_fetch(
    name: Annotated[str, typer.Argument(help="physionet2017 or cpsc2018.")],
    out: Annotated[Path, typer.Option(help="Folder to download to.")],
    url: Annotated[str | None, typer.Option(help="A mirror with the same layout and a SHA256SUMS.txt.")] = None,
) -> None:
    """Download a data set from PhysioNet, checked against its SHA-256 sums; run again to go on where it stopped."""
    from ecgquorum import fetch

    with _progress("files") as progress:
        fetch(name, out, url=url, progress=progress)
    _out.print(f"{name} is in {out}; build a cohort with: ecgquorum cohort build {out} --out DIR")


def _print_report(report: "BuildReport") -> None:
    for notice in report.notices:
        _err.print(f"note: {notice}", style="yellow", markup=False)
    for entry in report.unreadable:
        _err.print(f"left out: {entry.reason}", style="yellow", markup=False)
    counted = (
        (len(report.duplicates), "exact duplicates", [a for a, _ in report.duplicates]),
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
            _out.print(f"left out {count} {what}: {shown}", markup=False)


def _print_cohort(cohort: "Cohort") -> None:
    from ecgquorum.cohorts import PARTS

    lengths = sorted(row.n_samples / cohort.rate_hz for row in cohort.rows)
    patients = {row.patient for row in cohort.rows if row.patient}
    _out.print(f"{cohort.path}: {len(cohort)} recordings from {cohort.card['source']}", markup=False)
    _out.print(
        f"{cohort.rate_hz:g} Hz, {cohort.card.get('unit', 'mV')}, leads {', '.join(cohort.leads)}, "
        f"{lengths[0]:.1f} to {lengths[-1]:.1f} s (median {median(lengths):.1f})"
        + (f", {len(patients)} patients" if patients else "")
    )
    table = Table(box=None, padding=(0, 2, 0, 0))
    for title in ("class", *PARTS, "all", ""):
        table.add_column(title, justify="left" if title in ("class", "") else "right")
    parts = {part: cohort.labels[cohort.part(part)] for part in PARTS}
    for index, name in enumerate(cohort.classes):
        counts = [int((labels == index).sum()) for labels in parts.values()]
        table.add_row(name, *map(str, counts), str(sum(counts)), cohort.class_names.get(name, ""))
    table.add_row("all", *(str(len(labels)) for labels in parts.values()), str(len(cohort)), "")
    _out.print(table)
    _out.print(f"data hash {cohort.data_hash}")


@contextmanager
def _progress(what: str) -> Iterator["Report"]:
    """One bar that counts."""
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TextColumn("left"), TimeRemainingColumn())
    with Progress(*columns, console=_err, transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


train.__doc__ = f"{train.__doc__}\n\n    Recipes that ship: {', '.join(recipe_names())}."

if __name__ == "__main__":
    main()
