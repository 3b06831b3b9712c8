"""Public names are listed once and can be imported."""

import re

import pytest

import ecgquorum
from tests.conftest import REPOSITORY

STUB = (REPOSITORY / "src/ecgquorum/__init__.pyi").read_text()


@pytest.mark.parametrize("name", ecgquorum.__all__)
def test_every_public_name_is_there(name):
    assert getattr(ecgquorum, name) is not None
    assert name in dir(ecgquorum)


def test_the_stub_lists_each_name_once():
    names = re.findall(r"(\w+) as (\w+)", STUB)
    assert all(name == alias for name, alias in names)
    assert sorted(name for name, _ in names) == sorted(ecgquorum.__all__)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="ensemblee"):
        ecgquorum.ensemblee  # noqa: B018


@pytest.mark.parametrize("package", ["ensemble", "cohorts", "evaluation", "report"])
def test_names_of_packages_that_import_late_are_there(package):
    module = __import__(f"ecgquorum.{package}", fromlist=["__all__"])
    for name in module.__all__:
        assert getattr(module, name) is not None
