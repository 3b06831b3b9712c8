"""Names of the recipes that ship: listed by every command, so without the checks of their content."""

from importlib.resources import files


def recipe_names() -> list[str]:
    """Return the names of the recipes that ship with ecgquorum."""
    entries = (files("ecgquorum") / "recipes").iterdir()
    return sorted(entry.name.removesuffix(".toml") for entry in entries if entry.name.endswith(".toml"))
