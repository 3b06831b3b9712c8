"""The command that searches for a better recipe."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ecgquorum.cli.application import INTERRUPTED, CohortFolder, Device, RecipeName, app, listed
from ecgquorum.cli.console import err, print_table
from ecgquorum.cli.console import out as stdout
from ecgquorum.cli.executor_options import Address, ExecutorOption, Threads, Where, Workers, choose_executor
from ecgquorum.recipes import load_study

if TYPE_CHECKING:
    from ecgquorum.tuning import Search, Trial


@app.command()
def tune(
    recipe: RecipeName,
    cohort: CohortFolder,
    out: Annotated[Path, typer.Option(help="The search's folder: trials, members, the best recipe, the page.")],
    trials: Annotated[int, typer.Option(min=1, help="How many trials in all; a larger number later adds some.")] = 20,
    strategy: Annotated[
        str | None, typer.Option(help="What to search under, such as dec+part. Default: what the recipe says.")
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Train members of trials for so long. Default: what the recipe says.")
    ] = None,
    vary: Annotated[
        str | None,
        typer.Option(help="Search only over these tables or keys: part,dec. Default: all there are."),
    ] = None,
    records: Annotated[int, typer.Option(min=1, help="Attack at most so many recordings of the tune part.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="Of the search; the members' is the recipe's.")] = 0,
    device: Device = "auto",
    executor: ExecutorOption = Where.LOCAL,
    workers: Workers = None,
    threads: Threads = None,
    address: Address = None,
) -> None:
    """Search for a better recipe: bands, decorrelation, network, augmentation, hardening. Everything is judged on the
    tune part, as it is and under attack; the test part is not touched.

    Stop it at any time (Ctrl-C); the same command goes on. The recipe as given is the first trial. With --workers or
    --executor ray several trials are made at a time.
    """
    from ecgquorum import Cohort
    from ecgquorum.progress import console_progress
    from ecgquorum.tuning import TuningOptions
    from ecgquorum.tuning import tune as searched

    loaded, opened = load_study(recipe), Cohort(cohort)
    try:
        with (
            choose_executor(executor, workers, threads, address, device) as chosen,
            console_progress("search", err) as progress,
        ):
            search = searched(
                loaded,
                opened,
                out,
                options=TuningOptions(
                    n_trials=trials,
                    strategy=strategy,
                    epochs=epochs,
                    vary=listed(vary) if vary is not None else None,
                    records=records,
                    seed=seed,
                    device=device,
                ),
                executor=chosen,
                progress=progress,
            )
    except KeyboardInterrupt:
        command = shlex.join(["ecgquorum", *sys.argv[1:]])
        err.print(f"stopped; finished trials and epochs are kept; go on with: {command}", markup=False)
        raise typer.Exit(INTERRUPTED) from None
    _print_search(search)


def _print_search(search: "Search") -> None:
    failed = [trial for trial in search.trials if trial.reason]
    for trial in failed:
        err.print(f"trial {trial.number} failed: {trial.reason}", style="yellow", markup=False)
    if search.chosen is not None:
        rows = [("accuracy (%) on the tune part", "natural", "attacked")]
        if search.trials[0].measures:
            rows.append(_row("as given (trial 0)", search.trials[0]))
        rows.append(_row(f"chosen (trial {search.chosen.number})", search.chosen))
        print_table(rows)
        stdout.print(
            f"{len(search.trials)} trials; the best of many is flattered: only other recordings tell how good it is",
            markup=False,
        )
        stdout.print(f"recipe: {search.best}", markup=False)
    stdout.print(f"page: {search.page}", markup=False)
    if search.chosen is None:
        raise typer.Exit(1)


def _row(title: str, trial: "Trial") -> tuple[str, str, str]:
    from ecgquorum.tuning.trial import ATTACKED, NATURAL

    natural, attacked = (
        f"{100 * found.value:.1f} ({100 * found.low:.1f} to {100 * found.high:.1f})"
        for found in (trial.measures[NATURAL], trial.measures[ATTACKED])
    )
    return title, natural, attacked
