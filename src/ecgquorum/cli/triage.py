"""Commands that sort recordings: triage, and the policies of triage."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ecgquorum.cli.application import (
    DEFAULT_MODEL,
    ENSEMBLES,
    INTERRUPTED,
    RECORDINGS,
    Bundle,
    Files,
    Group,
    Lead,
    Leads,
    MemberName,
    Model,
    Rate,
    Units,
    app,
    file_defaults,
    parse_number,
    parse_share,
)
from ecgquorum.cli.console import err, print_fhir, print_line
from ecgquorum.cli.executor_options import Address, ExecutorOption, Threads, Where, Workers, choose_executor
from ecgquorum.errors import PolicyError
from ecgquorum.progress import console_progress

if TYPE_CHECKING:
    from ecgquorum.parallel import Executor
    from ecgquorum.triage import Policy

policy_app = typer.Typer(
    cls=Group, help="Policies that say which recordings a person should read: fit and show.", no_args_is_help=True
)
app.add_typer(policy_app, name="policy", rich_help_panel=ENSEMBLES)

WATCH_S = 3.0
"""How often `triage --watch` looks for new recordings, in seconds."""


@app.command(rich_help_panel=RECORDINGS)
def triage(
    paths: Files,
    out: Annotated[Path, typer.Option(help="Folder for the worklist; the same command resumes an interrupted run.")],
    model: Model = DEFAULT_MODEL,
    member: MemberName = None,
    budget: Annotated[
        str | None,
        typer.Option(help="Send at most this share of the recordings to a person: 10%. Default: the model's policy."),
    ] = None,
    lead: Lead = None,
    rate: Rate = None,
    leads: Leads = None,
    units: Units = None,
    readers: Annotated[int, typer.Option(min=1, max=64, help="Processes that read files, per worker.")] = 2,
    watch: Annotated[bool, typer.Option("--watch", help="Keep running and take new recordings until Ctrl-C.")] = False,
    fhir: Annotated[
        bool,
        typer.Option("--fhir", help="Also write FHIR R4: fhir/DiagnosticReport.ndjson and the resources it refers to."),
    ] = False,
    executor: ExecutorOption = Where.LOCAL,
    workers: Workers = None,
    threads: Threads = None,
    address: Address = None,
) -> None:
    """Classify recordings and sort them into certain ones and ones that a person should read.

    Writes worklist.csv, .jsonl and .html. Files that cannot be read are listed with the reason; a recording of
    doubtful quality always goes to a person. The same command resumes an interrupted run.
    """
    from ecgquorum import load_ensemble
    from ecgquorum.preprocessing import ReadOptions
    from ecgquorum.recordings import SandboxLimits
    from ecgquorum.triage import policy_of, triage_files, write_fhir, write_worklist

    share = parse_share("--budget", budget)
    ensemble = load_ensemble(model, member=member)
    policy = policy_of(ensemble) if share is None else None
    if policy is None and share is None:
        raise PolicyError(
            f"{model}: the bundle has no policy; give --budget 10%, or fit one with: ecgquorum policy fit"
        )
    options = ReadOptions(ensemble.input, lead, file_defaults(rate, leads, units))
    by_budget = f"At most {share or 0:.0%} go to a person: the highest risks, and always those of doubtful quality."
    sentence = policy.sentence() if policy else by_budget
    name = str(ensemble.card.get("name", model))

    def sort_once(by: "Executor | None", *, first: bool) -> None:
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
                summary = ", ".join(f"{number} {decision}" for decision, number in sorted(counts.items()))
                print_line(f"{summary or 'no recordings'}; worklist: {out / 'worklist.html'} and worklist.csv")
                if fhir:
                    print_fhir(write_fhir(out / "worklist.jsonl", out / "fhir", ensemble.card), out / "fhir")

    try:
        with choose_executor(executor, workers, threads, address, "cpu") as chosen:
            sort_once(chosen, first=True)
            while watch:
                time.sleep(WATCH_S)
                sort_once(chosen, first=False)
    except KeyboardInterrupt:
        err.print("stopped; finished recordings are kept; the same command resumes", markup=False)
        raise typer.Exit(0 if watch else INTERRUPTED) from None


@policy_app.command("fit")
def policy_fit(
    model: Bundle,
    cohort: Annotated[Path, typer.Option(help="The cohort; the policy is fitted on its tune part.")],
    out: Annotated[Path, typer.Option(help="New folder for the bundle with the policy in its card.")],
    kind: Annotated[str, typer.Option(help="threshold, budget, cost or conformal.")] = "budget",
    value: Annotated[
        str | None,
        typer.Option(
            help="The threshold, the share read by people, the cost of a review, or the error rate of sets: 10%."
        ),
    ] = None,
    costs: Annotated[
        Path | None,
        typer.Option(help='JSON file of error costs, {"A": {"N": 10}}: answering N where A is true costs 10.'),
    ] = None,
    score: Annotated[
        str, typer.Option(help="The uncertainty score to use: risk, confidence, mutual_information, distance, ...")
    ] = "risk",
    member: MemberName = None,
) -> None:
    """Fit a policy on the tune part and write a copy of the bundle with the policy in its card."""
    from ecgquorum import Cohort, load_ensemble
    from ecgquorum.ensemble.bundle import add_to_card
    from ecgquorum.triage import KINDS, fit_policy, read_costs

    number = KINDS.get(kind, 0.0) if value is None else parse_number("--value", value)
    ensemble = load_ensemble(model, member=member)
    policy = fit_policy(ensemble, Cohort(cohort), kind, number, read_costs(costs) if costs else None, score)
    add_to_card(model, out, {"policy": policy.card()})
    print_line(f"{out}: {_describe(policy)}")


@policy_app.command("show")
def policy_show(
    model: Bundle,
) -> None:
    """Show a bundle's policy in one sentence, and in another what it would have done on the tune part."""
    from ecgquorum import read_card
    from ecgquorum.triage import policy_from

    card = read_card(model)
    policy = policy_from(card["policy"]) if "policy" in card else None
    print_line(_describe(policy) if policy else f"{model} has no policy; fit one with: ecgquorum policy fit")


def _describe(policy: "Policy") -> str:
    return f"{policy.sentence()} {policy.tune.sentence()}" if policy.tune else policy.sentence()
