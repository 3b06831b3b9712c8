"""Reports: figures, pages and model cards, drawn from scorecards and cards, never from a model; recordings on paper."""

from ecgquorum.report.model_card import model_card, published_results
from ecgquorum.report.recording_figure import Beneath, recording_figure, write_sheet
from ecgquorum.report.report_page import write_report
from ecgquorum.report.results_page import write_results

__all__ = [
    "Beneath",
    "model_card",
    "published_results",
    "recording_figure",
    "write_report",
    "write_results",
    "write_sheet",
]
