"""Read recipes and studies from TOML."""

import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ecgquorum.errors import RecipeError
from ecgquorum.recipes.error_messages import explain_errors
from ecgquorum.recipes.names import recipe_names
from ecgquorum.recipes.study import Study
from ecgquorum.recipes.training import Recipe


def load_study(path_or_name: str | Path) -> Study:
    """Read a study from a TOML file, or one that ships with ecgquorum by its name."""
    path = Path(path_or_name)
    if str(path_or_name) in recipe_names():
        text = (files("ecgquorum") / "recipes" / f"{path_or_name}.toml").read_text()
        return parse_study(text, f"recipe {path_or_name}")
    try:
        text = path.read_text()
    except OSError as error:
        raise RecipeError(
            f"{path}: expected a recipe file, or one of {', '.join(recipe_names())}; found: {error.strerror}"
        ) from error
    except UnicodeDecodeError as error:
        raise RecipeError(f"{path}: expected a recipe as text, found something else") from error
    return parse_study(text, str(path))


def load_recipe(path_or_name: str | Path) -> Recipe:
    """Read a training recipe; of a study's file, the part about training."""
    return load_study(path_or_name).recipe


def parse_study(text: str, where: str = "recipe") -> Study:
    """Read a study from TOML text; `where` names it in errors."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise RecipeError(f"{where}: expected TOML, found: {error}") from error
    try:
        return Study.model_validate(_tuples(content))
    except ValidationError as error:
        raise RecipeError(f"{where}: {explain_errors(error, Study)}") from error


def parse_recipe(text: str, where: str = "recipe") -> Recipe:
    """Read a training recipe from TOML text; `where` names it in errors."""
    return parse_study(text, where).recipe


def _tuples(value: Any) -> Any:
    """Replace TOML arrays by tuples, which strict frozen models hold."""
    if isinstance(value, list):
        return tuple(_tuples(item) for item in value)
    if isinstance(value, dict):
        return {key: _tuples(item) for key, item in value.items()}
    return value
