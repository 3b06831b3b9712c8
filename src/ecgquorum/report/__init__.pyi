from .model_cards import model_card as model_card, select_results as select_results
from .recording_figure import (
    MapOverlay as MapOverlay,
    recording_figure as recording_figure,
    write_sheet as write_sheet,
)
from .report_page import write_report as write_report
from .results_page import write_results as write_results
