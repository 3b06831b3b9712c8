"""Keys of recipes that were renamed: each gives an error that says what to write instead."""

from collections.abc import Mapping
from typing import Any

_TABLES = {
    "decorrelation": "strategies.dec",
    "partition": "strategies.part",
    "adversarial": "strategies.adv",
    "dverge": "strategies.dverge",
}


def check_old_keys(recipe: Any) -> None:
    """Raise a ValueError that says how to write the keys that recipes had before strategies were objects."""
    if not isinstance(recipe, Mapping):
        return
    found = [f"[{old}] is now [{new}]" for old, new in _TABLES.items() if old in recipe]
    training = recipe.get("training")
    if isinstance(training, Mapping) and {"attacked", "attack_epsilon"} & training.keys():
        strategy = str(recipe.get("strategy", "baseline"))
        hardened = "harden" if strategy == "baseline" else f"{strategy}+harden"
        values = {"share": training.get("attacked", 0.5), "epsilon": training.get("attack_epsilon", 50.0)}
        table = ", ".join(f"{key} = {value}" for key, value in values.items())
        found.append(
            "training.attacked and training.attack_epsilon are now the strategy harden: remove both, write "
            f'strategy = "{hardened}" and a table [strategies.harden] with {table}'
        )
    if isinstance(recipe.get("strategies"), list | tuple):
        names = ", ".join(f'"{name}"' for name in recipe["strategies"])
        found.append(f"the strategies that a study compares are now compare = [{names}]")
    evaluation = recipe.get("evaluation")
    if isinstance(evaluation, Mapping) and evaluation.get("normalise") == "evaluated":
        found.append('evaluation.normalise = "evaluated" is now "authors"')
    if found:
        raise ValueError("; ".join(found))
