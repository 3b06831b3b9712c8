"""The command that searches for a better recipe: tune."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ecgquorum.cli.application import (
    DATA,
    INTERRUPTED,
    CohortFolder,
    Device,
    RecipeName,
    app,
    folder_option,
    split_names,
)
from ecgquorum.cli.console import err, print_line, print_table, print_warning
from ecgquorum.cli.executor_options import Address, ExecutorOption, Threads, Where, Workers, choose_executor

if TYPE_CHECKING:
    from ecgquorum.tuning import Search, Trial


@app.command(rich_help_panel=DATA)
def tune(
    recipe: RecipeName,
    cohort: CohortFolder,
    out: Annotated[Path, folder_option("The search's folder: trials, members, the best recipe, the page.")],
    trials: Annotated[int, typer.Option(min=1, help="Total number of trials; a larger number later adds trials.")] = 20,
    strategy: Annotated[
        str | None, typer.Option(help="Strategy to train with, such as dec+part. Default: the recipe's.")
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Epochs per member in a trial. Default: the recipe's.")
    ] = None,
    vary: Annotated[
        str | None,
        typer.Option(help="Search only over these tables or keys: part,dec. Default: all."),
    ] = None,
    records: Annotated[int, typer.Option(min=1, help="Attack at most this many recordings of the tune part.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the search; members use the recipe's seed.")] = 0,
    device: Device = "auto",
    executor: ExecutorOption = Where.LOCAL,
    workers: Workers = None,
    threads: Threads = None,
    address: Address = None,
) -> None:
    """Search for a better recipe: bands, decorrelation, network, augmentation, hardening.

    Trials are compared on the tune part, natural and under attack; the test part is not used. The recipe as given is
    the first trial. Ctrl-C stops it; the same command resumes. With --workers or --executor ray, trials run in
    parallel.
    """
    from ecgquorum import Cohort
    from ecgquorum.progress import console_progress
    from ecgquorum.recipes import load_study
    from ecgquorum.tuning import TuningOptions
    from ecgquorum.tuning import tune as search_recipes

    loaded, opened = load_study(recipe), Cohort(cohort)
    try:
        with (
            choose_executor(executor, workers, threads, address, device) as chosen,
            console_progress("search", err) as progress,
        ):
            search = search_recipes(
                loaded,
                opened,
                out,
                options=TuningOptions(
                    n_trials=trials,
                    strategy=strategy,
                    epochs=epochs,
                    vary=split_names(vary) if vary is not None else None,
                    records=records,
                    seed=seed,
                    device=device,
                ),
                executor=chosen,
                progress=progress,
            )
    except KeyboardInterrupt:
        command = shlex.join(["ecgquorum", *sys.argv[1:]])
        err.print(f"stopped; finished trials and epochs are kept; resume with: {command}", markup=False)
        raise typer.Exit(INTERRUPTED) from None
    _print_search(search)


def _print_search(search: "Search") -> None:
    failed = [trial for trial in search.trials if trial.reason]
    for trial in failed:
        print_warning(f"trial {trial.number} failed: {trial.reason}")
    if search.chosen is not None:
        rows = [("accuracy (%) on the tune part", "natural", "attacked")]
        if search.trials[0].measures:
            rows.append(_row("as given (trial 0)", search.trials[0]))
        rows.append(_row(f"chosen (trial {search.chosen.number})", search.chosen))
        print_table(rows)
        print_line(
            f"{len(search.trials)} trials; the best of many looks better than it is: evaluate it on the test part"
        )
        print_line(f"recipe: {search.best}")
    print_line(f"page: {search.page}")
    if search.chosen is None:
        raise typer.Exit(1)


def _row(title: str, trial: "Trial") -> tuple[str, str, str]:
    from ecgquorum.tuning.trial import ATTACKED, NATURAL

    natural, attacked = (
        f"{100 * found.value:.1f} ({100 * found.low:.1f} to {100 * found.high:.1f})"
        for found in (trial.measures[NATURAL], trial.measures[ATTACKED])
    )
    return title, natural, attacked
