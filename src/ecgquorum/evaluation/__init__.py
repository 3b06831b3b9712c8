"""Measuring: what holds of a prediction, with intervals, and the scorecard that keeps it."""

from ecgquorum.evaluation.bench import Told
from ecgquorum.evaluation.evaluating import evaluate, named_ensembles
from ecgquorum.evaluation.measures import Estimate, bootstrapped
from ecgquorum.evaluation.scorecard import Row, Scorecard

__all__ = ["Estimate", "Row", "Scorecard", "Told", "bootstrapped", "evaluate", "named_ensembles"]
