"""A recipe is in the paper's setting, or says how it is not."""

import pytest

from ecgquorum.recipes import Recipe, list_deviations, load_recipe
from ecgquorum.recipes.study import PAPER_STRATEGIES

DATA = ("physionet2017", "cpsc2018")
PAPER = {"dec": {"form": "paper"}, "harden": {"share": 0.5, "epsilon": 75.0}}


@pytest.mark.parametrize("strategy", PAPER_STRATEGIES)
@pytest.mark.parametrize("name", [f"{data}-{kind}" for data in DATA for kind in ("paper", "replica")])
def test_the_papers_recipes_are_in_its_setting(name, strategy):
    assert list_deviations(load_recipe(name).with_strategy(strategy)) == ()


@pytest.mark.parametrize(
    ("strategy", "changes", "deviations"),
    [
        ("baseline", {}, ()),
        ("dec+part", {"training": {"crop_s": 30.0, "label_smoothing": 0.05}}, ()),
        ("baseline", {"members": 5}, ("training: 5 members",)),
        ("baseline", {"training": {"gain": 1.5, "flip": 0.5}}, ("training: gain 1.5", "training: flip 0.5")),
        ("baseline", {"training": {"stretch": 1.15}}, ("training: stretch 1.15",)),
        ("harden", {}, ("harden: 50% of each batch attacked by one step of up to 75",)),
        (
            "harden",
            {"strategies": {"harden": {"share": 0.5, "epsilon": 75.0, "steps": 3}}},
            ("harden: 50% of each batch attacked by 3 steps of up to 75",),
        ),
        ("dec", {"strategies": {}}, ("dec: form logits",)),
        (
            "dec",
            {"strategies": {"dec": {"form": "conditional", "weight": 0.3}}},
            ("dec: form conditional, weight 0.3",),
        ),
        ("dec", {"strategies": {"dec": {"form": "paper", "weight": 0.2}}}, ()),
        ("dec", {"strategies": {"dec": {"form": "paper", "weight": 0.05}}}, ("dec: weight 0.05",)),
        ("dec", {"strategies": {"dec": {"form": "paper", "whiten": True}}}, ("dec: whiten True",)),
        ("part", {"strategies": {"part": {"bands": ("all", ((0.0, 15.0),))}}}, ("part: bands all, 0 to 15 Hz",)),
        ("adv", {"strategies": {"adv": {"steps": 3, "step": 0.5}}}, ("adv: 3 steps of 0.5 epsilon, 10",)),
        ("dverge", {"strategies": {"dverge": {"epsilon": 10.0}}}, ()),
        ("adv", {"strategies": {"dec": {"form": "logits"}}}, ()),
        ("own:Strategy", {}, ("own:Strategy: not a strategy of the paper",)),
        ("own:Strategy", {"strategies": {"own:Strategy": {"weight": 2.0}}}, ("own:Strategy: weight 2.0",)),
    ],
)
def test_deviations_of_the_strategies_in_use_are_listed(strategy, changes, deviations):
    recipe = Recipe.model_validate({"name": "x", "strategy": strategy, "strategies": PAPER} | changes)
    assert list_deviations(recipe) == deviations
