"""The command line: every command is one library call and the printing of what it gives."""

import json
import shlex
import sys
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ecgquorum.console import counting, err, print_answer, print_cohort, print_report, print_scorecard
from ecgquorum.console import out as stdout
from ecgquorum.errors import BundleError, EcgQuorumError, RecipeError, ScorecardError
from ecgquorum.recipe import EvaluationRecipe, load_recipe, load_study, recipe_names

if TYPE_CHECKING:
    from ecgquorum.recordings import Hints

app = typer.Typer(
    help="Small ensembles of ECG classifiers whose disagreement tells when not to trust them. Research use only.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
cohort_app = typer.Typer(help="Labelled recordings: build, inspect and fetch cohorts.", no_args_is_help=True)
app.add_typer(cohort_app, name="cohort")

Rate = Annotated[float | None, typer.Option(min=1, help="Sampling rate in Hz, for files that do not say it.")]
Leads = Annotated[
    str | None, typer.Option(help="Names of the leads in order, for files that do not say them: I,II,V1.")
]
Units = Annotated[str | None, typer.Option(help="mV, uV or V, for files that do not say it.")]

INTERRUPTED = 130
DEFAULT_MODEL = "physionet2017-compact"


def main() -> None:
    """Run the command line; an error that we foresaw is one line, its traceback shown only with --debug."""
    debug = "--debug" in sys.argv
    if debug:
        sys.argv.remove("--debug")
    try:
        app()
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except (EcgQuorumError, OSError, MemoryError) as error:
        if debug:
            raise
        err.print(f"error: {_told(error)}", style="red", markup=False)
        sys.exit(1)


def _told(error: BaseException) -> str:
    """One line: what was expected, what was found, what to do."""
    if isinstance(error, OSError):
        return f"{error.filename or 'the system'}: {error.strerror or error}"
    if isinstance(error, MemoryError):
        return "there is not enough memory for this; try less at once"
    return str(error)


def _print_version(wanted: bool) -> None:
    if wanted:
        stdout.print(f"ecgquorum {version('ecgquorum')}")
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
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
) -> None:
    """Train every strategy of a study, attack and measure them, and write the report.

    Stop it at any time (Ctrl-C); the same command goes on. Members and attacks that strategies share are made once.
    """
    from ecgquorum import Cohort
    from ecgquorum.study import run_study, study_progress

    loaded = load_study(study)
    if strategies is not None:
        loaded = loaded.with_strategies(_listed(strategies))
    opened = Cohort(cohort) if cohort else None
    try:
        with study_progress(err) as progress:
            card, page = run_study(loaded, out, cohort=opened, device=device, progress=progress)
    except KeyboardInterrupt:
        command = shlex.join(["ecgquorum", *sys.argv[1:]])
        err.print(f"stopped; what is finished is kept; go on with: {command}", markup=False)
        raise typer.Exit(INTERRUPTED) from None
    print_scorecard(card)
    stdout.print(f"the ensembles are in {out / 'runs'}, all numbers in {out / 'scorecard.json'}", markup=False)
    stdout.print(f"report: {page}", markup=False)


@app.command()
def train(
    recipe: Annotated[
        str,
        typer.Argument(help="A recipe's TOML file, or the name of one that ships.", autocompletion=recipe_names),
    ],
    cohort: Annotated[Path, typer.Option(help="The cohort's folder, from `ecgquorum cohort build`.")],
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
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
) -> None:
    """Train an ensemble. It can be stopped at any time (Ctrl-C) and continued with --resume, to the same bits
    on the same machine with the same number of threads.
    """
    from ecgquorum import Cohort, train_ensemble
    from ecgquorum.training import training_progress

    loaded = load_recipe(recipe)
    if strategy is not None:
        loaded = loaded.with_strategy(strategy)
    try:
        with training_progress(loaded, err) as observer:
            ensemble = train_ensemble(
                loaded, Cohort(cohort), out, resume=resume, device=device, observer=observer, store=store
            )
    except KeyboardInterrupt:
        err.print(f"stopped; finished epochs are kept; go on with: {_resume_command()}", markup=False)
        raise typer.Exit(INTERRUPTED) from None
    stdout.print(f"accuracy on the tune part: {ensemble.card['tune_accuracy']:.4f}")
    stdout.print(f"bundle: {out}")


def _hints(rate: float | None, leads: str | None, units: str | None) -> "Hints":
    from ecgquorum.recordings import Hints

    return Hints(rate, _listed(leads) if leads else None, units)


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _numbers(option: str, text: str | None) -> tuple[float, ...] | None:
    if text is None:
        return None
    try:
        return tuple(float(part) for part in _listed(text))
    except ValueError:
        raise RecipeError(f"{option}: expected numbers such as 10,50, found {text!r}") from None


def _resume_command() -> str:
    arguments = [argument for argument in sys.argv[1:] if argument != "--resume"]
    return shlex.join(["ecgquorum", *arguments, "--resume"])


@app.command()
def evaluate(
    runs: Annotated[list[str], typer.Argument(help="Bundles: folders that `train` wrote, or names of ones that ship.")],
    cohort: Annotated[Path, typer.Option(help="The cohort's folder, from `ecgquorum cohort build`.")],
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
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
) -> None:
    """Put ensembles to the test: natural and attacked recordings, every measure with its 95 % interval.

    Several runs are tested on the same recordings, and attacks on members that they share are crafted once.
    """
    from ecgquorum import Cohort, load_ensemble, named_ensembles
    from ecgquorum import evaluate as put_to_the_test
    from ecgquorum.training.run import chosen_device

    evaluation = (load_study(protocol).evaluation if protocol else EvaluationRecipe()).changed(
        attacks=tuple(attack) if attack else None,
        epsilons=_numbers("--epsilons", epsilons),
        records=records,
        part=part,
    )
    if out.suffix != ".json" or out.is_dir():
        raise ScorecardError(f"{out}: expected the name of a file that ends in .json, found another")
    where = chosen_device(device)
    ensembles = named_ensembles(load_ensemble(run, where) for run in runs)
    with counting("testing") as count:
        card = put_to_the_test(
            ensembles,
            Cohort(cohort),
            evaluation,
            store=store,
            told=lambda what, done, total: count(done, total, what),
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


@app.command()
def predict(
    files: Annotated[
        list[str],
        typer.Argument(help="Recordings, folders or zip archives of them; ARCHIVE.zip/NAME is one in an archive."),
    ],
    model: Annotated[
        str,
        typer.Option(help="A bundle's folder (what `train` wrote), or one that ships: for 12 leads cpsc2018-compact."),
    ] = DEFAULT_MODEL,
    lead: Annotated[str | None, typer.Option(help="Which lead to take, for a model of one lead.")] = None,
    rate: Rate = None,
    leads: Leads = None,
    units: Units = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON array, one object a recording.")] = False,
) -> None:
    """Classify recordings: class, probabilities, every member's own, and how uncertain the ensemble is.

    Files that cannot be read are named on standard error; the others are classified, and the exit code is 1.
    """
    from ecgquorum import Unreadable, classify_files, load_ensemble

    ensemble = load_ensemble(model)
    names: dict[str, str] = ensemble.card.get("class_names", {})
    failed = shown = 0
    for answer in classify_files(ensemble, files, lead, _hints(rate, leads, units)):
        if isinstance(answer, Unreadable):
            failed += 1
            err.print(f"error: {answer.reason}", style="red", markup=False)
        elif as_json:
            print("[" if shown == 0 else ",", json.dumps(answer, ensure_ascii=False), sep="\n" if shown else "")
            shown += 1
        else:
            print_answer(answer, names)
            shown += 1
    if as_json:
        print("]" if shown else "[]")
    if failed:
        raise typer.Exit(1)


@app.command()
def convert(
    source: Annotated[
        str, typer.Argument(help="A recording, as for `predict`; ARCHIVE.zip/NAME is one in an archive.")
    ],
    target: Annotated[Path, typer.Argument(help="The file to write: .hea (WFDB), .edf, .csv or .npz.")],
    rate: Rate = None,
    leads: Leads = None,
    units: Units = None,
) -> None:
    """Write a recording in another format, in millivolts, its leads by their standard names."""
    from ecgquorum import read
    from ecgquorum.recordings import write

    recording = read(source, _hints(rate, leads, units))
    write(recording, target)
    stdout.print(
        f"{target}: {', '.join(recording.leads)}, {recording.seconds:.1f} s at {recording.rate_hz:g} Hz", markup=False
    )


@app.command()
def card(
    model: Annotated[
        str, typer.Argument(help="A bundle's folder (what `train` wrote), or the name of one that ships.")
    ],
    out: Annotated[Path | None, typer.Option(help="The Markdown file to write. Default: print it.")] = None,
) -> None:
    """Show an ensemble's model card: what it is for, its data and their terms, its results, its known failures."""
    from ecgquorum import load_ensemble, model_card
    from ecgquorum.atomic import write_atomically

    text = model_card(load_ensemble(model).card)
    if out is None:
        print(text, end="")
        return
    if out.is_dir():
        raise BundleError(f"{out}: expected the name of a file, found a folder")
    write_atomically(out, text)
    stdout.print(f"card: {out}", markup=False)


@app.command()
def pack(
    model: Annotated[str, typer.Argument(help="A bundle's folder, what `train` or `study` wrote.")],
    scorecard: Annotated[Path, typer.Argument(help="What `evaluate` or `study` measured of it, NAME.json.")],
    out: Annotated[Path, typer.Option(help="Folder for the bundle.")],
) -> None:
    """Write a bundle to give to others: weights, and a card with its results; no checkpoints, no history."""
    from ecgquorum import Scorecard
    from ecgquorum import pack as packed

    path = packed(model, Scorecard.load(scorecard, rows_only=True), out)
    size = sum(file.stat().st_size for file in path.iterdir() if file.is_file())
    stdout.print(f"bundle: {path}, {size / 1e6:.1f} MB; its card: ecgquorum card {path}", markup=False)


@app.command()
def export(
    model: Annotated[
        str, typer.Argument(help="A bundle's folder (what `train` wrote), or the name of one that ships.")
    ],
    out: Annotated[Path, typer.Option(help="The ONNX file to write.")],
) -> None:
    """Write an ensemble as ONNX: fitted signals in; probabilities, every member's, and uncertainty out.

    The graph is run by onnxruntime and compared with the ensemble before the file is written.
    """
    from ecgquorum import export_onnx, load_ensemble
    from ecgquorum.ensemble.exporting import TOLERANCE

    ensemble = load_ensemble(model)
    path = export_onnx(ensemble, out)
    spec = ensemble.spec
    stdout.print(
        f"{path}: signal (batch, {len(spec.leads)}, {spec.n_window}) at {spec.rate_hz:g} Hz, scaled to {spec.scaling}; "
        f"agrees with the ensemble to {TOLERANCE:g}",
        markup=False,
    )


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
    seconds: Annotated[float, typer.Option(help="Their length (synthetic sources).", min=1, max=86400)] = 30.0,
    seed: Annotated[int, typer.Option(help="Seed of the simulation (synthetic sources).")] = 0,
) -> None:
    """Build a cohort: read every recording, leave out duplicates and what cannot serve, split in three, write.

    A labels.csv has the columns id (the recording's path in the folder), label (several separated by |) and, if
    known, patient: a patient's recordings always stay in one part.
    """
    from ecgquorum import build_cohort, open_source

    opened = open_source(source, records=records, seconds=seconds, seed=seed)
    with counting("reading") as progress:
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
    print_report(report)
    print_cohort(cohort)


@cohort_app.command("info")
def cohort_info(path: Annotated[Path, typer.Argument(help="The cohort's folder.")]) -> None:
    """Show a cohort: counts per class and part, lengths, rate, leads, units."""
    from ecgquorum import Cohort

    print_cohort(Cohort(path))


@cohort_app.command("fetch")
def cohort_fetch(
    name: Annotated[str, typer.Argument(help="physionet2017 or cpsc2018.")],
    out: Annotated[Path | None, typer.Option(help="Folder to download to. Default: data/NAME.")] = None,
    url: Annotated[str | None, typer.Option(help="A mirror with the same layout and a SHA256SUMS.txt.")] = None,
) -> None:
    """Download a data set from PhysioNet, checked against its SHA-256 sums; run again to go on where it stopped."""
    from ecgquorum import fetch

    with counting("files") as progress:
        folder = fetch(name, out or Path("data") / name, url=url, progress=progress)
    stdout.print(f"{name} is in {folder}; build a cohort with: ecgquorum cohort build {folder} --out DIR")


for _command in (study, train):
    _command.__doc__ = f"{_command.__doc__}\n\n    Recipes that ship: {', '.join(recipe_names())}."

if __name__ == "__main__":
    main()
