"""Commands that train ensembles: train, study."""

import shlex
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
from ecgquorum.cli.console import err, print_line, print_scorecard
from ecgquorum.cli.executor_options import Address, ExecutorOption, Threads, Where, Workers, choose_executor
from ecgquorum.errors import ClusterError
from ecgquorum.recipes import recipe_names

if TYPE_CHECKING:
    from ecgquorum.recipes import Recipe


@app.command(rich_help_panel=DATA)
def study(
    study: Annotated[
        str,
        typer.Argument(help="A study's TOML file, or the name of one that ships.", autocompletion=recipe_names),
    ],
    out: Annotated[Path, folder_option("The study's folder: checkpoints, bundles, attacks, scorecard, report.")],
    cohort: Annotated[
        str | None, typer.Option(help="The cohort's folder or URL; not needed if the study names its source.")
    ] = None,
    strategies: Annotated[
        str | None, typer.Option(help="Strategies to compare: baseline,dec+part. Default: the study's.")
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(help="Folder or URL of checkpoints and attacks, for machines that share no disk. Default: --out."),
    ] = None,
    device: Device = "auto",
    executor: ExecutorOption = Where.LOCAL,
    workers: Workers = None,
    threads: Threads = None,
    address: Address = None,
) -> None:
    """Train every strategy of a study, attack and evaluate the ensembles, and write the report.

    Ctrl-C stops it; the same command resumes. Members and attacks that strategies share are computed once. With
    --workers or --executor ray, independent members are trained at the same time.
    """
    from ecgquorum import Cohort
    from ecgquorum.progress import console_progress
    from ecgquorum.recipes import load_study
    from ecgquorum.study import run_study

    loaded = load_study(study)
    if strategies is not None:
        loaded = loaded.with_strategies(split_names(strategies))
    opened = Cohort(cohort) if cohort else None
    try:
        with (
            choose_executor(executor, workers, threads, address, device) as chosen,
            console_progress("study", err) as progress,
        ):
            card, page = run_study(
                loaded, out, cohort=opened, store=store, device=device, progress=progress, executor=chosen
            )
    except KeyboardInterrupt:
        command = shlex.join(["ecgquorum", *sys.argv[1:]])
        err.print(f"stopped; finished work is kept; resume with: {command}", markup=False)
        raise typer.Exit(INTERRUPTED) from None
    print_scorecard(card)
    print_line(f"bundles: {out / 'runs'}; scorecard: {out / 'scorecard.json'}")
    print_line(f"report: {page}")


@app.command(rich_help_panel=DATA)
def train(
    recipe: RecipeName,
    cohort: CohortFolder,
    out: Annotated[Path, folder_option("Folder of the run: recipe, history, checkpoints, and the bundle.")],
    resume: Annotated[bool, typer.Option("--resume", help="Resume the run in --out after its last epoch.")] = False,
    strategy: Annotated[
        str | None,
        typer.Option(
            help="baseline, or a sum of dec, gal, part, adv, dverge, harden: dec+part. Default: the recipe's."
        ),
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(help="Checkpoint cache shared between runs, a folder or a URL. Default: inside --out."),
    ] = None,
    device: Device = "auto",
    n_ranks: Annotated[
        int | None,
        typer.Option("--ranks", min=1, help="Train each member on this many processes, by Ray Train."),
    ] = None,
    address: Annotated[
        str | None,
        typer.Option(help="With --ranks: address of the Ray cluster, auto or HOST:PORT. Default: this machine."),
    ] = None,
) -> None:
    """Train an ensemble by a recipe and write its bundle.

    Ctrl-C stops it and --resume continues, with the same result to the bit on the same machine with the same number
    of threads. Under torchrun, or with --ranks, several processes train each member together.
    """
    from ecgquorum.parallel import distributed
    from ecgquorum.recipes import load_recipe

    if address is not None and n_ranks is None:
        raise ClusterError("--address needs --ranks: give the number of processes, such as --ranks 2")
    with distributed.join_ranks():
        loaded = load_recipe(recipe)
        if strategy is not None:
            loaded = loaded.with_strategy(strategy)
        try:
            accuracy = _train(loaded, cohort, out, resume, store, device, n_ranks, address)
        except KeyboardInterrupt:
            if distributed.is_first_to_fail():
                program = "ecgquorum" if distributed.n_ranks() == 1 else "torchrun ... -m ecgquorum"
                err.print(
                    f"stopped; finished epochs are kept; resume with: {program} {_resume_arguments()}", markup=False
                )
            raise typer.Exit(INTERRUPTED) from None
        if distributed.is_first():
            print_line(f"accuracy on the tune part: {100 * accuracy:.1f} %")
            print_line(f"bundle: {out}")


def _train(
    recipe: "Recipe",
    cohort: str,
    out: Path,
    resume: bool,
    store: str | None,
    device: str,
    n_ranks: int | None,
    address: str | None,
) -> float:
    """Train in this process or on `n_ranks` others; gives the accuracy on the tune part."""
    from ecgquorum import Cohort, load_ensemble, train_ensemble
    from ecgquorum.parallel import distributed
    from ecgquorum.progress import NO_PROGRESS, console_progress

    if n_ranks is None:
        with console_progress("training", err) if distributed.is_first() else nullcontext(NO_PROGRESS) as progress:
            options: dict[str, Any] = {"resume": resume, "device": device, "progress": progress, "store": store}
            return float(train_ensemble(recipe, Cohort(cohort), out, **options).card["tune_accuracy"])
    from ecgquorum.parallel.ray_train import run_on_ranks
    from ecgquorum.storage import open_store
    from ecgquorum.training import watch_run

    if distributed.n_ranks() > 1:
        raise ClusterError(
            "--ranks cannot be used under torchrun, which starts the processes itself; leave --ranks out"
        )
    options = {"resume": resume, "device": device, "store": open_store(store).where() if store else None}
    arguments = (recipe, open_store(cohort).where(), out.resolve(), options)
    with (
        console_progress(f"training on {n_ranks} ranks", err) as progress,
        watch_run(recipe, Cohort(cohort), out, resume=resume, store=store, progress=progress),
    ):
        scratch, gpus = out / "ray.partial", device != "cpu"
        run_on_ranks(_train_as_rank, arguments, n_ranks, scratch=scratch, gpus=gpus, address=address)
    return float(load_ensemble(out, member=recipe.member.kind).card["tune_accuracy"])


def _train_as_rank(recipe: "Recipe", cohort: str, out: Path, options: dict[str, Any]) -> None:
    """Train as one of several processes."""
    from ecgquorum import Cohort, train_ensemble

    train_ensemble(recipe, Cohort(cohort), out, **options)


def _resume_arguments() -> str:
    arguments = [argument for argument in sys.argv[1:] if argument != "--resume"]
    return shlex.join([*arguments, "--resume"])


for _command in (study, train):
    _command.__doc__ = f"{_command.__doc__}\n\n    Recipes that ship: {', '.join(recipe_names())}."
