"""Layout of a sheet of ECG paper: which lead is drawn where. Millimetres, right and up from the grid's lower left."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ecgquorum.errors import DrawingError, FittingError
from ecgquorum.preprocessing.input_spec import select_leads
from ecgquorum.recordings.leads import STANDARD_LEADS
from ecgquorum.recordings.recording import Recording

SMALL_MM, LARGE_MM = 1, 5
SPEEDS_MM_PER_S, GAINS_MM_PER_MV = (12.5, 25.0, 50.0), (5.0, 10.0, 20.0)
PULSE_MV, PULSE_S = 1.0, 0.2
"""The calibration pulse."""


@dataclass(frozen=True)
class Scale:
    """How large time and voltage are drawn."""

    mm_per_s: float = 25.0
    mm_per_mv: float = 10.0

    def __str__(self) -> str:
        return f"{self.mm_per_s:g} mm/s, {self.mm_per_mv:g} mm/mV"


STANDARD = Scale()

_LIMBS, _CHEST = STANDARD_LEADS[:6], STANDARD_LEADS[6:]
_STANDARD_ROWS = {
    "3x4+1": (*zip(_LIMBS[:3], _LIMBS[3:], _CHEST[:3], _CHEST[3:], strict=True), ("II",)),
    "6x2": tuple(zip(_LIMBS, _CHEST, strict=True)),
    "12x1": tuple((lead,) for lead in STANDARD_LEADS),
}
ROWS = "rows"
LAYOUTS = (*_STANDARD_ROWS, ROWS)
"""Columns of consecutive time; `rows`: all leads below each other, then what follows in time, as far as a page goes."""

SHEET_MM, GRID_MM, LEAD_IN_MM, ROW_MM = 297.0, 270, 15, 250
"""Widths: of the sheet, of the grid on it, of the grid before a trace, where the pulse is, and of the longest trace."""
FOOTER_MM = 13.0
MAP_MM = 2
"""How high the map of one member is."""

_HEADER_MM, _PREDICTION_MM = 14.0, 10.0  # above the grid: the recording; the prediction
_PAGES_MM = (210.0, 420.0)  # A4 landscape, A3 portrait: both are 297 mm wide
_CLOSEST_MM, _WIDEST_MM = 14, 35  # from row to row, at 10 mm/mV
_EDGE_MM = LARGE_MM  # of grid above the first row and below the last, into which their peaks may reach
_BELOW = 0.42  # the baseline's place in a row: complexes mostly point up


@dataclass(frozen=True)
class Strip:
    """A stretch of a lead, and where its trace begins."""

    lead: str
    start_s: float
    seconds: float
    x_mm: float


@dataclass(frozen=True)
class SheetRow:
    """Strips beside each other.

    baseline_mm: where 0 mV is
    top_mm:      where the row begins
    maps_mm:     where maps beneath it begin, going down; None where it has none
    """

    strips: tuple[Strip, ...]
    baseline_mm: int
    top_mm: int
    maps_mm: int | None


@dataclass(frozen=True)
class Sheet:
    """Rows on a grid, GRID_MM wide.

    header_mm: how much is above the grid
    shown_s:   from when to when
    """

    layout: str
    scale: Scale
    rows: tuple[SheetRow, ...]
    header_mm: float
    grid_height_mm: int
    shown_s: tuple[float, float]

    @property
    def height_mm(self) -> float:
        """Of the whole sheet."""
        return self.header_mm + self.grid_height_mm + FOOTER_MM


def arrange_leads(recording: Recording, layout: str | None = None) -> tuple[Recording, str]:
    """The recording with the leads that the layout wants, limb leads derived, and the layout.

    layout: None: 3x4+1 where the standard leads can be had, else rows
    """
    if layout is not None and layout not in LAYOUTS:
        raise DrawingError(f"there is no layout {layout!r}; choose one of {', '.join(LAYOUTS)}")
    if layout == ROWS:
        return recording, ROWS
    try:
        return select_leads(recording, STANDARD_LEADS), layout or next(iter(_STANDARD_ROWS))
    except FittingError as error:
        if layout is None:
            return recording, ROWS
        raise DrawingError(f"{error}; draw the leads there are with --layout {ROWS}") from error


def lay_out(
    recording: Recording,
    layout: str,
    scale: Scale = STANDARD,
    *,
    start_s: float = 0.0,
    mapped: Collection[str] = (),
    n_maps: int = 0,
) -> Sheet:
    """Lay an arranged recording out on a sheet of 297 mm width: A4 landscape or, where that is too small, A3 portrait.

    start_s: where to begin, in seconds
    mapped:  leads with `n_maps` attribution maps beneath them
    """
    where = recording.source or recording.id
    left_s = recording.seconds - start_s
    if start_s < 0 or left_s <= 0:
        raise DrawingError(f"{where}: cannot start at {start_s:g} s; the recording lasts {recording.seconds:g} s")
    row_s = ROW_MM / scale.mm_per_s
    maps_mm = n_maps * MAP_MM + 1 if n_maps else 0
    header_mm = _HEADER_MM + (_PREDICTION_MM if n_maps else 0)

    def map_height(row: Sequence[str]) -> int:
        return maps_mm if set(row) & set(mapped) else 0

    systems = 1
    kinds: Sequence[Sequence[str]] = _STANDARD_ROWS.get(layout) or [(lead,) for lead in recording.leads]
    if layout == ROWS:
        closest = len(kinds) * _min_row_mm(scale) + sum(map(map_height, kinds))
        systems = min(math.ceil(left_s / row_s - 1e-9), _available_mm(_PAGES_MM[-1], header_mm) // closest)
    beneath = [map_height(row) for row in kinds] * systems
    trace_mm = _choose_row_mm(len(beneath), sum(beneath), header_mm, scale)
    if trace_mm is None:
        raise DrawingError(f"{where}: {len(kinds)} leads do not fit on a page at {scale}; draw it at a smaller --gain")
    height = LARGE_MM * math.ceil((len(beneath) * trace_mm + sum(beneath) + 2 * _EDGE_MM) / LARGE_MM)
    rows, top = [], height - _EDGE_MM
    for number, under in enumerate(beneath):
        system, kind = divmod(number, len(kinds))
        begins = start_s + system * row_s
        strips = _make_strips(kinds[kind], begins, min(row_s, recording.seconds - begins), scale)
        bottom = top - trace_mm
        rows.append(SheetRow(strips, bottom + round(_BELOW * trace_mm), top, bottom if under else None))
        top = bottom - under
    shown_s = (start_s, min(recording.seconds, start_s + systems * row_s))
    return Sheet(layout, scale, tuple(rows), header_mm, height, shown_s)


def _make_strips(leads: Sequence[str], begins: float, seconds: float, scale: Scale) -> tuple[Strip, ...]:
    """Divide the time between the leads."""
    share = seconds / len(leads)
    return tuple(
        Strip(lead, begins + i * share, share, LEAD_IN_MM + i * share * scale.mm_per_s) for i, lead in enumerate(leads)
    )


def _min_row_mm(scale: Scale) -> int:
    return math.ceil(_CLOSEST_MM * scale.mm_per_mv / STANDARD.mm_per_mv)


def _available_mm(page_mm: float, header_mm: float) -> int:
    """How high all rows may be: whole large squares, less the edges."""
    return int((page_mm - header_mm - FOOTER_MM) // LARGE_MM) * LARGE_MM - 2 * _EDGE_MM


def _choose_row_mm(n_rows: int, maps_mm: int, header_mm: float, scale: Scale) -> int | None:
    """How high a row is without its maps, on the smallest page where rows are not too close; None: on none."""
    widest = int(_WIDEST_MM * max(1.0, scale.mm_per_mv / STANDARD.mm_per_mv))
    for page in _PAGES_MM if n_rows else ():
        height = min(widest, (_available_mm(page, header_mm) - maps_mm) // n_rows)
        if height >= _min_row_mm(scale):
            return height
    return None
