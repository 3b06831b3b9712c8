"""The command that trains on verdicts of the review desk: retrain."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ecgquorum.cli.application import DESK, INTERRUPTED, Device, app, split_names
from ecgquorum.cli.console import err, print_build_report, print_cohort, print_line, print_warning
from ecgquorum.cli.desk import Database, check_extra
from ecgquorum.progress import console_progress
from ecgquorum.recipes import recipe_names

if TYPE_CHECKING:
    from ecgquorum.service.proportions import Proportion
    from ecgquorum.service.retraining import DeskLabels, Retrained


@app.command(rich_help_panel=DESK)
def retrain(
    data: Annotated[Path, typer.Argument(help="The desk's folder, as given to `serve --data`.")],
    recipe: Annotated[
        str, typer.Option(help="A recipe's TOML file, or the name of one that ships.", autocompletion=recipe_names)
    ],
    out: Annotated[Path, typer.Option(help="New folder: DIR/cohort and DIR/model, the bundle.")],
    database: Database = "",
    rate: Annotated[
        float | None, typer.Option(help="Resample to this rate in Hz. Default: that of the desk's model.")
    ] = None,
    leads: Annotated[str | None, typer.Option(help="Keep these leads: II. Default: those of the desk's model.")] = None,
    tune_share: Annotated[float, typer.Option(help="Share of recordings in the tune part, 0 to 1.")] = 0.1,
    split_seed: Annotated[int, typer.Option(help="Seed of the random split.")] = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Resume an interrupted run in --out.")] = False,
    device: Device = "auto",
) -> None:
    """Train again on the final verdicts of a review desk: build a cohort of its closed cases, and train a recipe on it.

    The desk's random sample (`serve --audit`: recordings drawn whether they are doubtful or not) is the test part, and
    never trained on. Verdicts that are not one class are left out and counted. A patient's recordings stay in one part.
    """
    check_extra()
    from ecgquorum.recipes import load_recipe
    from ecgquorum.service.retraining import RetrainingOptions
    from ecgquorum.service.retraining import retrain as run

    loaded, names = load_recipe(recipe), split_names(leads) if leads else None
    try:
        with console_progress("retraining", err) as progress:
            options = RetrainingOptions(database, names, rate, tune_share, split_seed, device, resume, progress)
            done = run(data, loaded, out, options)
    except KeyboardInterrupt:
        arguments = [argument for argument in sys.argv[1:] if argument != "--resume"]
        command = shlex.join(["ecgquorum", *arguments, "--resume"])
        err.print(f"stopped; finished epochs are kept; resume with: {command}", markup=False)
        raise typer.Exit(INTERRUPTED) from None
    _print_labels(done.labels)
    if done.report:
        print_build_report(done.report)
    print_cohort(done.cohort)
    _print_accuracy(done)
    print_line(
        f"bundle: {out / 'model'}; to serve it, fit a policy: ecgquorum policy fit {out / 'model'} "
        f"--cohort {out / 'cohort'} --out DIR"
    )


def _print_labels(labels: "DeskLabels") -> None:
    for answer, count in labels.other_answers.items():
        print_warning(f"left out: {count} with the verdict {answer}")
    if labels.n_unread:
        print_warning(f"note: {labels.n_unread} cases of the random sample are not read yet; the test part lacks them")


def _print_accuracy(done: "Retrained") -> None:
    print_line(f"accuracy on the tune part: {100 * float(done.ensemble.card['tune_accuracy']):.1f} %")
    if not done.accuracy.total:
        print_warning("note: no case of the random sample has been read, so there is no test part (serve --audit)")
        return
    now, before = _percent(done.accuracy), _percent(done.accuracy_before)
    print_line(f"accuracy on the random sample, {done.accuracy.total} recordings: {now}; the desk's results: {before}")


def _percent(found: "Proportion") -> str:
    value, low, high = (100 * (one or 0.0) for one in (found.value, found.low, found.high))
    return f"{value:.1f} % ({low:.1f} to {high:.1f})"
