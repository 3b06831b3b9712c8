"""Measuring: what holds of a prediction, with intervals, and the scorecard that keeps it."""

from ecgquorum.evaluation.evaluator import evaluate, name_ensembles
from ecgquorum.evaluation.runner import Told
from ecgquorum.evaluation.scorecard import Row, Scorecard
from ecgquorum.metrics.measures import Estimate, bootstrap

__all__ = ["Estimate", "Row", "Scorecard", "Told", "bootstrap", "evaluate", "name_ensembles"]
