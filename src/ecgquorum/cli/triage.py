"""Commands that take recordings: predict, triage, convert; and policies of triage."""

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ecgquorum.cli.application import (
    DEFAULT_MODEL,
    INTERRUPTED,
    Leads,
    Rate,
    Units,
    app,
    hints_from,
    number_from,
    policy_app,
    share_from,
)
from ecgquorum.cli.console import err, print_answer, print_exported
from ecgquorum.cli.console import out as stdout
from ecgquorum.cli.executor_options import Address, ExecutorOption, Threads, Where, Workers, choose_executor
from ecgquorum.errors import PolicyError
from ecgquorum.progress import console_progress

if TYPE_CHECKING:
    from ecgquorum.parallel import Executor

WATCH_S = 3.0
"""How often `triage --watch` looks."""


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
    from ecgquorum import ReadFailure, load_ensemble, predict_files

    ensemble = load_ensemble(model)
    names: dict[str, str] = ensemble.card.get("class_names", {})
    failed = shown = 0
    for answer in predict_files(ensemble, files, lead, hints_from(rate, leads, units)):
        if isinstance(answer, ReadFailure):
            failed += 1
            err.print(f"error: {answer.reason}", style="red", markup=False)
        elif as_json:
            print(
                "[" if shown == 0 else ",", json.dumps(answer.to_json(), ensure_ascii=False), sep="\n" if shown else ""
            )
            shown += 1
        else:
            print_answer(answer, names)
            shown += 1
    if as_json:
        print("]" if shown else "[]")
    if failed:
        raise typer.Exit(1)


@app.command()
def triage(
    paths: Annotated[
        list[str],
        typer.Argument(help="Recordings, folders or zip archives of them; ARCHIVE.zip/NAME is one in an archive."),
    ],
    out: Annotated[Path, typer.Option(help="Folder for the worklist; the same command goes on where it stopped.")],
    model: Annotated[
        str,
        typer.Option(help="A bundle's folder (what `train` wrote), or one that ships: for 12 leads cpsc2018-compact."),
    ] = DEFAULT_MODEL,
    budget: Annotated[
        str | None,
        typer.Option(help="At most this share of these recordings goes to people: 10%. Default: the model's policy."),
    ] = None,
    lead: Annotated[str | None, typer.Option(help="Which lead to take, for a model of one lead.")] = None,
    rate: Rate = None,
    leads: Leads = None,
    units: Units = None,
    readers: Annotated[int, typer.Option(min=1, max=64, help="Processes that read files, for each --workers.")] = 2,
    watch: Annotated[bool, typer.Option("--watch", help="Go on with what arrives there until Ctrl-C.")] = False,
    fhir: Annotated[
        bool, typer.Option("--fhir", help="Write FHIR R4 too: fhir/DiagnosticReport.ndjson and what it refers to.")
    ] = False,
    executor: ExecutorOption = Where.LOCAL,
    workers: Workers = None,
    threads: Threads = None,
    address: Address = None,
) -> None:
    """Sort recordings into those that are answered and those that people should read.

    Writes worklist.csv, .jsonl and .html. Files that cannot be read are listed with the reason and stop nothing; a
    recording of doubtful quality goes to people whatever the model says. Kill it at any time: the same command goes on.
    """
    from ecgquorum import load_ensemble
    from ecgquorum.preprocessing import ReadOptions
    from ecgquorum.recordings import SandboxLimits
    from ecgquorum.triage import policy_of, triage_files, write_fhir, write_worklist

    share = share_from("--budget", budget)
    ensemble = load_ensemble(model)
    policy = policy_of(ensemble) if share is None else None
    if policy is None and share is None:
        raise PolicyError(
            f"{model}: expected a policy in its card, found none; give --budget 10%, or: ecgquorum policy fit"
        )
    options = ReadOptions(ensemble.input, lead, hints_from(rate, leads, units))
    rationed = f"At most {share or 0:.0%} go to people: the most uncertain, and in any case those of doubtful quality."
    sentence = policy.sentence() if policy else rationed
    name = str(ensemble.card.get("name", model))

    def once(by: "Executor | None", *, first: bool) -> None:
        with console_progress("recordings", err) as progress:
            journal = triage_files(
                ensemble,
                policy,
                paths,
                out,
                options=options,
                limits=SandboxLimits(readers),
                progress=progress,
                only_settled=watch,
                executor=by,
            )
        with journal:
            if first or journal.n_added:
                counts = write_worklist(journal, out, name, sentence, share)
                told = ", ".join(f"{number} {decision}" for decision, number in sorted(counts.items()))
                told = told or "nothing to sort"
                stdout.print(f"{told}; the worklist is in {out / 'worklist.html'} and worklist.csv", markup=False)
                if fhir:
                    print_exported(write_fhir(out / "worklist.jsonl", out / "fhir", ensemble.card), out / "fhir")

    try:
        with choose_executor(executor, workers, threads, address, "cpu") as chosen:
            once(chosen, first=True)
            while watch:
                time.sleep(WATCH_S)
                once(chosen, first=False)
    except KeyboardInterrupt:
        err.print("stopped; what is answered is kept; the same command goes on", markup=False)
        raise typer.Exit(0 if watch else INTERRUPTED) from None


@policy_app.command("fit")
def policy_fit(
    model: Annotated[str, typer.Argument(help="A bundle's folder, or the name of one that ships.")],
    cohort: Annotated[Path, typer.Option(help="The cohort on whose tune part to fit it.")],
    out: Annotated[Path, typer.Option(help="New folder for the bundle with the policy in its card.")],
    kind: Annotated[str, typer.Option(help="threshold, budget, cost or conformal.")] = "budget",
    value: Annotated[
        str | None,
        typer.Option(help="The threshold, the share for people, a review's cost, or the error rate of sets: 10%."),
    ] = None,
    costs: Annotated[
        Path | None, typer.Option(help='Costs of errors as JSON, {"A": {"N": 10}}: N where A is true.')
    ] = None,
) -> None:
    """Fit when recordings go to people, and write the bundle with that in its card."""
    from ecgquorum import Cohort, load_ensemble
    from ecgquorum.ensemble.bundle import add_to_card
    from ecgquorum.triage import KINDS, fit_policy, read_costs

    number = KINDS.get(kind, 0.0) if value is None else number_from("--value", value)
    policy = fit_policy(load_ensemble(model), Cohort(cohort), kind, number, read_costs(costs) if costs else None)
    add_to_card(model, out, {"policy": policy.card()})
    stdout.print(f"{out}: {policy.sentence()}", markup=False)


@policy_app.command("show")
def policy_show(
    model: Annotated[str, typer.Argument(help="A bundle's folder, or the name of one that ships.")],
) -> None:
    """Say in a sentence when recordings go to people."""
    from ecgquorum import load_ensemble
    from ecgquorum.triage import policy_of

    policy = policy_of(load_ensemble(model))
    stdout.print(
        policy.sentence() if policy else f"{model} has no policy; fit one with: ecgquorum policy fit", markup=False
    )


@app.command()
def convert(
    source: Annotated[
        str, typer.Argument(help="A recording, as for `predict`; ARCHIVE.zip/NAME is one in an archive.")
    ],
    target: Annotated[Path, typer.Argument(help="The file to write: .hea (WFDB), .edf, .csv or .npz.")],
    rate: Rate = None,
    leads: Leads = None,
    units: Units = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite a file that exists.")] = False,
) -> None:
    """Write a recording in another format, in millivolts, its leads by their standard names.

    A unit that cannot be true is warned of and believed all the same, unless --units names another.
    """
    from ecgquorum import read
    from ecgquorum.recordings import write
    from ecgquorum.recordings.unit_correction import correct_units

    defaults = hints_from(rate, leads, units)
    recording = read(source, defaults, as_stated=units is None, sandbox=True)
    correction = recording.correction or correct_units(recording, units).correction
    write(recording, target, overwrite=force)
    if correction:
        done = "" if units else f"; written as stated, give --units {correction.used} to write it so"
        err.print(f"{source}: wrong units: {correction}{done}", style="yellow", markup=False)
    stdout.print(
        f"{target}: {', '.join(recording.leads)}, {recording.seconds:.1f} s at {recording.rate_hz:g} Hz", markup=False
    )
