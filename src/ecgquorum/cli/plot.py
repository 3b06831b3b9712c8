"""The command that draws recordings: plot."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from ecgquorum.cli.application import (
    DEFAULT_MODEL,
    RECORDINGS,
    File,
    Force,
    Identify,
    Lead,
    Leads,
    Measure,
    MemberName,
    Rate,
    Units,
    app,
    check_new,
    file_defaults,
)
from ecgquorum.cli.console import print_line
from ecgquorum.errors import DrawingError
from ecgquorum.progress import console_progress


@app.command(rich_help_panel=RECORDINGS)
def plot(
    file: File,
    out: Annotated[
        Path | None,
        typer.Option(help="The file to write: .png, .svg or .pdf. Default: the recording's name with .png, here."),
    ] = None,
    layout: Annotated[
        str | None,
        typer.Option(help="3x4+1, 6x2, 12x1, or rows: all leads below each other. Default: 3x4+1 if it has 12 leads."),
    ] = None,
    speed: Annotated[float, typer.Option(help="Paper speed: 12.5, 25 or 50 mm/s.")] = 25.0,
    gain: Annotated[float, typer.Option(help="Gain: 5, 10 or 20 mm/mV.")] = 10.0,
    start: Annotated[float, typer.Option(min=0, help="The first second to draw.")] = 0.0,
    map_: Annotated[
        Literal["gradient", "occlusion"] | None,
        typer.Option("--map", help="Draw beneath the traces what each member's class rests on."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help=f"For --map: a bundle's folder, or one that ships. Default: {DEFAULT_MODEL}."),
    ] = None,
    member: MemberName = None,
    lead: Lead = None,
    rate: Rate = None,
    leads: Leads = None,
    units: Units = None,
    identify: Identify = False,
    measure: Measure = False,
    force: Force = False,
) -> None:
    """Draw a recording as ECG paper, true to scale: printed at 100 %, a second measures 25 mm and a millivolt 10 mm.

    With --map gradient, the gradient of each member's class; with --map occlusion, how much its probability falls when
    a short stretch is removed.
    """
    import ecgquorum as eq
    from ecgquorum.report.recording_figure import check_figure_path

    if map_ is None and (model or lead):
        raise DrawingError(f"--{'model' if model else 'lead'} needs --map gradient or --map occlusion")
    page = eq.Page(layout, speed, gain, start)
    target = check_figure_path(out if out is not None else Path(f"{Path(file.removeprefix('sample:')).stem}.png"))
    check_new(target, force)
    recording = eq.read(file, file_defaults(rate, leads, units), sandbox=True)
    with console_progress("drawing") as progress:
        ensemble = eq.load_ensemble(model or DEFAULT_MODEL, member=member) if map_ else None
        drawn = eq.plot_recording(
            recording,
            page,
            ensemble=ensemble,
            method=map_ or "gradient",
            lead=lead,
            identify=identify,
            measure=measure,
            progress=progress,
        )
    drawn.save(target)
    first, last = drawn.span_s
    print_line(f"{target}: {drawn.layout}, {drawn.scale}, from {first:g} to {last:.1f} of {recording.seconds:.1f} s")
    if drawn.answer:
        print_line(drawn.answer)
