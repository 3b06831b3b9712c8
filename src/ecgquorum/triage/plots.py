"""Draw the first recordings of a worklist on ECG paper, and the windows of long ones over time."""

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

from ecgquorum.ensemble.result import Result
from ecgquorum.errors import EcgQuorumError
from ecgquorum.preprocessing.prepare import ANY_RECORDING, PreparedRecording, ReadOptions, read_recordings
from ecgquorum.progress import NO_PROGRESS, Progress
from ecgquorum.recording_plot import Page, plot_recording
from ecgquorum.recordings.discovery import ReadFailure, locate
from ecgquorum.recordings.recording import one_line
from ecgquorum.recordings.sandbox import LIMITS, SandboxLimits
from ecgquorum.report.recording_figure import write_sheet
from ecgquorum.triage.journal import Journal
from ecgquorum.triage.timeline import plot_timeline
from ecgquorum.triage.worklist import plot_paths

_DPI = 110


def draw_plots(
    journal: Journal,
    out: str | Path,
    n_plots: int,
    budget: float | None = None,
    *,
    options: ReadOptions = ANY_RECORDING,
    limits: SandboxLimits = LIMITS,
    progress: Progress = NO_PROGRESS,
) -> int:
    """Draw the first `n_plots` recordings of the worklist in `out`/plots, unless they are drawn; returns how many.

    A long recording is drawn from the beginning of its worst window. `write_worklist` links the pictures that exist.

    budget:  as for `write_worklist`
    options: as for `triage_files`; with `identify`, patient and acquisition are on the plot
    """
    out = Path(out)
    results = islice((entry.result for entry in journal.entries(budget) if entry.result.label), n_plots)
    waiting = [one for one in results if not plot_paths(out, one)[0].is_file()]
    located = {}
    for one in waiting:
        try:
            located[locate(one.source)] = one
        except EcgQuorumError as error:
            progress.log(f"{one.source}: no plot: {one_line(error)}")
    whole = replace(options, spec=None, recording_bytes=0)
    reads = read_recordings(located, whole, limits=replace(limits, n_workers=1))
    for done, (one, read) in enumerate(zip(located.values(), reads, strict=True)):
        progress.update("plots", done, len(located))
        for line in _draw(out, one, read, options):
            progress.log(line)
    return len(waiting)


def _draw(out: Path, result: Result, read: PreparedRecording | ReadFailure, options: ReadOptions) -> Iterator[str]:
    """Draw one recording; yields what went wrong, which must not stop the worklist."""
    sheet, timeline = plot_paths(out, result)
    try:
        if result.worst_window:
            write_sheet(plot_timeline(result), timeline, _DPI)
        if isinstance(read, ReadFailure):
            yield f"no plot: {read.reason}"
            return
        start_s = math.floor(result.worst_window.start_s) if result.worst_window else 0
        drawn = plot_recording(
            read.recording, Page(start_s=start_s), identify=options.identify, measure=options.measure
        )
        write_sheet(drawn.figure, sheet, _DPI)
    except Exception as error:  # matplotlib and neurokit2 raise many kinds of errors for odd signals
        yield f"{result.source}: no plot: {one_line(error)}"
