"""Commands about corruptions: corrupt, corruptions."""

from pathlib import Path
from typing import Annotated

import typer

from ecgquorum.cli.application import RECORDINGS, File, Force, Leads, Rate, Units, app, check_new, file_defaults
from ecgquorum.cli.console import err, print_line, print_table
from ecgquorum.cli.recordings import print_output_path
from ecgquorum.progress import console_progress


@app.command(rich_help_panel=RECORDINGS)
def corrupt(
    source: File,
    target: Annotated[Path, typer.Argument(help="The file to write: .hea (WFDB), .edf, .csv or .npz.")],
    kind: Annotated[
        str,
        typer.Option(
            help="A corruption such as muscle, mains, lead-off or reversal-ra-la; `ecgquorum corruptions` lists them."
        ),
    ],
    severity: Annotated[int, typer.Option(min=1, max=5, help="From 1, slight, to 5, severe.")] = 3,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same disturbance.")] = 0,
    rate: Rate = None,
    leads: Leads = None,
    units: Units = None,
    force: Force = False,
) -> None:
    """Disturb a recording as electrodes, devices and people do, and write it to a file."""
    from ecgquorum import read, write
    from ecgquorum._internal.seeds import numpy_generator
    from ecgquorum.corruptions import build_corruption

    corruption = build_corruption(kind, severity)
    recording = read(source, file_defaults(rate, leads, units), sandbox=True)
    corrupted = corruption(recording, generator=numpy_generator(seed, "corrupt", kind))
    write(corrupted, target, overwrite=force)
    print_output_path(corrupted, target)
    print_line(f"{kind}, severity {severity}: {corruption}")


@app.command(rich_help_panel=RECORDINGS)
def corruptions(
    plot: Annotated[
        Path | None, typer.Option(help="Draw every corruption of the recording on ECG paper: .png, .svg or .pdf.")
    ] = None,
    recording: Annotated[
        str, typer.Option(help="The recording to draw; sample:lbbb is one of 12 leads that ships.")
    ] = "sample:lbbb",
    guard: Annotated[
        Path | None,
        typer.Option(help="A cohort's folder: count the corrupted recordings of its tune part that the guard finds."),
    ] = None,
    records: Annotated[int, typer.Option(min=1, help="How many recordings to check the guard with.")] = 100,
    force: Force = False,
) -> None:
    """List the corruptions and what their severities mean; draw them, or check the quality guard against them."""
    from ecgquorum.corruptions import CORRUPTIONS, OOD_SETS

    if plot:
        _draw(recording, plot, force)
    if guard:
        _check_guard(guard, records)
    if plot or guard:
        return
    rows: list[tuple[str, ...]] = [("corruption", "1", "2", "3", "4", "5")]
    units = [""]
    for name in CORRUPTIONS:
        kind = CORRUPTIONS.get(name)
        levels = [f"{level:g}" for level in kind.levels]
        rows.append((name, *(levels if len(levels) > 1 else ["", "", *levels, "", ""])))
        units.append(kind.unit)
    print_table(rows, units)
    print_line(f"out of distribution: {', '.join(OOD_SETS)}")


def _draw(recording: str, path: Path, force: bool) -> None:
    from ecgquorum import read
    from ecgquorum._internal.atomic import write_atomic
    from ecgquorum._internal.figure_style import render_figure
    from ecgquorum.errors import DrawingError
    from ecgquorum.report.corruption_gallery import draw_gallery

    kind = path.suffix.lower().removeprefix(".")
    if kind not in ("png", "svg", "pdf"):
        raise DrawingError(f"{path}: expected a name that ends in .png, .svg or .pdf")
    check_new(path, force)
    write_atomic(path, render_figure(draw_gallery(read(recording, sandbox=True)), kind, _DPI))
    print_line(f"drawn: {path}")


_DPI = 90


def _check_guard(path: Path, records: int) -> None:
    from ecgquorum import Cohort
    from ecgquorum.corruptions.guard_check import check_guard
    from ecgquorum.errors import CohortError

    cohort = Cohort(path)
    indices = cohort.part("tune")
    if not len(indices):
        raise CohortError(f"{path}: the tune part has no recordings; the guard is checked on these")
    chosen = indices[:: max(1, -(-len(indices) // records))]
    with console_progress("guard", err) as progress:
        found = check_guard((cohort.recording(int(index)) for index in chosen), progress=progress)
    print_line(
        f"{len(chosen)} natural recordings, {100 * found.refused:.0f} % found doubtful or unreadable; "
        f"of the other {found.n_records} when corrupted (%):"
    )
    severities = sorted({severity for shares in found.found.values() for severity in shares})
    rows = [("corruption", *map(str, severities))]
    rows += [
        (name, *(f"{100 * shares[s]:.0f}" if s in shares else "" for s in severities))
        for name, shares in found.found.items()
    ]
    print_table(rows, ["", *(", ".join(found.findings[name]) for name in found.found)])
