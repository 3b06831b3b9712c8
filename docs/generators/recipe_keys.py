"""Write docs/reference/recipe-keys.md: every key of a recipe with its type, default and meaning, from the classes.

Run by `make docs`.
"""

import dataclasses
import inspect
import re
import sys
import types
import typing
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from docstrings import described_names
from pydantic import BaseModel

from ecgquorum.attacks import ATTACKS
from ecgquorum.members import MEMBERS
from ecgquorum.recipes import Recipe, Study
from ecgquorum.recipes.study import AttackRecipe, CohortRecipe, EvaluationRecipe, FurtherRuns
from ecgquorum.recipes.training import InputRecipe, MemberRecipe, TrainingRecipe
from ecgquorum.strategies import STRATEGIES

PAGE = Path(__file__).parent.parent / "reference" / "recipe-keys.md"
GIVEN = ("self", "n_leads", "n_classes", "rate_hz")

HEAD = """# Recipe keys

*Written by `make docs` from the classes; do not edit it here. [Recipes](recipes.md) has an example.*
"""

TABLES: dict[str, tuple[type[BaseModel], str]] = {
    "Top level": (Recipe, "For `train`, `study` and `tune`."),
    "Top level of a study": (Study, "For `study`, beside those above."),
    "[input]": (InputRecipe, ""),
    "[member]": (MemberRecipe, "All other keys are arguments of the network, see [below](#networks)."),
    "[training]": (TrainingRecipe, ""),
    "[[runs]]": (FurtherRuns, "For `study`."),
    "[cohort]": (CohortRecipe, "For `study`, where no `--cohort` is given."),
    "[evaluation]": (EvaluationRecipe, "For `study`."),
    "[[evaluation.attacks]]": (AttackRecipe, "For `study`."),
}
LEFT_OUT = {"input", "member", "training", "strategies", "runs", "cohort", "evaluation", "attacks"}
MEANINGS = {
    "name": "of the run, in its folder and card",
    "seed": "of everything random",
    "members": "number of networks",
    "epochs": "passes over the train part",
    "batch_size": "recordings in a step",
    "learning_rate": "of AdamW; with one-cycle its largest value",
    "weight_decay": "of AdamW",
}


def write_type(kind: Any) -> str:
    """A type as a reader of TOML would call it."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        return write_type(arguments[0])
    if origin is typing.Literal:
        return " or ".join(f'`"{one}"`' for one in arguments)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(write_type(one) for one in arguments if one is not type(None)))
    if origin in (tuple, list):
        return f"list of {write_type(arguments[0])}"
    if origin is dict or kind is dict:
        return "table"
    return {int: "integer", float: "number", str: "text", bool: "true or false"}.get(kind, "any")


def write_default(value: Any) -> str:
    if value is None or value in ((), {}, ""):
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"`[{', '.join(_write_value(one) for one in value)}]`"
    return f"`{_write_value(value)}`"


def _write_value(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else f"{value:g}" if isinstance(value, float) else str(value)


def meanings(cls: type) -> dict[str, str]:
    """What the docstrings of a class and of its bases say about names."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        for names, text in described_names(inspect.cleandoc(base.__doc__ or "")):
            found |= dict.fromkeys(names.split(", ") if names else (), text)
    return found


def write_table(rows: list[tuple[str, str, str, str]]) -> str:
    lines = ["| key | type | default | |", "|---|---|---|---|"]
    return "\n".join(
        [*lines, *(f"| `{key}` | {kind} | {default} | {_escape(text)} |" for key, kind, default, text in rows)]
    )


def _escape(text: str) -> str:
    return text.replace("|", "\\|")


def model_rows(cls: type[BaseModel], but: set[str]) -> list[tuple[str, str, str, str]]:
    texts = MEANINGS | meanings(cls)
    return [
        (
            name,
            write_type(field.rebuild_annotation()),
            "required" if field.is_required() else _default_of(field),
            texts.get(name, ""),
        )
        for name, field in cls.model_fields.items()
        if name not in but
    ]


def _default_of(field: Any) -> str:
    return "none" if field.default_factory else write_default(field.default)


def dataclass_rows(cls: Any, but: tuple[str, ...] = ()) -> list[tuple[str, str, str, str]]:
    texts, hints = meanings(cls), typing.get_type_hints(cls)
    return [
        (one.name, write_type(hints[one.name]), write_default(one.default), texts.get(one.name, ""))
        for one in dataclasses.fields(cls)
        if one.name not in but and one.init
    ]


def network_rows(cls: type) -> list[tuple[str, str, str, str]]:
    texts, hints = meanings(cls), typing.get_type_hints(cls.__init__)
    return [
        (name, write_type(hints[name]), write_default(one.default), texts.get(name, ""))
        for name, one in inspect.signature(cls).parameters.items()
        if name not in GIVEN
    ]


def make_page() -> str:
    """The whole page."""
    parts = [HEAD]
    for title, (cls, text) in TABLES.items():
        but = LEFT_OUT | (set(Recipe.model_fields) if cls is Study else set())
        but -= {"strategies"} if cls is FurtherRuns else set()
        parts += [f"## {title}\n", *([f"{text}\n"] if text else []), write_table(model_rows(cls, but)) + "\n"]
    parts += ["## Strategies\n", "In `[strategies.NAME]`; [what they do](strategies.md).\n"]
    for name in STRATEGIES:
        rows = dataclass_rows(STRATEGIES.get(name))
        parts += [f"### [strategies.{name}]\n", write_table(rows) + "\n"] if rows else []
    parts += ["## Networks\n", "In `[member]`, beside `kind`.\n"]
    for name in MEMBERS:
        parts += [f'### kind = "{name}"\n', write_table(network_rows(MEMBERS.get(name))) + "\n"]
    parts += ["## Attacks\n", "In `options` of `[[evaluation.attacks]]`; [what they do](attacks.md).\n"]
    for name in ATTACKS:
        rows = dataclass_rows(ATTACKS.get(name), but=("epsilon", "start", "targets", "attacks"))
        parts += [f'### attack "{name}"\n', write_table(rows) + "\n"] if rows else []
    return re.sub(r" +\n", "\n", "\n".join(parts))


if __name__ == "__main__":
    PAGE.write_text(make_page())
