"""Reports: tables, figures, pages and model cards from scorecards, never from a model; recordings on ECG paper."""

from ecgquorum.report.model_cards import model_card, select_results
from ecgquorum.report.recording_figure import MapOverlay, recording_figure, write_sheet
from ecgquorum.report.report_page import write_report
from ecgquorum.report.results_page import write_results

__all__ = [
    "MapOverlay",
    "model_card",
    "recording_figure",
    "select_results",
    "write_report",
    "write_results",
    "write_sheet",
]
