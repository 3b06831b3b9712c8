"""Sums of strategies: any order gives the same, nothing is there twice; names and parameters."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecgquorum.errors import RecipeError, TrainingError
from ecgquorum.strategies import (
    STRATEGIES,
    AdversarialTraining,
    Baseline,
    Decorrelation,
    Dverge,
    FourierPartition,
    GradientAlignment,
    Harden,
    Strategy,
    parse_strategy,
)

PARTS = (
    Decorrelation(weight=0.1),
    FourierPartition(),
    AdversarialTraining(steps=3),
    Dverge(),
    Harden(share=0.25),
    GradientAlignment(),
)


@given(st.permutations(PARTS), st.integers(1, 6), st.data())
def test_sums_commute_and_associate(parts, n, data):
    chosen = parts[:n]
    total = Baseline()
    for part in chosen:
        total = total + part if data.draw(st.booleans()) else part + total
    split = data.draw(st.integers(0, n))
    left, right = sum(chosen[:split], Baseline()), sum(chosen[split:], Baseline())
    assert total == left + right == right + left
    assert total.name == (left + right).name
    assert set(total.parts) == set(chosen)
    assert parse_strategy(total.name, {part.name: part.parameters for part in total.parts}) == total


def test_the_order_in_a_name_does_not_matter():
    names = ("dec", "gal", "part", "adv", "dverge", "harden")
    for n in (2, 3, 5):
        for chosen in itertools.permutations(names, n):
            ordered = [name for name in names if name in chosen]
            assert parse_strategy("+".join(chosen)) == parse_strategy("+".join(ordered))
            assert parse_strategy("+".join(chosen)).name == "+".join(ordered)


def test_baseline_adds_nothing():
    assert Baseline() + Baseline() == Baseline() == parse_strategy("baseline")
    assert Baseline() + Harden() == Harden() == parse_strategy("baseline+harden")
    assert Baseline().name == "baseline" and Baseline().parts == ()


def test_the_same_strategy_twice_is_an_error():
    with pytest.raises(TrainingError, match="dec is there twice"):
        Decorrelation(weight=0.1) + FourierPartition() + Decorrelation(weight=0.2)
    with pytest.raises(RecipeError, match="dec twice"):
        parse_strategy("dec+dec")
    with pytest.raises(TypeError):
        Decorrelation() + "part"


@pytest.mark.parametrize("name", STRATEGIES.names())
def test_every_registered_strategy_keeps_the_contract(name):
    kind = STRATEGIES.get(name)
    strategy = kind()
    assert isinstance(strategy, Strategy)
    assert strategy.name == name
    assert parse_strategy(name) == strategy
    assert kind(**strategy.parameters) == strategy
    assert strategy + Baseline() == strategy
    with pytest.raises(AttributeError):
        strategy.weight = 3.0
    for member in (0, 1):
        assert strategy.describe(member) is None or isinstance(strategy.describe(member), dict)


def test_every_file_of_a_strategy_is_registered():
    from importlib.resources import files

    own = {path.name.removesuffix(".py") for path in (files("ecgquorum") / "training" / "strategies").iterdir()}
    own -= {"__init__", "__pycache__", "strategy", "registry", "parse"}
    assert {path.rpartition(":")[0].rpartition(".")[2] for path in STRATEGIES.builtin.values()} == own


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: Decorrelation(weight=-0.1), "dec: weight: expected a number of at least 0"),
        (lambda: Decorrelation(weight=float("nan")), "weight"),
        (lambda: Decorrelation(projected=0), "projected: expected a whole number of at least 1"),
        (lambda: Decorrelation(whiten=1), "whiten: expected true or false"),
        (lambda: FourierPartition(bands=("all", ((3.0, 2.0),))), "0 <= low < high"),
        (lambda: FourierPartition(bands="all"), "expected an entry for each member"),
        (lambda: AdversarialTraining(step=0), "step: expected a number of more than 0 and at most 2"),
        (lambda: Dverge(different_classes="yes"), "different_classes"),
        (lambda: Harden(share=0), "share: expected a number of more than 0"),
        (lambda: GradientAlignment(weight=-1), "gal: weight: expected a number of at least 0"),
        (lambda: GradientAlignment(share=1.5), "share: expected a number of more than 0 and at most 1"),
        (lambda: Harden(epsilon=float("inf")), "epsilon"),
    ],
)
def test_parameters_are_checked(make, reason):
    with pytest.raises(TrainingError, match=reason):
        make()
