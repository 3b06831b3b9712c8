"""Commands that evaluate ensembles and report the results: evaluate, report."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ecgquorum.cli.application import ENSEMBLES, CohortFolder, Device, MemberName, app, check_folder, split_names
from ecgquorum.cli.console import print_line, print_scorecard
from ecgquorum.cli.executor_options import Address, ExecutorOption, Threads, Where, Workers, choose_executor
from ecgquorum.errors import RecipeError, ScorecardError
from ecgquorum.progress import console_progress

if TYPE_CHECKING:
    import torch

    from ecgquorum import Cohort, Ensemble, MappedCohort
    from ecgquorum.recipes import EvaluationRecipe


@app.command(rich_help_panel=ENSEMBLES)
def evaluate(
    runs: Annotated[
        list[str],
        typer.Argument(
            help="Bundles: folders written by `train`, or names of bundles that ship; NAME=FOLDER to call it NAME in "
            "tables. Default names: that of a bundle that ships, else its strategy."
        ),
    ],
    cohort: CohortFolder,
    out: Annotated[Path, typer.Option(help="The scorecard to write, NAME.json; all predictions go to NAME.npz.")],
    protocol: Annotated[
        str | None,
        typer.Option(
            help="A study whose [evaluation] table to use. Default: the paper's attacks and two stronger ones."
        ),
    ] = None,
    attack: Annotated[
        list[str] | None,
        typer.Option(
            help="An attack instead: pgd, sap, apgd, square, confident or worst, with @ensemble or @1 for its target."
        ),
    ] = None,
    epsilons: Annotated[
        str | None, typer.Option(help="Strengths of the attacks, in input units (µV for the shipped models): 10,50.")
    ] = None,
    corruptions: Annotated[
        str | None,
        typer.Option(
            help="Corruptions instead of attacks: all, or names that `ecgquorum corruptions` lists, as muscle,lead-off."
        ),
    ] = None,
    severities: Annotated[
        str | None, typer.Option(help="Severities of the corruptions, 1 to 5: 1,3,5. Default: all five.")
    ] = None,
    ood: Annotated[
        str | None,
        typer.Option(
            help="Recordings out of distribution instead of attacks: all, or names such as noise,eeg; unseen: classes "
            "that the models do not know."
        ),
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(
            help="Ensemble by whose errors corruption errors are divided. Default: the baseline, or the first."
        ),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(
            help="For a cohort with other classes, leads or rate: a TOML file whose table [labels] has lines such as "
            'AF = "A", class of the cohort = class of the model; lead = "II" above it for a model of one lead.'
        ),
    ] = None,
    records: Annotated[
        int | None, typer.Option(min=1, help="Attack or corrupt at most this many recordings, drawn at random.")
    ] = None,
    part: Annotated[
        str | None, typer.Option(help="Part of the cohort: test (default), or tune while you still make choices.")
    ] = None,
    store: Annotated[
        str | None, typer.Option(help="Cache folder of attacked recordings, or its URL, to resume after a stop.")
    ] = None,
    member: MemberName = None,
    device: Device = "auto",
    executor: ExecutorOption = Where.LOCAL,
    workers: Workers = None,
    threads: Threads = None,
    address: Address = None,
) -> None:
    """Evaluate ensembles on natural, attacked or corrupted recordings, every metric with its 95 % interval.

    All bundles are evaluated on the same recordings; attacks on members that they share run once.
    """
    from ecgquorum import Cohort
    from ecgquorum.evaluation import evaluate_recipe
    from ecgquorum.recipes import EvaluationRecipe, load_study
    from ecgquorum.training import choose_device

    shifted = corruptions is not None or ood is not None
    evaluation = (load_study(protocol).evaluation if protocol else EvaluationRecipe()).change(
        attacks=tuple(attack) if attack else () if shifted and not protocol else None,
        epsilons=_parse_numbers("--epsilons", epsilons),
        records=records,
        part=part,
        corruptions=split_names(corruptions) if corruptions is not None else None,
        severities=_parse_severities(severities),
        ood=split_names(ood) if ood is not None else None,
        reference=reference,
    )
    if out.suffix != ".json" or out.is_dir():
        raise ScorecardError(f"{out}: expected the name of a file that ends in .json")
    check_folder(out.parent)  # before the work
    where = choose_device(device)
    ensembles = _load_ensembles(runs, member, where)
    opened = Cohort(cohort)
    if labels:
        opened = _map_labels(opened, labels, next(iter(ensembles.values())), evaluation)
    with (
        choose_executor(executor, workers, threads, address, device) as chosen,
        console_progress("evaluate") as progress,
    ):
        card = evaluate_recipe(
            ensembles,
            opened,
            evaluation,
            cache=store,
            progress=progress,
            executor=chosen,
            device=device,
        )
    card.save(out)
    print_scorecard(card)
    print_line(f"scorecard: {out}; write its report with: ecgquorum report {out} --out DIR")


@app.command(rich_help_panel=ENSEMBLES)
def report(
    scorecards: Annotated[list[Path], typer.Argument(help="Scorecards, NAME.json, written by `evaluate` or `study`.")],
    out: Annotated[
        Path,
        typer.Option(
            help="Folder for the page, figures and tables; NAME.md for one Markdown page; NAME.json to merge "
            "scorecards of the same recordings."
        ),
    ],
    intro: Annotated[
        Path | None, typer.Option(help="A Markdown file with text for the beginning of NAME.md, such as conclusions.")
    ] = None,
) -> None:
    """Write a report of scorecards: an HTML page that opens offline, figures as PNG and SVG, tables as CSV, Markdown
    and LaTeX.

    No model is needed. A single Markdown page does not need NAME.npz either.
    """
    from ecgquorum import Scorecard, write_report, write_results
    from ecgquorum.evaluation import merge_scorecards

    if intro and out.suffix != ".md":
        raise ScorecardError(f"--intro is for a Markdown page only; name one: --out {out.with_suffix('.md')}")
    check_folder(out.parent if out.suffix in (".md", ".json") else out)
    if out.suffix == ".md":
        text = _read_text(intro) if intro else ""
        path = write_results([Scorecard.load(path, rows_only=True) for path in scorecards], out, intro=text)
        print_line(f"report: {path}")
        return
    cards = [Scorecard.load(path) for path in scorecards]
    if out.suffix == ".json":
        merged = merge_scorecards(cards)
        if len(merged) > 1:
            raise ScorecardError(f"{out}: the scorecards are of different recordings; write a report of them instead")
        print_line(f"scorecard: {merged[0].save(out)}")
        return
    print_line(f"report: {write_report(cards, out)}")


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ScorecardError(f"{path}: cannot read this text: {error}") from error


def _load_ensembles(runs: list[str], member: str | None, device: "torch.device") -> "dict[str, Ensemble]":
    """Load every bundle, under the name given before "=", that of a bundle that ships, or by its strategy."""
    from ecgquorum import load_ensemble, name_ensembles
    from ecgquorum.ensemble import bundle_names

    shipped = bundle_names()
    given: dict[str, Ensemble] = {}
    others: list[Ensemble] = []
    for run in runs:
        name, is_named, path = run.partition("=")
        if not is_named or Path(run).exists():
            name, path = run if run in shipped else "", run
        ensemble = load_ensemble(path, member=member, device=device)
        if not name:
            others.append(ensemble)
        elif given.setdefault(name, ensemble) is not ensemble:
            raise ScorecardError(f"two bundles are called {name}; give one another name: NAME={path}")
    named = name_ensembles(others)
    for name in given.keys() & named.keys():
        raise ScorecardError(f"two bundles are called {name}; give one another name: NAME=FOLDER")
    return given | named


def _map_labels(cohort: "Cohort", path: Path, ensemble: "Ensemble", evaluation: "EvaluationRecipe") -> "MappedCohort":
    """Map the cohort's classes, leads and rate to those of the ensemble, and print what was mapped."""
    from ecgquorum import MappedCohort, load_label_map

    mapped = MappedCohort(cohort, ensemble.classes, ensemble.input, load_label_map(path))
    for line in mapped.describe(evaluation.part):
        print_line(line)
    return mapped


def _parse_severities(text: str | None) -> tuple[int, ...] | None:
    numbers = _parse_numbers("--severities", text)
    if numbers is not None and not (numbers and set(numbers) <= {1, 2, 3, 4, 5}):
        raise RecipeError(f"--severities: expected numbers from 1 to 5 such as 1,3,5, found {text!r}")
    return tuple(map(int, numbers)) if numbers else None


def _parse_numbers(option: str, text: str | None) -> tuple[float, ...] | None:
    if text is None:
        return None
    try:
        return tuple(float(part) for part in split_names(text))
    except ValueError:
        raise RecipeError(f"{option}: expected numbers such as 10,50, found {text!r}") from None
