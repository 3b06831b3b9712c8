"""Draw a recording as ECG paper, with what its classification rests on beneath the traces."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ecgquorum.errors import DrawingError
from ecgquorum.preprocessing.input_spec import select_leads
from ecgquorum.preprocessing.measurements import measure_recording
from ecgquorum.preprocessing.quality import assess_quality
from ecgquorum.progress import NO_PROGRESS, Progress
from ecgquorum.recordings import Recording
from ecgquorum.report.ecg_paper import GAINS_MM_PER_MV, SPEEDS_MM_PER_S, Scale, arrange_leads, lay_out
from ecgquorum.report.recording_figure import MapOverlay, check_figure_path, recording_figure, write_sheet

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ecgquorum.ensemble import Attribution, Ensemble


@dataclass(frozen=True)
class Page:
    """How a recording is laid out.

    layout: 3x4+1, 6x2, 12x1 or rows; None: 3x4+1 for twelve leads, else rows
    speed_mm_per_s: 12.5, 25 or 50 · gain_mm_per_mv: 5, 10 or 20 · start_s: the first second drawn
    """

    layout: str | None = None
    speed_mm_per_s: float = 25.0
    gain_mm_per_mv: float = 10.0
    start_s: float = 0.0

    def __post_init__(self) -> None:
        for name, value, known, unit in (
            ("speed", self.speed_mm_per_s, SPEEDS_MM_PER_S, "mm/s"),
            ("gain", self.gain_mm_per_mv, GAINS_MM_PER_MV, "mm/mV"),
        ):
            if value not in known:
                raise DrawingError(f"{name}: expected {', '.join(f'{one:g}' for one in known)} {unit}, found {value:g}")


@dataclass(frozen=True, eq=False)
class RecordingPlot:
    """A drawn recording.

    span_s: first and last second drawn · answer: what the ensemble says, empty without one
    """

    figure: "Figure"
    layout: str
    scale: Scale
    span_s: tuple[float, float]
    answer: str = ""

    def save(self, path: str | Path) -> Path:
        """Write the figure as PNG, SVG or PDF, by the ending of the path; printed at 100 % it is true to scale."""
        path = check_figure_path(Path(path))
        write_sheet(self.figure, path)
        return path


def plot_recording(
    recording: Recording,
    page: Page | None = None,
    *,
    ensemble: "Ensemble | None" = None,
    method: Literal["gradient", "occlusion"] = "gradient",
    lead: str | None = None,
    identify: bool = False,
    measure: bool = False,
    progress: Progress = NO_PROGRESS,
) -> RecordingPlot:
    """Draw a recording as ECG paper at its true size.

    ensemble: also draw, beneath the traces, what each member's class rests on
    method:   how that is computed, see `attribute` · lead: the lead to classify, for an ensemble of one lead
    identify: also write who was recorded, when, and with which device, where the file states it
    measure:  also write PR, QRS and QT beside the heart rate
    """
    page = page or Page()
    scale = Scale(page.speed_mm_per_s, page.gain_mm_per_mv)
    drawn, layout = arrange_leads(recording, page.layout)
    if ensemble is None:
        sheet, overlay = lay_out(drawn, layout, scale, start_s=page.start_s), None
    else:
        from ecgquorum.ensemble import attribute  # needs PyTorch

        mapped = select_leads(recording, ensemble.input.leads, lead).leads
        if not set(mapped) & set(drawn.leads):
            raise DrawingError(
                f"{recording.source}: the layout {layout} does not show {', '.join(mapped)}; use the layout rows"
            )
        sheet = lay_out(drawn, layout, scale, start_s=page.start_s, mapped=mapped, n_maps=len(ensemble.members))
        found = attribute(ensemble, recording, method, lead, span_s=sheet.shown_s, progress=progress)
        overlay = _describe(ensemble, found)
    derived = [name for name in drawn.leads if name not in recording.leads]
    notes = (*((f"{', '.join(derived)} derived",) if derived else ()), *recording.notes)
    measured = measure_recording(recording, recording if measure else None).line()
    facts = (*(recording.acquisition.lines() if identify else ()), *((measured,) if measured else ()))
    doubts = assess_quality(recording).reasons
    figure = recording_figure(drawn, sheet, notes=notes, facts=facts, doubts=doubts, overlay=overlay)
    return RecordingPlot(figure, layout, scale, sheet.shown_s, overlay.prediction if overlay else "")


def _describe(ensemble: "Ensemble", found: "Attribution") -> MapOverlay:
    """The maps with a sentence for the ensemble's prediction and for each member's."""
    prediction, names = found.prediction, ensemble.card.get("class_names", {})
    label = prediction.labels[0]
    name = f" ({names[label]})" if names.get(label) else ""
    answer = (
        f"{ensemble.card.get('name', 'the ensemble')} predicts {label}{name}: "
        f"probability {prediction.probs[0].max():.2f}, risk {prediction.risk[0]:.2f}"
    )
    fell = [f", falls by {fall:.2f} at most" if found.method == "occlusion" else "" for fall in found.strongest]
    members = tuple(
        f"member {k}: {own} {probs.max():.2f} (raw){fell[k]}"
        for k, (own, probs) in enumerate(zip(found.classes, prediction.member_probs[0], strict=True))
    )
    return MapOverlay(found.values, found.leads, answer, members, found.description)
