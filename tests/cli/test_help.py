"""Every command and option explains itself."""

import re

import pytest
import typer.main

from ecgquorum.cli import app
from ecgquorum.simulation import LABELS


def commands(group, name="ecgquorum"):
    for title, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{name} {title}")
        else:
            yield pytest.param(command, id=f"{name} {title}")


@pytest.mark.parametrize("command", list(commands(typer.main.get_command(app))))
def test_every_command_argument_and_option_has_a_help_text(command):
    assert command.help and command.help.strip()[0].isupper()
    for parameter in command.params:
        assert parameter.help, f"{command.name}: {parameter.name}"
        assert parameter.help.endswith("."), parameter.help


@pytest.mark.parametrize("arguments", [[], ["predict"], ["train"], ["cohort"], ["cohort", "build"], ["serve"]], ids=str)
def test_flags_are_shown_without_a_type(ecgquorum, arguments):
    text = ecgquorum(*arguments, "--help").stdout
    assert "--help" in text and "<bool>" not in text


def test_the_help_of_simulate_names_every_class(ecgquorum, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    words = re.findall(r"[\w~-]+", ecgquorum("simulate", "--help").stdout)
    assert set(LABELS) <= set(words)
