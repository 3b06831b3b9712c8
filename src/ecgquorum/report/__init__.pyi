from .model_card import model_card as model_card, published_results as published_results
from .recording_figure import Beneath as Beneath, recording_figure as recording_figure, write_sheet as write_sheet
from .report_page import write_report as write_report
from .results_page import write_results as write_results
