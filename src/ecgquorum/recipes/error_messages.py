"""Explain validation errors of recipes in one line."""

import difflib
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError


def explain_errors(error: ValidationError, model: type[BaseModel]) -> str:
    """Describe every problem that was found while reading a `model`."""
    problems = error.errors()
    deeper = [problem["loc"][:-1] for problem in problems]  # a list is not too short when its only entry is wrong
    shown = [p for p in problems if not (p["type"] == "too_short" and p["loc"] in deeper)]
    return "; ".join(_explain_problem(problem, model) for problem in shown)


def _explain_problem(problem: Any, model: type[BaseModel]) -> str:
    place = [str(part) for part in problem["loc"]]
    name = ".".join(part for part in place if "[" not in part) or "recipe"
    if problem["type"] == "extra_forbidden":
        known = _keys_at(place[:-1], model)
        near = difflib.get_close_matches(place[-1], known, n=1)
        return f"unknown key {name}" + (f"; did you mean {near[0]}?" if near else f"; known: {', '.join(known)}")
    if problem["type"] == "missing":
        return f"{name} is missing"
    if problem["type"] == "value_error":
        return str(problem["ctx"]["error"])
    if problem["type"] == "too_short":
        return f"{name}: expected at least {problem['ctx']['min_length']}, found {problem['ctx']['actual_length']}"
    message = problem["msg"].removeprefix("Input should be ")
    return f"{name}: expected {message}, found {problem['input']!r}"


def _keys_at(place: list[str], model: Any) -> list[str]:
    """Return the keys that a recipe may have at this place."""
    for part in place:
        if part.isdigit():  # an entry of a list is what the list is of
            continue
        field = model.model_fields.get(part)
        model = _model_in(field.annotation) if field else None
        if model is None:
            return []
    return list(model.model_fields)


def _model_in(annotation: Any) -> Any:
    if get_origin(annotation):
        return next((found for found in map(_model_in, get_args(annotation)) if found), None)
    return annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else None
