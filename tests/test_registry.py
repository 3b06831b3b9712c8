"""Objects by name: built in, registered, from entry points, by import path."""

from importlib.metadata import EntryPoint

import pytest

from ecgquorum import registry
from ecgquorum.errors import RegistryError
from ecgquorum.registry import Registry


@pytest.fixture
def fractions():
    return Registry("number", {"fraction": "fractions:Fraction"})


def test_a_builtin_name_is_imported_on_first_use(fractions):
    from fractions import Fraction

    assert fractions.get("fraction") is Fraction
    assert fractions.name_of(Fraction) == "fraction"


def test_import_paths_are_resolved(fractions):
    from decimal import Decimal

    assert fractions.get("decimal:Decimal") is Decimal
    assert fractions.name_of(Decimal) == "decimal:Decimal"


def test_a_registered_object_is_found_and_cannot_be_replaced(fractions):
    fractions.register("seven", 7)
    assert fractions.get("seven") == 7 and "seven" in fractions and fractions.names() == ["fraction", "seven"]
    for name in ("seven", "fraction"):
        with pytest.raises(RegistryError, match="exists already"):
            fractions.register(name, 8)


def test_entry_points_of_other_packages_are_found(fractions, monkeypatch):
    points = {
        "complex": EntryPoint("complex", "builtins:complex", fractions.group),
        "broken": EntryPoint("broken", "no_such_module:Name", fractions.group),
    }
    monkeypatch.setattr(registry, "_entry_points", lambda group: points if group == "ecgquorum.numbers" else {})
    assert fractions.get("complex") is complex
    assert fractions.names() == ["fraction", "broken", "complex"]
    with pytest.raises(RegistryError, match="broken.*cannot be imported.*no_such_module"):
        fractions.get("broken")


@pytest.mark.parametrize("name", ["absent", "fractions:Absent", "no_such_module:Name", ":Name"])
def test_an_unknown_name_is_refused_in_one_line(fractions, name):
    with pytest.raises(RegistryError) as caught:
        fractions.get(name)
    assert name in str(caught.value) and "\n" not in str(caught.value)
