"""Reports: figures, pages and model cards, drawn from scorecards and cards, never from a model."""

from ecgquorum.report.model_card import model_card, published_results
from ecgquorum.report.page import write_report
from ecgquorum.report.results import write_results

__all__ = ["model_card", "published_results", "write_report", "write_results"]
