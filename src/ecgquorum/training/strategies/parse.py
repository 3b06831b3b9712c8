"""Build strategies from their names and parameters."""

import dataclasses
import difflib
from collections.abc import Mapping
from typing import Any

from ecgquorum.errors import RecipeError, RegistryError, TrainingError
from ecgquorum.recipes.training import strategy_names
from ecgquorum.training.strategies.registry import STRATEGIES
from ecgquorum.training.strategies.strategy import Strategy, sum_strategies


def parse_strategy(text: str, parameters: Mapping[str, Mapping[str, Any]] | None = None) -> Strategy:
    """Build the strategy that a sum of names such as "dec+part" means.

    parameters: name -> parameters of that strategy, as the tables [strategies.NAME] of a recipe; defaults where absent
    """
    tables = parameters or {}
    try:
        names = strategy_names(text)
    except ValueError as error:
        raise RecipeError(str(error)) from error
    built = {name: build_strategy(name, tables.get(name, {})) for name in dict.fromkeys([*names, *tables])}
    return sum_strategies([built[name] for name in names])


def build_strategy(name: str, parameters: Mapping[str, Any]) -> Strategy:
    """Build one strategy by its registered name or import path."""
    try:
        kind = STRATEGIES.get(name)
    except RegistryError as error:
        raise RecipeError(str(error)) from error
    if not (isinstance(kind, type) and issubclass(kind, Strategy)):
        raise RecipeError(f"strategy {name}: expected a subclass of ecgquorum.strategies.Strategy, found {kind!r}")
    known = [field.name for field in dataclasses.fields(kind)]
    for key in parameters:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(known) or 'none'}"
            raise RecipeError(f"[strategies.{name}]: unknown key {key}; {hint}")
    try:
        built: Strategy = kind(**parameters)
    except (TrainingError, TypeError, ValueError) as error:
        raise RecipeError(f"[strategies.{name}]: {error}") from error
    return built
