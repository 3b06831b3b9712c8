"""What tables say about ensembles follows from the recipe in their card."""

import pytest

from ecgquorum.evaluation.ensemble_names import read_training_facts
from ecgquorum.recipes import parse_recipe


@pytest.fixture
def read_hashes(baseline):
    """The hashes of the recipe with these changes, by table."""

    def read(**fields):
        recipe = parse_recipe(baseline.card["recipe"]).change(**fields)
        baseline.card = {**baseline.card, "recipe": recipe.toml()}
        return dict(text.split(": ") for text in read_training_facts(baseline).recipe_hashes)

    return read


def test_hashes_are_of_what_decides_the_training_but_the_seed(baseline, read_hashes):
    plain = read_hashes()
    assert plain.keys() == {"input", "member", "training"}
    assert read_hashes(name="other", seed=7, risk=False, strategies={"adv": {"epochs": 3}}) == plain
    recipe = parse_recipe(baseline.card["recipe"])
    slow = recipe.training.model_dump() | {"learning_rate": 1e-5}
    assert {name for name, text in read_hashes(training=slow).items() if text != plain[name]} == {"training"}
    longer = recipe.input.model_dump() | {"window_s": 99.0}
    assert read_hashes(input=longer)["input"] != plain["input"]


def test_every_strategy_of_a_sum_has_a_hash(read_hashes):
    one, other = (
        read_hashes(strategy="adv+dec", strategies={"adv": {"epochs": n}, "dec": {"projected": 8}}) for n in (1, 2)
    )
    assert one.keys() == {"input", "member", "training", "adv", "dec"}
    assert {name for name in one if one[name] != other[name]} == {"adv"}
