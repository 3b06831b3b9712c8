"""Commands that train ensembles and put them to the test."""

import shlex
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from ecgquorum.cli.application import INTERRUPTED, CohortFolder, Device, RecipeName, app, listed
from ecgquorum.cli.console import counting, err, print_scorecard
from ecgquorum.cli.console import out as stdout
from ecgquorum.cli.executor_options import Address, ExecutorOption, Threads, Where, Workers, choose_executor
from ecgquorum.errors import ClusterError, RecipeError, ScorecardError
from ecgquorum.recipes import EvaluationRecipe, Recipe, load_recipe, load_study, recipe_names


@app.command()
def study(
    study: Annotated[
        str,
        typer.Argument(help="A study's TOML file, or the name of one that ships.", autocompletion=recipe_names),
    ],
    out: Annotated[Path, typer.Option(help="The study's folder: members, runs, attacks, scorecard, report.")],
    cohort: Annotated[
        Path | None, typer.Option(help="The cohort's folder; not needed where the study names its recordings.")
    ] = None,
    strategies: Annotated[
        str | None, typer.Option(help="Compare only these: baseline,dec+part. Default: what the study says.")
    ] = None,
    device: Device = "auto",
    executor: ExecutorOption = Where.LOCAL,
    workers: Workers = None,
    threads: Threads = None,
    address: Address = None,
) -> None:
    """Train every strategy of a study, attack and measure them, and write the report.

    Stop it at any time (Ctrl-C); the same command goes on. Members and attacks that strategies share are made once.
    With --workers or --executor ray, a member is trained as soon as those that it needs are.
    """
    from ecgquorum import Cohort
    from ecgquorum.study import run_study, study_progress

    loaded = load_study(study)
    if strategies is not None:
        loaded = loaded.with_strategies(listed(strategies))
    opened = Cohort(cohort) if cohort else None
    try:
        with (
            choose_executor(executor, workers, threads, address, device) as chosen,
            study_progress(err) as progress,
        ):
            card, page = run_study(loaded, out, cohort=opened, device=device, progress=progress, executor=chosen)
    except KeyboardInterrupt:
        command = shlex.join(["ecgquorum", *sys.argv[1:]])
        err.print(f"stopped; what is finished is kept; go on with: {command}", markup=False)
        raise typer.Exit(INTERRUPTED) from None
    print_scorecard(card)
    stdout.print(f"the ensembles are in {out / 'runs'}, all numbers in {out / 'scorecard.json'}", markup=False)
    stdout.print(f"report: {page}", markup=False)


@app.command()
def train(
    recipe: RecipeName,
    cohort: CohortFolder,
    out: Annotated[Path, typer.Option(help="The run's folder: recipe, history, checkpoints, and the bundle.")],
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in --out after its last epoch.")] = False,
    strategy: Annotated[
        str | None,
        typer.Option(help="baseline, or a sum of dec, part, adv and dverge: dec+part. Default: what the recipe says."),
    ] = None,
    store: Annotated[
        Path | None,
        typer.Option(help="Where trainings are kept and looked for; runs that share one train what they share once."),
    ] = None,
    device: Device = "auto",
    n_ranks: Annotated[
        int | None,
        typer.Option("--ranks", min=1, help="Train each member on so many processes at once, by Ray Train."),
    ] = None,
    address: Annotated[
        str | None, typer.Option(help="With --ranks: the Ray cluster, auto or HOST:PORT. Default: this machine.")
    ] = None,
) -> None:
    """Train an ensemble. It can be stopped at any time (Ctrl-C) and continued with --resume, to the same bits
    on the same machine with the same number of threads.

    Started by torchrun, or with --ranks, several processes train each member together.
    """
    from ecgquorum.parallel import distributed

    if address is not None and n_ranks is None:
        raise ClusterError("--address: expected --ranks with it, found none; say how many processes are to train")
    with distributed.joined():
        loaded = load_recipe(recipe)
        if strategy is not None:
            loaded = loaded.with_strategy(strategy)
        try:
            accuracy = _trained(loaded, cohort, out, resume, store, device, n_ranks, address)
        except KeyboardInterrupt:
            if distributed.is_first_to_fail():
                program = "ecgquorum" if distributed.n_ranks() == 1 else "torchrun ... -m ecgquorum.cli"
                err.print(f"stopped; finished epochs are kept; go on with: {program} {_resuming()}", markup=False)
            raise typer.Exit(INTERRUPTED) from None
        if distributed.is_first():
            stdout.print(f"accuracy on the tune part: {accuracy:.4f}")
            stdout.print(f"bundle: {out}")


def _trained(
    recipe: Recipe,
    cohort: Path,
    out: Path,
    resume: bool,
    store: Path | None,
    device: str,
    n_ranks: int | None,
    address: str | None,
) -> float:
    """Train, here or on other processes, and give the accuracy on the tune part."""
    from ecgquorum import Cohort, load_ensemble, train_ensemble
    from ecgquorum.parallel import distributed
    from ecgquorum.training import training_progress

    if n_ranks is None:
        with training_progress(recipe, err) if distributed.is_first() else nullcontext() as observer:
            options: dict[str, Any] = {"resume": resume, "device": device, "observer": observer, "store": store}
            return float(train_ensemble(recipe, Cohort(cohort), out, **options).card["tune_accuracy"])
    from ecgquorum.parallel.ray_train import on_ranks
    from ecgquorum.training import plan_jobs
    from ecgquorum.training.epoch_watch import EpochWatch
    from ecgquorum.training.progress import unit_name
    from ecgquorum.training.run_training import check_out, store_of

    if distributed.n_ranks() > 1:
        raise ClusterError("--ranks: expected no torchrun around it, found one; each of them starts ranks of its own")
    opened = Cohort(cohort)
    check_out(out, recipe, opened, resume)  # what is wrong is told of sooner here than by the ranks
    names = {unit.identity: unit_name(unit) for unit in plan_jobs(recipe, opened.data_hash)}
    options = {"resume": resume, "device": device, "store": store.resolve() if store else None}
    arguments = (recipe, cohort.resolve(), out.resolve(), options)
    with (
        err.status(f"training on {n_ranks} ranks"),
        EpochWatch(store or store_of(out), names, lambda line: err.print(line, markup=False)),
    ):
        scratch, gpus = out / "ray.partial", device != "cpu"
        on_ranks(_train_as_a_rank, arguments, n_ranks, scratch=scratch, gpus=gpus, address=address)
    return float(load_ensemble(out).card["tune_accuracy"])


def _train_as_a_rank(recipe: Recipe, cohort: Path, out: Path, options: dict[str, Any]) -> None:
    """What each process does that trains together with others."""
    from ecgquorum import Cohort, train_ensemble

    train_ensemble(recipe, Cohort(cohort), out, **options)


def _numbers(option: str, text: str | None) -> tuple[float, ...] | None:
    if text is None:
        return None
    try:
        return tuple(float(part) for part in listed(text))
    except ValueError:
        raise RecipeError(f"{option}: expected numbers such as 10,50, found {text!r}") from None


def _resuming() -> str:
    arguments = [argument for argument in sys.argv[1:] if argument != "--resume"]
    return shlex.join([*arguments, "--resume"])


@app.command()
def evaluate(
    runs: Annotated[list[str], typer.Argument(help="Bundles: folders that `train` wrote, or names of ones that ship.")],
    cohort: CohortFolder,
    out: Annotated[Path, typer.Option(help="The scorecard to write, NAME.json; every answer goes to NAME.npz.")],
    protocol: Annotated[
        str | None,
        typer.Option(help="A study whose [evaluation] to follow. Default: the paper's attacks, and two stronger ones."),
    ] = None,
    attack: Annotated[
        list[str] | None,
        typer.Option(help="Instead: pgd, sap, apgd, square, quiet or worst, with @ensemble or @1 for the target."),
    ] = None,
    epsilons: Annotated[str | None, typer.Option(help="Strengths of the attacks, in input units: 10,50.")] = None,
    records: Annotated[
        int | None, typer.Option(min=1, help="Attack at most so many recordings, drawn at random.")
    ] = None,
    part: Annotated[str | None, typer.Option(help="test, or tune while choices are still to be made.")] = None,
    store: Annotated[
        Path | None, typer.Option(help="Where crafted recordings are kept and looked for, to go on after a stop.")
    ] = None,
    device: Device = "auto",
    executor: ExecutorOption = Where.LOCAL,
    workers: Workers = None,
    threads: Threads = None,
    address: Address = None,
) -> None:
    """Put ensembles to the test: natural and attacked recordings, every measure with its 95 % interval.

    Several runs are tested on the same recordings, and attacks on members that they share are crafted once.
    """
    from ecgquorum import Cohort, load_ensemble, name_ensembles
    from ecgquorum import evaluate as put_to_the_test
    from ecgquorum.training.jobs import choose_device

    evaluation = (load_study(protocol).evaluation if protocol else EvaluationRecipe()).changed(
        attacks=tuple(attack) if attack else None,
        epsilons=_numbers("--epsilons", epsilons),
        records=records,
        part=part,
    )
    if out.suffix != ".json" or out.is_dir():
        raise ScorecardError(f"{out}: expected the name of a file that ends in .json, found another")
    where = choose_device(device)
    ensembles = name_ensembles(load_ensemble(run, device=where) for run in runs)
    with choose_executor(executor, workers, threads, address, device) as chosen, counting("testing") as count:
        card = put_to_the_test(
            ensembles,
            Cohort(cohort),
            evaluation,
            store=store,
            told=lambda what, done, total: count(done, total, what),
            executor=chosen,
            device=device,
        )
    card.save(out)
    print_scorecard(card)
    stdout.print(f"scorecard: {out}; draw it with: ecgquorum report {out} --out DIR", markup=False)


@app.command()
def report(
    scorecards: Annotated[list[Path], typer.Argument(help="What `evaluate` or `study` wrote, NAME.json.")],
    out: Annotated[
        Path,
        typer.Option(help="Folder for the page, its figures and its tables; NAME.md: one Markdown page instead."),
    ],
) -> None:
    """Write the report of scorecards: one page that opens offline; figures as PNG and SVG; tables as CSV, Markdown
    and LaTeX. No model is needed. A single Markdown page needs no NAME.npz either.
    """
    from ecgquorum import Scorecard, write_report, write_results

    if out.suffix == ".md":
        path = write_results([Scorecard.load(path, rows_only=True) for path in scorecards], out)
        stdout.print(f"report: {path}", markup=False)
        return
    page = write_report([Scorecard.load(path) for path in scorecards], out)
    stdout.print(f"report: {page}", markup=False)


for _command in (study, train):
    _command.__doc__ = f"{_command.__doc__}\n\n    Recipes that ship: {', '.join(recipe_names())}."
