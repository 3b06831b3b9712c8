"""Options from a file: `ecgquorum.toml` in the current folder, or what --config names.

A table for each command, a line for each option, by their names: what is on the command line comes first.

[triage]
budget = "10%"
ignore = ["*.txt", "*.pdf"]
"""

import tomllib
from pathlib import Path
from typing import Any

from ecgquorum.errors import ConfigError

CONFIG = Path("ecgquorum.toml")
"""The file that is read unless --config names another."""


def read_config(path: Path | None, group: Any) -> dict[str, Any]:
    """The options of all commands below `group`, as a map of defaults for it; empty without a file.

    path: None: `ecgquorum.toml` in the current folder, if there is one
    """
    if path is None and not CONFIG.is_file():
        return {}
    path = path or CONFIG
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"{path}: expected a TOML file with options, found: {reason}") from error
    return _read_group(path, group, content, ())


def _read_group(path: Path, group: Any, table: dict[str, Any], name: tuple[str, ...]) -> dict[str, Any]:
    found = {}
    for key, value in table.items():
        command, title = group.commands.get(key), (*name, key)
        if command is None or not isinstance(value, dict):
            known = ", ".join(f"[{'.'.join((*name, one))}]" for one in group.commands)
            raise ConfigError(f"{path}: expected tables of commands, {known}; found {'.'.join(title)}")
        read = _read_group if hasattr(command, "commands") else _read_options
        found[key] = read(path, command, value, title)
    return found


def _read_options(path: Path, command: Any, table: dict[str, Any], name: tuple[str, ...]) -> dict[str, Any]:
    options = [one for one in command.params if one.param_type_name == "option"]
    by_name = {flag.removeprefix("--"): one for one in options for flag in one.opts if flag.startswith("--")}
    found = {}
    for key, value in table.items():
        option = by_name.get(key.replace("_", "-"))
        if option is None:
            raise ConfigError(f"{path}: [{'.'.join(name)}] has no option {key}; known: {', '.join(sorted(by_name))}")
        found[option.name] = _convert(f"{path}: [{'.'.join(name)}] {key}", option, value)
    return found


def _convert(where: str, option: Any, value: Any) -> Any:
    """The value as the command line would state it; a list for an option that takes names separated by commas."""
    if isinstance(value, dict) or (option.is_flag and not isinstance(value, bool)):
        raise ConfigError(f"{where}: expected {'true or false' if option.is_flag else 'a value'}, found {value!r}")
    if option.multiple:
        return [str(one) for one in value] if isinstance(value, list) else [str(value)]
    if isinstance(value, list):
        return ",".join(map(str, value))
    return value if option.is_flag else str(value)
