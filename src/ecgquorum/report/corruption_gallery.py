"""Every corruption of a recording on ECG paper."""

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from ecgquorum._internal.figure_style import use_style
from ecgquorum._internal.seeds import numpy_generator
from ecgquorum.corruptions import Corruption, expand_severities, list_corruptions
from ecgquorum.errors import DrawingError
from ecgquorum.recordings import Recording
from ecgquorum.report.paper_drawing import MM, draw_paper, paper_size_mm

_SECONDS, _HEIGHT_MV = 3.0, (-1.0, 1.6)
_TITLE_MM, _GAP_MM = 5.0, 3.0


def draw_gallery(recording: Recording, severities: tuple[int, ...] = (1, 3, 5), seed: int = 0) -> Figure:
    """Draw one row for each corruption that applies to the recording, one column for each severity.

    Three seconds of the first lead are shown where it changes most; of corruptions that are about several leads, the
    one that changes most. A corruption that is there or not is shown beside the natural recording.
    """
    if recording.seconds < _SECONDS:
        raise DrawingError(f"{recording.id}: a gallery needs at least {_SECONDS:g} s, found {recording.seconds:.1f} s")
    names = list_corruptions(recording.leads)
    width_mm, height_mm = paper_size_mm(_SECONDS, _HEIGHT_MV)
    total_w = len(severities) * (width_mm + _GAP_MM) + _GAP_MM
    total_h = len(names) * (height_mm + _TITLE_MM) + _GAP_MM
    with use_style():
        figure = Figure(figsize=(total_w * MM, total_h * MM))
        for row, name in enumerate(names):
            made = expand_severities(name, severities)
            changed = [one(recording, generator=numpy_generator(seed, "corrupt", name)).signal for one in made]
            lead, start = _choose_stretch(recording, changed[len(changed) // 2], made[0])
            shown = {f"{name} {o.severity}: {o}": c for o, c in zip(made, changed, strict=True)}
            if len(made) < len(severities):
                shown = {"natural": recording.signal, name: changed[0]}
            for column, (title, signal) in enumerate(shown.items()):
                left = _GAP_MM + column * (width_mm + _GAP_MM)
                bottom = total_h - (row + 1) * (height_mm + _TITLE_MM)
                ax = figure.add_axes((left / total_w, bottom / total_h, width_mm / total_w, height_mm / total_h))
                stretch = signal[lead, start : start + round(_SECONDS * recording.rate_hz)]
                draw_paper(ax, stretch.tolist(), recording.rate_hz, _HEIGHT_MV)
                where = f", {recording.leads[lead]}" if lead else ""
                ax.set_title(title + where, loc="left", fontsize=7, pad=2)
    return figure


def _choose_stretch(recording: Recording, changed: NDArray[np.float32], corruption: Corruption) -> tuple[int, int]:
    """The lead and the first sample of the stretch to show: where the recording changes most.

    The first lead, unless the corruption is about several.
    """
    change = np.where(np.isfinite(changed), np.abs(changed - recording.signal), 1.0)
    lead = 0 if corruption.applies_to(recording.leads[:1]) else int(np.median(change, axis=1).argmax())
    sums = np.convolve(change[lead], np.ones(round(_SECONDS * recording.rate_hz)), mode="valid")
    return lead, int(sums.argmax())
