from .load import (
    load_recipe as load_recipe,
    load_study as load_study,
    parse_recipe as parse_recipe,
    parse_study as parse_study,
)
from .names import recipe_names as recipe_names
from .paper_setting import PAPER_PARTS as PAPER_PARTS, list_deviations as list_deviations
from .study import (
    AttackRecipe as AttackRecipe,
    CohortRecipe as CohortRecipe,
    EvaluationRecipe as EvaluationRecipe,
    Study as Study,
)
from .training import (
    PAPER_BANDS as PAPER_BANDS,
    InputRecipe as InputRecipe,
    MemberRecipe as MemberRecipe,
    Recipe as Recipe,
    TrainingRecipe as TrainingRecipe,
    strategy_names as strategy_names,
    without_hardening as without_hardening,
)
