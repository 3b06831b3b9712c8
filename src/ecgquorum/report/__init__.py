"""Reports: figures and a page, drawn from scorecards, never from a model."""

from ecgquorum.report.page import write_report

__all__ = ["write_report"]
