"""Recipes: a training run, or a whole study, written down in TOML.

An unknown key is an error that names its nearest neighbour. `Recipe.toml()` writes a recipe back with every default
spelled out, so that a run's folder says all that was decided.
"""

from ecgquorum.recipes.load import load_recipe, load_study, parse_recipe, parse_study, recipe_names
from ecgquorum.recipes.study import AttackRecipe, CohortRecipe, EvaluationRecipe, Study
from ecgquorum.recipes.training import (
    PARTS,
    AdversarialRecipe,
    Bands,
    DecorrelationRecipe,
    DvergeRecipe,
    InputRecipe,
    MemberRecipe,
    PartitionRecipe,
    Recipe,
    TrainingRecipe,
)

__all__ = [
    "PARTS",
    "AdversarialRecipe",
    "AttackRecipe",
    "Bands",
    "CohortRecipe",
    "DecorrelationRecipe",
    "DvergeRecipe",
    "EvaluationRecipe",
    "InputRecipe",
    "MemberRecipe",
    "PartitionRecipe",
    "Recipe",
    "Study",
    "TrainingRecipe",
    "load_recipe",
    "load_study",
    "parse_recipe",
    "parse_study",
    "recipe_names",
]
