"""The command that draws recordings: plot."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ecgquorum.cli.application import DEFAULT_MODEL, Leads, Rate, Units, app, hints_from
from ecgquorum.cli.console import counting
from ecgquorum.cli.console import out as stdout
from ecgquorum.errors import DrawingError

if TYPE_CHECKING:
    from ecgquorum.ensemble import Attribution, Ensemble
    from ecgquorum.report import Beneath
    from ecgquorum.report.ecg_paper import Scale


class Map(StrEnum):
    """What decided, and how to find it."""

    gradient = "gradient"
    occlusion = "occlusion"


@app.command()
def plot(
    file: Annotated[str, typer.Argument(help="A recording, as for `predict`; ARCHIVE.zip/NAME is one in an archive.")],
    out: Annotated[
        Path | None,
        typer.Option(help="The file to write: .png, .svg or .pdf. Default: the recording's name with .png, here."),
    ] = None,
    layout: Annotated[
        str | None,
        typer.Option(help="3x4+1, 6x2, 12x1, or rows: all leads below each other. Default: 3x4+1 if it has 12 leads."),
    ] = None,
    speed: Annotated[float, typer.Option(help="12.5, 25 or 50 mm/s.")] = 25.0,
    gain: Annotated[float, typer.Option(help="5, 10 or 20 mm/mV.")] = 10.0,
    start: Annotated[float, typer.Option(min=0, help="From which second on to draw.")] = 0.0,
    map_: Annotated[
        Map | None, typer.Option("--map", help="Draw beneath the traces what decided, member by member.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help=f"Whose map: a bundle's folder, or one that ships. Default: {DEFAULT_MODEL}.")
    ] = None,
    lead: Annotated[str | None, typer.Option(help="Which lead the map is of, for a model of one lead.")] = None,
    rate: Rate = None,
    leads: Leads = None,
    units: Units = None,
) -> None:
    """Draw a recording as ECG paper at its true size: printed at 100 %, a second measures 25 mm and a millivolt 10.

    With --map, what the members' classes rest on: the gradient, or what is lost when a stretch is taken away.
    """
    from ecgquorum import load_ensemble, read
    from ecgquorum.ensemble import attribute
    from ecgquorum.preprocessing.input_spec import select_leads
    from ecgquorum.preprocessing.quality import assess_quality
    from ecgquorum.report import recording_figure, write_sheet
    from ecgquorum.report.ecg_paper import arrange_leads, lay_out
    from ecgquorum.report.recording_figure import figure_path

    if map_ is None and (model or lead):
        raise DrawingError(f"--{'model' if model else 'lead'}: expected --map gradient or --map occlusion, found none")
    scale = _scale_from(speed, gain)
    target = figure_path(out if out is not None else Path(f"{Path(file).stem}.png"))
    if out is None and target.exists():
        raise DrawingError(f"{target}: expected no such file yet, found one; name the file to write with --out")
    recording = read(file, hints_from(rate, leads, units), sandbox=True)
    drawn, chosen = arrange_leads(recording, layout)
    if map_ is None:
        sheet, beneath = lay_out(drawn, chosen, scale, start_s=start), None
    else:
        ensemble = load_ensemble(model or DEFAULT_MODEL)
        mapped = select_leads(recording, ensemble.input.leads, lead).leads
        if not set(mapped) & set(drawn.leads):
            raise DrawingError(
                f"{file}: expected {', '.join(mapped)} in the layout {chosen}, found none; --layout rows"
            )
        n_maps = len(ensemble.members)
        sheet = lay_out(drawn, chosen, scale, start_s=start, mapped=mapped, n_maps=n_maps)
        with counting("stretches") as count:
            looks = attribute(ensemble, recording, map_.value, lead, span_s=sheet.shown_s, told=count)
        beneath = _beneath(ensemble, looks)
    derived = [name for name in drawn.leads if name not in recording.leads]
    notes = (f"{', '.join(derived)} derived",) if derived else ()
    figure = recording_figure(drawn, sheet, notes=notes, doubts=assess_quality(recording).reasons, beneath=beneath)
    write_sheet(figure, target)
    first, last = sheet.shown_s
    stdout.print(
        f"{target}: {chosen}, {scale}, from {first:g} to {last:.4g} of {recording.seconds:.4g} s", markup=False
    )
    if beneath:
        stdout.print(beneath.answer, markup=False)


def _scale_from(speed: float, gain: float) -> "Scale":
    from ecgquorum.report.ecg_paper import GAINS_MM_PER_MV, SPEEDS_MM_PER_S, Scale

    for option, value, known in (("--speed", speed, SPEEDS_MM_PER_S), ("--gain", gain, GAINS_MM_PER_MV)):
        if value not in known:
            raise DrawingError(f"{option}: expected {', '.join(f'{one:g}' for one in known)}, found {value:g}")
    return Scale(speed, gain)


def _beneath(ensemble: "Ensemble", looks: "Attribution") -> "Beneath":
    """What decided, in the words that a drawing needs."""
    from ecgquorum.report import Beneath

    said, names = looks.prediction, ensemble.card.get("class_names", {})
    label = said.labels[0]
    name = f" ({names[label]})" if names.get(label) else ""
    answer = (
        f"{ensemble.card.get('name', 'the ensemble')} says {label}{name}: probability {said.probs[0].max():.2f}, "
        f"uncertainty {said.uncertainty[0]:.2f}"
    )
    fell = [f", falls by {fall:.2f} at most" if looks.how == "occlusion" else "" for fall in looks.strongest]
    members = tuple(
        f"member {k}: {own} {probs.max():.2f}{fell[k]}"
        for k, (own, probs) in enumerate(zip(looks.classes, said.member_probs[0], strict=True))
    )
    return Beneath(looks.values, looks.leads, answer, members, looks.made)
