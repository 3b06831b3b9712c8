"""Evaluation: `evaluate` classifies natural and attacked recordings; the `Scorecard` holds all metrics."""

from ecgquorum.evaluation.attack_conditions import AttackCondition
from ecgquorum.evaluation.ensemble_names import name_ensembles
from ecgquorum.evaluation.evaluator import evaluate
from ecgquorum.evaluation.merge import merge_scorecards
from ecgquorum.evaluation.metric_rows import MetricRow
from ecgquorum.evaluation.options import EvaluationOptions
from ecgquorum.evaluation.recipe_evaluation import conditions_from_recipe, evaluate_recipe
from ecgquorum.evaluation.score_table import ScoreTable
from ecgquorum.evaluation.scorecard import Scorecard

__all__ = [
    "AttackCondition",
    "EvaluationOptions",
    "MetricRow",
    "ScoreTable",
    "Scorecard",
    "conditions_from_recipe",
    "evaluate",
    "evaluate_recipe",
    "merge_scorecards",
    "name_ensembles",
]
