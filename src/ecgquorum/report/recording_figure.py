"""A recording on ECG paper at its true size, with attribution maps beneath its traces."""

import textwrap
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.patheffects import withStroke
from numpy.typing import NDArray

from ecgquorum._internal.atomic import write_atomic
from ecgquorum._internal.figure_style import ERROR_COLOUR, GREY, render_figure
from ecgquorum.errors import DrawingError
from ecgquorum.recordings import Recording
from ecgquorum.report.ecg_paper import FOOTER_MM, GRID_MM, LEAD_IN_MM, MAP_MM, SHEET_MM, Sheet, SheetRow, Strip
from ecgquorum.report.paper_drawing import INK, MM, draw_grid, draw_pulse, draw_trace

DPI = 254
"""Of a PNG: ten pixels a millimetre."""
KINDS = (".png", ".svg", ".pdf")

_FAR_MV = 1e3  # off any sheet; coordinates much larger would overflow
_CELLS_PER_MM = 4
_LINE = 165  # characters across the sheet, in its small print
_SHADES = LinearSegmentedColormap.from_list("attribution", ["#ffffff", "#9ecae1", "#2171b5", "#08306b"])
_HALO = [withStroke(linewidth=2.5, foreground="white")]


@dataclass(frozen=True, eq=False)
class MapOverlay:
    """Attribution maps to draw beneath the traces.

    values:     (member, lead, time) at the recording's samples, 0 to 1
    leads:      of `values`
    prediction: of the ensemble, as text · members: predictions of the members, as text
    method:     how the values were computed
    """

    values: NDArray[np.float64]
    leads: tuple[str, ...]
    prediction: str
    members: tuple[str, ...]
    method: str


def recording_figure(
    recording: Recording,
    sheet: Sheet,
    *,
    notes: tuple[str, ...] = (),
    facts: tuple[str, ...] = (),
    doubts: tuple[str, ...] = (),
    overlay: MapOverlay | None = None,
) -> Figure:
    """Draw an arranged recording on its sheet; printed at its size, it measures what its scale says.

    notes: on the leads, for the footer · facts: about patient and acquisition, for the header
    doubts: findings of the quality guard · overlay: attribution maps
    """
    figure = Figure(figsize=(SHEET_MM * MM, sheet.height_mm * MM))
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set_axis_off()
    margin = (SHEET_MM - GRID_MM) / 2
    ax.set(xlim=(-margin, SHEET_MM - margin), ylim=(-FOOTER_MM, sheet.grid_height_mm + sheet.header_mm))
    draw_grid(ax, (0, GRID_MM), (0, sheet.grid_height_mm))
    medians = {name: _median(row) for name, row in zip(recording.leads, recording.signal, strict=True)}
    for row in sheet.rows:
        draw_pulse(ax, LEAD_IN_MM - 1, row.baseline_mm, sheet.scale)
        if overlay is not None and row.maps_mm is not None:
            _draw_maps(ax, recording, sheet, row, overlay)
        for strip in row.strips:
            samples = _find_samples(recording, strip)
            millivolts = recording.signal[recording.leads.index(strip.lead), samples].astype(np.float64)
            time_s = np.arange(samples.start, samples.stop) / recording.rate_hz - strip.start_s
            origin = (strip.x_mm, row.baseline_mm)
            known = np.where(
                np.isfinite(millivolts), np.clip(millivolts - medians[strip.lead], -_FAR_MV, _FAR_MV), np.nan
            )
            draw_trace(ax, time_s, known, sheet.scale, origin)
            _draw_name(ax, strip, row)
    grid = Rectangle((0, 0), GRID_MM, sheet.grid_height_mm, transform=ax.transData)
    for line in ax.lines:
        line.set_clip_path(grid)
    _draw_header(ax, recording, sheet, facts, doubts, overlay)
    _draw_footer(ax, sheet, notes, overlay)
    return figure


def write_sheet(figure: Figure, path: Path, dpi: float = DPI) -> None:
    """Write the figure as PNG (with its dpi), SVG or PDF, by the path's ending."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph", UserWarning)  # a name in a script that the font lacks
        write_atomic(path, render_figure(figure, check_figure_path(path).suffix[1:].lower(), dpi))


def check_figure_path(path: Path) -> Path:
    """Return the path, or raise an error where it cannot be a figure's."""
    if path.suffix.lower() not in KINDS:
        raise DrawingError(
            f"{path}: the name of a figure must end in {', '.join(KINDS)}, not in {path.suffix or 'nothing'}"
        )
    if path.is_dir():
        raise DrawingError(f"{path} is a folder; give the name of a file")
    return path


def _median(row: NDArray[np.float32]) -> float:
    known = row[np.isfinite(row)].astype(np.float64)
    return float(np.median(known)) if len(known) else 0.0


def _find_samples(recording: Recording, strip: Strip) -> slice:
    """Those within the strip."""
    first = int(np.ceil(strip.start_s * recording.rate_hz - 1e-6))
    last = int(np.floor((strip.start_s + strip.seconds) * recording.rate_hz + 1e-6))
    return slice(first, min(last + 1, recording.n_samples))


def _draw_name(ax: Axes, strip: Strip, row: SheetRow) -> None:
    """The lead's name; where it begins in time, if that is not the beginning; a mark between neighbours."""
    text = f"{strip.lead}   {strip.start_s:g} s" if strip is row.strips[0] and strip.start_s > 0 else strip.lead
    _write(ax, strip.x_mm + 1, row.top_mm - 1.5, text, size=9, weight="bold", va="top", path_effects=_HALO, zorder=2)
    if strip is not row.strips[0]:
        for low, high in ((-5, -2), (2, 5)):
            y = [row.baseline_mm + low, row.baseline_mm + high]
            ax.plot([strip.x_mm] * 2, y, color=INK, linewidth=0.8, zorder=3)


def _draw_maps(ax: Axes, recording: Recording, sheet: Sheet, row: SheetRow, overlay: MapOverlay) -> None:
    """Draw one band a member beneath each strip of a lead of the model's input."""
    top = row.maps_mm or 0
    for member in range(len(overlay.values)):
        _write(ax, LEAD_IN_MM - 0.7, top - (member + 0.5) * MAP_MM, str(member), size=5, ha="right", va="center")
    for strip in row.strips:
        if strip.lead not in overlay.leads:
            continue
        width = strip.seconds * sheet.scale.mm_per_s
        cells = max(1, round(width * _CELLS_PER_MM))
        time_s = strip.start_s + (np.arange(cells) + 0.5) / cells * strip.seconds
        index = np.minimum((time_s * recording.rate_hz).round().astype(int), recording.n_samples - 1)
        shades = overlay.values[:, overlay.leads.index(strip.lead)][:, index]
        for member, shade in enumerate(shades):
            low = top - (member + 1) * MAP_MM
            extent = (strip.x_mm, strip.x_mm + width, low + 0.1, low + MAP_MM - 0.1)
            ax.imshow(
                shade[None], cmap=_SHADES, vmin=0, vmax=1, extent=extent, aspect="auto", zorder=2, interpolation="none"
            )
        ax.add_patch(
            Rectangle(
                (strip.x_mm, top - len(shades) * MAP_MM),
                width,
                len(shades) * MAP_MM,
                facecolor="white",
                edgecolor=GREY,
                linewidth=0.3,
                zorder=1.5,
            )
        )


def _draw_header(
    ax: Axes,
    recording: Recording,
    sheet: Sheet,
    facts: tuple[str, ...],
    doubts: tuple[str, ...],
    overlay: MapOverlay | None,
) -> None:
    top, high = sheet.grid_height_mm, sheet.grid_height_mm + sheet.header_mm
    _write(ax, 0, high - 7, textwrap.shorten(_printable(recording.id), 80, placeholder=" ..."), size=13, weight="bold")
    _write(ax, GRID_MM, high - 7, str(sheet.scale), size=11, weight="bold", ha="right")
    first, last = sheet.shown_s
    leads = f"{len(recording.leads)} leads" if len(recording.leads) > 1 else f"lead {recording.leads[0]}"
    drawn = f"{leads}, {recording.seconds:.1f} s at {recording.rate_hz:g} Hz; drawn from {first:g} to {last:.7g} s"
    _write(ax, 0, high - 12, drawn, size=8, color=GREY)
    if facts:
        shown = textwrap.shorten("; ".join(facts), 120, placeholder=" ...")
        _write(ax, GRID_MM / 2, high - 7, shown, size=8, ha="center")
    if doubts:
        more = f" (and {len(doubts) - 1} more)" if len(doubts) > 1 else ""
        _write(ax, GRID_MM, high - 12, f"Doubtful: {doubts[0]}{more}", size=8, color=ERROR_COLOUR, ha="right")
    if overlay is not None:
        _write(ax, 0, top + 7, overlay.prediction, size=9, weight="bold")
        members = textwrap.shorten(" · ".join(overlay.members), _LINE, placeholder=" ...")
        _write(ax, 0, top + 2.5, members, size=7.5)


def _draw_footer(ax: Axes, sheet: Sheet, notes: tuple[str, ...], overlay: MapOverlay | None) -> None:
    text = "; ".join((str(sheet.scale), "millivolts", "no filter", "each lead about its median", *notes))
    _write(ax, 0, -4.5, textwrap.shorten(text, _LINE, placeholder=" ..."), size=7, color=GREY)
    _write(ax, GRID_MM, -4.5, "Research use only. Not a medical device.", size=7, color=GREY, ha="right")
    if overlay is None:
        return
    low, high = -9.5, -7.5
    ax.imshow(np.linspace(0, 1, 64)[None], cmap=_SHADES, extent=(3, 23, low, high), aspect="auto", zorder=2)
    for x, text, side in ((2, "0", "right"), (24, "1", "left")):
        _write(ax, x, (low + high) / 2, text, size=7, color=GREY, ha=side, va="center")
    caption = f"beneath, one band a member: {overlay.method}; 1 at the member's largest"
    _write(ax, 28, (low + high) / 2, caption, size=7, color=GREY, va="center")


def _write(ax: Axes, x: float, y: float, text: str, **how: object) -> None:
    """Write text without parsing it: a name may contain signs of mathematical markup."""
    ax.text(x, y, _printable(text), parse_math=False, **how)  # type: ignore[arg-type]


def _printable(text: str) -> str:
    return "".join(sign if sign.isprintable() else "?" for sign in text)
