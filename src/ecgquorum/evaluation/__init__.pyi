from .evaluator import evaluate as evaluate, name_ensembles as name_ensembles
from .runner import Told as Told
from .scorecard import Row as Row, Scorecard as Scorecard
