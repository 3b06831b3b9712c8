"""A recording on ECG paper at its true size, and beneath its traces what decided."""

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
from ecgquorum.errors import DrawingError
from ecgquorum.recordings import Recording
from ecgquorum.report.ecg_paper import FOOTER_MM, GRID_MM, LEAD_IN_MM, MAP_MM, SHEET_MM, Row, Sheet, Strip
from ecgquorum.report.figure_style import QUIET, WRONG, rendered
from ecgquorum.report.paper_drawing import INK, MM, draw_grid, draw_pulse, draw_trace

DPI = 254
"""Of a PNG: ten pixels a millimetre."""
KINDS = (".png", ".svg", ".pdf")

_FAR_MV = 1e3  # off any sheet; coordinates much larger would overflow
_CELLS_PER_MM = 4
_LINE = 165  # characters across the sheet, in its small print
_SHADES = LinearSegmentedColormap.from_list("looks", ["#ffffff", "#9ecae1", "#2171b5", "#08306b"])
_HALO = [withStroke(linewidth=2.5, foreground="white")]


@dataclass(frozen=True, eq=False)
class Beneath:
    """What decided, to be drawn beneath the traces.

    values:  (member, lead, time) at the recording's samples, 0 to 1
    leads:   those of `values`
    answer:  what the ensemble says · members: what each member says · made: what the values are
    """

    values: NDArray[np.float64]
    leads: tuple[str, ...]
    answer: str
    members: tuple[str, ...]
    made: str


def recording_figure(
    recording: Recording,
    sheet: Sheet,
    *,
    notes: tuple[str, ...] = (),
    doubts: tuple[str, ...] = (),
    beneath: Beneath | None = None,
) -> Figure:
    """Draw an arranged recording on its sheet; printed at its size, it measures what its scale says.

    notes:    what was done to the leads, for the foot · doubts: what the input guard has against the recording
    """
    figure = Figure(figsize=(SHEET_MM * MM, sheet.height_mm * MM))
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set_axis_off()
    margin = (SHEET_MM - GRID_MM) / 2
    ax.set(xlim=(-margin, SHEET_MM - margin), ylim=(-FOOTER_MM, sheet.grid_height_mm + sheet.header_mm))
    draw_grid(ax, (0, GRID_MM), (0, sheet.grid_height_mm))
    middles = {name: _middle(row) for name, row in zip(recording.leads, recording.signal, strict=True)}
    for row in sheet.rows:
        draw_pulse(ax, LEAD_IN_MM - 1, row.baseline_mm, sheet.scale)
        if beneath is not None and row.maps_mm is not None:
            _draw_maps(ax, recording, sheet, row, beneath)
        for strip in row.strips:
            samples = _samples(recording, strip)
            millivolts = recording.signal[recording.leads.index(strip.lead), samples].astype(np.float64)
            time_s = np.arange(samples.start, samples.stop) / recording.rate_hz - strip.start_s
            origin = (strip.x_mm, row.baseline_mm)
            known = np.where(
                np.isfinite(millivolts), np.clip(millivolts - middles[strip.lead], -_FAR_MV, _FAR_MV), np.nan
            )
            draw_trace(ax, time_s, known, sheet.scale, origin)
            _name(ax, strip, row)
    grid = Rectangle((0, 0), GRID_MM, sheet.grid_height_mm, transform=ax.transData)
    for line in ax.lines:
        line.set_clip_path(grid)
    _head(ax, recording, sheet, doubts, beneath)
    _foot(ax, sheet, notes, beneath)
    return figure


def write_sheet(figure: Figure, path: Path) -> None:
    """Write the figure as PNG (with its dpi), SVG or PDF, by the path's ending."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph", UserWarning)  # a name in a script that the font lacks
        write_atomic(path, rendered(figure, figure_path(path).suffix[1:].lower(), DPI))


def figure_path(path: Path) -> Path:
    """The path, if it is one for a figure."""
    if path.suffix.lower() not in KINDS:
        raise DrawingError(
            f"{path}: expected a name that ends in {', '.join(KINDS)}, found {path.suffix or 'no ending'}"
        )
    if path.is_dir():
        raise DrawingError(f"{path}: expected the name of a file, found a folder")
    return path


def _middle(row: NDArray[np.float32]) -> float:
    known = row[np.isfinite(row)].astype(np.float64)
    return float(np.median(known)) if len(known) else 0.0


def _samples(recording: Recording, strip: Strip) -> slice:
    """Those within the strip."""
    first = int(np.ceil(strip.start_s * recording.rate_hz - 1e-6))
    last = int(np.floor((strip.start_s + strip.seconds) * recording.rate_hz + 1e-6))
    return slice(first, min(last + 1, recording.n_samples))


def _name(ax: Axes, strip: Strip, row: Row) -> None:
    """The lead's name; where it begins in time, if that is not the beginning; a mark between neighbours."""
    text = f"{strip.lead}   {strip.start_s:g} s" if strip is row.strips[0] and strip.start_s > 0 else strip.lead
    _write(ax, strip.x_mm + 1, row.top_mm - 1.5, text, size=9, weight="bold", va="top", path_effects=_HALO, zorder=2)
    if strip is not row.strips[0]:
        for low, high in ((-5, -2), (2, 5)):
            y = [row.baseline_mm + low, row.baseline_mm + high]
            ax.plot([strip.x_mm] * 2, y, color=INK, linewidth=0.8, zorder=3)


def _draw_maps(ax: Axes, recording: Recording, sheet: Sheet, row: Row, beneath: Beneath) -> None:
    """One band a member, beneath each strip of a lead that the model was given."""
    top = row.maps_mm or 0
    for member in range(len(beneath.values)):
        _write(ax, LEAD_IN_MM - 0.7, top - (member + 0.5) * MAP_MM, str(member), size=5, ha="right", va="center")
    for strip in row.strips:
        if strip.lead not in beneath.leads:
            continue
        width = strip.seconds * sheet.scale.mm_per_s
        cells = max(1, round(width * _CELLS_PER_MM))
        time_s = strip.start_s + (np.arange(cells) + 0.5) / cells * strip.seconds
        place = np.minimum((time_s * recording.rate_hz).round().astype(int), recording.n_samples - 1)
        shades = beneath.values[:, beneath.leads.index(strip.lead)][:, place]
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
                edgecolor=QUIET,
                linewidth=0.3,
                zorder=1.5,
            )
        )


def _head(ax: Axes, recording: Recording, sheet: Sheet, doubts: tuple[str, ...], beneath: Beneath | None) -> None:
    top, high = sheet.grid_height_mm, sheet.grid_height_mm + sheet.header_mm
    _write(ax, 0, high - 7, textwrap.shorten(_plain(recording.id), 80, placeholder=" ..."), size=13, weight="bold")
    _write(ax, GRID_MM, high - 7, str(sheet.scale), size=11, weight="bold", ha="right")
    first, last = sheet.shown_s
    leads = f"{len(recording.leads)} leads" if len(recording.leads) > 1 else f"lead {recording.leads[0]}"
    facts = f"{leads}, {recording.seconds:.1f} s at {recording.rate_hz:g} Hz; drawn from {first:g} to {last:.4g} s"
    _write(ax, 0, high - 12, facts, size=8, color=QUIET)
    if doubts:
        more = f" (and {len(doubts) - 1} more)" if len(doubts) > 1 else ""
        _write(ax, GRID_MM, high - 12, f"Doubtful: {doubts[0]}{more}", size=8, color=WRONG, ha="right")
    if beneath is not None:
        _write(ax, 0, top + 7, beneath.answer, size=9, weight="bold")
        said = textwrap.shorten(" · ".join(beneath.members), _LINE, placeholder=" ...")
        _write(ax, 0, top + 2.5, said, size=7.5)


def _foot(ax: Axes, sheet: Sheet, notes: tuple[str, ...], beneath: Beneath | None) -> None:
    text = "; ".join((str(sheet.scale), "millivolts", "no filter", "each lead about its median", *notes))
    _write(ax, 0, -4.5, textwrap.shorten(text, _LINE, placeholder=" ..."), size=7, color=QUIET)
    _write(ax, GRID_MM, -4.5, "Research use only. Not a medical device.", size=7, color=QUIET, ha="right")
    if beneath is None:
        return
    low, high = -9.5, -7.5
    ax.imshow(np.linspace(0, 1, 64)[None], cmap=_SHADES, extent=(3, 23, low, high), aspect="auto", zorder=2)
    for x, text, side in ((2, "0", "right"), (24, "1", "left")):
        _write(ax, x, (low + high) / 2, text, size=7, color=QUIET, ha=side, va="center")
    made = f"beneath, a band a member: {beneath.made}; 1 at the member's largest"
    _write(ax, 28, (low + high) / 2, made, size=7, color=QUIET, va="center")


def _write(ax: Axes, x: float, y: float, text: str, **how: object) -> None:
    """Text as it is: a name may hold signs that mean something to mathematicians."""
    ax.text(x, y, _plain(text), parse_math=False, **how)  # type: ignore[arg-type]


def _plain(text: str) -> str:
    return "".join(sign if sign.isprintable() else "?" for sign in text)
