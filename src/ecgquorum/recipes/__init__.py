"""Recipes: a training run, or a whole study, written in TOML.

An unknown key is an error that names the nearest known one. `Recipe.toml()` writes a recipe back with its defaults.
"""

from ecgquorum.recipes.load import load_recipe, load_study, parse_recipe, parse_study, recipe_names
from ecgquorum.recipes.paper_setting import PAPER_PARTS, list_deviations
from ecgquorum.recipes.study import AttackRecipe, CohortRecipe, EvaluationRecipe, Study
from ecgquorum.recipes.training import (
    PAPER_BANDS,
    InputRecipe,
    MemberRecipe,
    Recipe,
    TrainingRecipe,
    strategy_names,
    without_hardening,
)

__all__ = [
    "PAPER_BANDS",
    "PAPER_PARTS",
    "AttackRecipe",
    "CohortRecipe",
    "EvaluationRecipe",
    "InputRecipe",
    "MemberRecipe",
    "Recipe",
    "Study",
    "TrainingRecipe",
    "list_deviations",
    "load_recipe",
    "load_study",
    "parse_recipe",
    "parse_study",
    "recipe_names",
    "strategy_names",
    "without_hardening",
]
