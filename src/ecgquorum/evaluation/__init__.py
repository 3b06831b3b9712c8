"""Measuring: what holds of a prediction, with intervals, and the scorecard that keeps it."""

from ecgquorum.evaluation.evaluating import evaluate
from ecgquorum.evaluation.measures import Estimate, bootstrapped
from ecgquorum.evaluation.scorecard import Example, Scorecard

__all__ = ["Estimate", "Example", "Scorecard", "bootstrapped", "evaluate"]
