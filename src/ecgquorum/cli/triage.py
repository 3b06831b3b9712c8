"""The command that sorts recordings: triage."""

import json
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ecgquorum.cli.application import (
    DEFAULT_MODEL,
    INTERRUPTED,
    RECORDINGS,
    Files,
    Identify,
    Lead,
    Leads,
    Measure,
    MemberName,
    Model,
    Rate,
    Stride,
    Units,
    Window,
    app,
    check_place,
    file_defaults,
    parse_share,
)
from ecgquorum.cli.console import err, print_error, print_fhir, print_line, print_warning
from ecgquorum.cli.executor_options import Address, ExecutorOption, Threads, Where, Workers, choose_executor
from ecgquorum.cli.policies import Always, Floor, Never, Urgent, change_urgency
from ecgquorum.errors import PolicyError
from ecgquorum.progress import NO_PROGRESS, Progress, console_progress

if TYPE_CHECKING:
    from ecgquorum.ensemble import Ensemble
    from ecgquorum.parallel import Executor
    from ecgquorum.triage import Policy, Summary, TriageOptions

WATCH_S = 3.0
"""How often `triage --watch` looks for new recordings, in seconds."""

SOME_UNREADABLE, SOME_SKIPPED = 3, 4
"""Exit codes: recordings could not be read; all could, but files were no recordings and not ignored."""


@app.command(rich_help_panel=RECORDINGS)
def triage(
    paths: Files,
    out: Annotated[
        str,
        typer.Option(
            help="Folder for the worklist, or its URL: s3://bucket/sorted. The same command resumes after a stop.",
            callback=check_place,
        ),
    ],
    model: Model = DEFAULT_MODEL,
    member: MemberName = None,
    budget: Annotated[
        str | None,
        typer.Option(
            help="Send at most this share of the usable recordings to a person: 10%. Default: the model's policy."
        ),
    ] = None,
    urgent: Urgent = None,
    always: Always = None,
    never: Never = None,
    floor: Floor = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(help="Leave out files that are meant to be there, such as '*.txt'; may be given several times."),
    ] = None,
    window: Window = None,
    stride: Stride = None,
    lead: Lead = None,
    rate: Rate = None,
    leads: Leads = None,
    units: Units = None,
    identify: Identify = False,
    measure: Measure = False,
    readers: Annotated[int, typer.Option(min=1, max=64, help="Processes that read files, per worker.")] = 2,
    plots: Annotated[
        int, typer.Option(min=0, help="Draw so many recordings on ECG paper, from the top of the worklist.")
    ] = 20,
    watch: Annotated[bool, typer.Option("--watch", help="Keep running and take new recordings until Ctrl-C.")] = False,
    fhir: Annotated[
        bool,
        typer.Option("--fhir", help="Also write FHIR R4: fhir/DiagnosticReport.ndjson and the resources it refers to."),
    ] = False,
    log: Annotated[Path | None, typer.Option(help="The log file. Default: triage.log in --out.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print errors only.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as a JSON object.")] = False,
    executor: ExecutorOption = Where.LOCAL,
    workers: Workers = None,
    threads: Threads = None,
    address: Address = None,
) -> None:
    """Classify recordings and sort them into certain ones and ones that a person should read.

    Writes worklist.csv, .jsonl and .html. Every file is in it: those that cannot be read or are no recordings, with
    the reason. A recording of doubtful quality always goes to a person. The same command resumes an interrupted run.

    Exit codes: 0 all files were read or ignored; 1 error, or a path does not exist; 2 wrong options; 3 some
    recordings cannot be read; 4 some files are no recordings and were not ignored; 130 interrupted.
    """
    from ecgquorum import load_ensemble
    from ecgquorum.preprocessing import ReadOptions, Windowing
    from ecgquorum.preprocessing.measurements import require_package
    from ecgquorum.recordings import SandboxLimits
    from ecgquorum.storage import parse_location
    from ecgquorum.triage import TriageOptions, policy_of, urgency_of
    from ecgquorum.triage.remote_output import LOG, forget_erased, output_folder

    if measure:
        require_package()
    out = str(parse_location(out))
    share = parse_share("--budget", budget)
    ensemble = load_ensemble(model, member=member)
    policy = policy_of(ensemble) if share is None else None
    if policy is None and share is None:
        raise PolicyError(
            f"{model}: the bundle has no policy; give --budget 10%, or fit one with: ecgquorum policy fit"
        )
    urgency = change_urgency(urgency_of(ensemble), urgent, always, never, floor)
    urgency.check(ensemble.classes)
    options = TriageOptions(
        ReadOptions(ensemble.input, lead, file_defaults(rate, leads, units), identify=identify, measure=measure),
        SandboxLimits(readers),
        urgency,
        Windowing(window, stride),
        tuple(ignore or ()),
        only_settled=watch,
    )
    job = _Job(ensemble, policy, share, options, paths, out, str(ensemble.card.get("name", model)), plots, fhir)
    output = _Output(quiet, as_json)
    forget_erased(out)
    with (
        choose_executor(executor, workers, threads, address, "cpu") as chosen,  # wrong options leave no log
        _open_log(log or output_folder(out) / LOG) as write_log,
    ):
        write_log(f"ecgquorum {version('ecgquorum')} triage, model {job.title}: {', '.join(paths)}")
        code = INTERRUPTED
        try:
            code = _sort(job, chosen, output, write_log, first=True)
            while watch:
                time.sleep(WATCH_S)
                _sort(job, chosen, output, write_log, first=False)
        except KeyboardInterrupt:
            err.print("stopped; finished recordings are kept; the same command resumes", markup=False)
            code = 0 if watch else INTERRUPTED
        finally:
            write_log(f"ended with exit code {code}")
    raise typer.Exit(code)


@dataclass(frozen=True)
class _Job:
    """What to sort, and what to write; `title` is the name of the model."""

    ensemble: "Ensemble"
    policy: "Policy | None"
    budget: float | None
    options: "TriageOptions"
    paths: list[str]
    out: str
    title: str
    plots: int
    fhir: bool

    def sentence(self) -> str:
        """What decides, in words."""
        by_budget = f"At most {self.budget or 0:.0%} of the usable recordings go to a person, the highest risks."
        rules = self.options.urgency.sentence() if self.options.urgency else ""
        return f"{self.policy.sentence() if self.policy else by_budget} Doubtful quality always does. {rules}"


@dataclass(frozen=True)
class _Output:
    """What is printed."""

    quiet: bool
    as_json: bool

    def print_summary(self, summary: "Summary", out: str) -> None:
        """Print the counts, and the files that were not taken."""
        for reason in summary.missing:
            print_error(reason)
        if self.as_json:
            print(json.dumps(summary.to_json() | {"out": out, "exit_code": exit_code(summary)}))
        elif not self.quiet:
            print_line(f"{summary.sentence()}; worklist: {out}/worklist.html and worklist.csv")
            if summary.decisions["skipped"]:
                print_warning(
                    f"not recordings: {summary.decisions['skipped']}; the end of worklist.csv says why; "
                    "leave out what is meant to be there with --ignore '*.txt'"
                )


def exit_code(summary: "Summary") -> int:
    """0: every file was read or ignored; else the most serious of what happened."""
    if summary.missing:
        return 1
    if summary.decisions["unreadable"]:
        return SOME_UNREADABLE
    return SOME_SKIPPED if summary.decisions["skipped"] else 0


class _Logged:
    """Passes the position on to a progress bar, and lines to the log file."""

    def __init__(self, progress: Progress, write_log: Callable[[str], None]) -> None:
        self._progress, self._write_log = progress, write_log

    def update(self, text: str, done: float, total: float) -> None:
        self._progress.update(text, done, total)

    def log(self, line: str) -> None:
        self._write_log(line)


def _sort(
    job: _Job, executor: "Executor | None", output: _Output, write_log: Callable[[str], None], *, first: bool
) -> int:
    """Triage what is new and write the worklist; returns the exit code."""
    from ecgquorum.triage import triage_files, write_fhir, write_worklist
    from ecgquorum.triage.plots import draw_plots
    from ecgquorum.triage.remote_output import output_folder, publish_output

    folder = output_folder(job.out)
    with _bar(output) as bar:
        progress = _Logged(bar, write_log)
        journal = triage_files(
            job.ensemble, job.policy, job.paths, job.out, job.options, progress=progress, executor=executor
        )
        with journal:
            if not first and not journal.n_added:
                return 0
            read, limits = job.options.read, job.options.limits
            draw_plots(journal, folder, job.plots, job.budget, options=read, limits=limits, progress=progress)
            summary = write_worklist(journal, folder, job.title, job.sentence(), job.budget)
    write_log(summary.sentence())
    counts = write_fhir(folder / "worklist.jsonl", folder / "fhir", job.ensemble.card) if job.fhir else None
    publish_output(job.out)
    output.print_summary(summary, job.out)
    if counts is not None and not output.quiet and not output.as_json:
        print_fhir(counts, f"{job.out}/fhir")
    return exit_code(summary)


@contextmanager
def _bar(output: _Output) -> Iterator[Progress]:
    if output.quiet:
        yield NO_PROGRESS
    else:
        with console_progress("recordings", err) as bar:
            yield bar


@contextmanager
def _open_log(path: Path) -> Iterator[Callable[[str], None]]:
    """Append lines with the time to a file while the block runs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handler = logging.FileHandler(path, encoding="utf-8", errors="backslashreplace")
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    logger = logging.Logger("ecgquorum.triage")
    logger.addHandler(handler)
    try:
        yield lambda line: logger.info("%s", line.replace("\n", " "))
    finally:
        handler.close()
