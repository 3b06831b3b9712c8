from .attack_conditions import AttackCondition as AttackCondition
from .ensemble_names import name_ensembles as name_ensembles
from .evaluator import evaluate as evaluate
from .merge import merge_scorecards as merge_scorecards
from .metric_rows import MetricRow as MetricRow
from .options import EvaluationOptions as EvaluationOptions
from .recipe_evaluation import conditions_from_recipe as conditions_from_recipe, evaluate_recipe as evaluate_recipe
from .score_table import ScoreTable as ScoreTable
from .scorecard import Scorecard as Scorecard
