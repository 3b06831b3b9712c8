"""The search space, and conversion between parameters and recipes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecgquorum.errors import TuningError
from ecgquorum.losses import fewest_records
from ecgquorum.recipes import PAPER_BANDS, load_recipe, recipe_names
from ecgquorum.training import check_trainable, resolve_recipe
from ecgquorum.tuning import search_space
from ecgquorum.tuning.space import ABOVE, BANDS, BELOW, FIRST, Choice, Range

STRATEGIES = ("baseline", "dec", "part", "dec+part", "adv", "dec+adv", "dec+part+harden")
RATE_HZ = 300.0


def drawn_values(space, draw):
    values = {}
    for p in space.parameters:
        if p.applies(values):
            if isinstance(p.kind, Choice):
                values[p.name] = draw(st.sampled_from(p.kind.options))
            elif p.kind.whole:
                values[p.name] = draw(st.integers(int(p.kind.low), int(p.kind.high)))
            else:
                values[p.name] = draw(st.floats(p.kind.low, p.kind.high))
    return values


@st.composite
def spaces(draw):
    recipe = load_recipe(draw(st.sampled_from(recipe_names()))).with_strategy(draw(st.sampled_from(STRATEGIES)))
    fields = recipe.model_dump()
    fields["members"] = draw(st.integers(1, 4))
    fields["training"]["batch_size"] = draw(st.integers(4, 200))
    projected = draw(st.integers(1, fields["training"]["batch_size"] - 2))
    fields["strategies"]["dec"] = {
        "projected": projected,
        "weight": draw(st.sampled_from([0.0, 0.001, 0.2, 3.0])),
    }
    fields["member"]["width"] = draw(st.sampled_from([0.1, 1.0, 16.0]))
    bands = st.sampled_from([PAPER_BANDS, ("rings:odd",), ("all", ((0.0, 9.0), (20.0, 30.0)))])
    fields["strategies"]["part"] = {"bands": draw(bands)}
    return search_space(type(recipe).model_validate(fields), draw(st.sampled_from([25.0, 100.0, RATE_HZ])))


@given(st.data())
def test_parameters_and_recipes_convert_both_ways(data):
    space = data.draw(spaces())
    values = drawn_values(space, data.draw)
    recipe = space.recipe_of(values)  # every sampled recipe is a valid one
    assert space.values_of(recipe) == values
    assert recipe.strategy == space.given.strategy and recipe.seed == space.given.seed
    if "dec" in recipe.parts:
        projected = recipe.strategies["dec"]["projected"]
        assert fewest_records(10**6, projected, "regressor") <= recipe.training.batch_size


@given(spaces())
def test_the_given_recipe_is_in_the_space_and_comes_back_exactly(space):
    values = space.values_of(space.given)
    assert space.recipe_of(values) == space.given
    for p in space.parameters:
        assert p.about.endswith(".")
        if p.name in values and isinstance(p.kind, Range):
            assert p.kind.low <= values[p.name] <= p.kind.high
            assert p.kind.low > 0 or not p.kind.log
        elif p.name in values:
            assert values[p.name] in p.kind.options


@pytest.mark.parametrize(
    ("strategy", "tables"),
    [
        ("baseline", {"member", "training"}),
        ("dec", {"member", "training", "strategies.dec"}),
        ("part", {"member", "training", "strategies.part"}),
        ("dec+part", {"member", "training", "strategies.dec", "strategies.part"}),
    ],
)
def test_the_space_depends_on_the_strategy(strategy, tables):
    space = search_space(load_recipe("physionet2017-compact").with_strategy(strategy), RATE_HZ)
    assert {name.rpartition(".")[0] for name in space.names} == tables
    assert "training.crop_s" in space.names
    hardened = search_space(load_recipe("physionet2017-compact").with_strategy(f"{strategy}+harden"), RATE_HZ)
    assert set(hardened.names) - set(space.names) == {"strategies.harden.share", "strategies.harden.epsilon"}
    whole = search_space(load_recipe("physionet2017-paper").with_strategy(strategy), RATE_HZ)
    assert "training.crop_s" not in whole.names


def test_a_cut_is_one_band_below_and_one_above():
    space = search_space(load_recipe("physionet2017-paper").with_strategy("part"), RATE_HZ)
    cut = {BANDS: "cut", BELOW: 15.0, ABOVE: 8.0}
    part = resolve_recipe(space.recipe_of(cut | {FIRST: "all"})).strategy
    assert [part.bands_of(k) for k in range(4)] == ["all", ((0.0, 15.0),), ((8.0, 150.0),), ((0.0, 15.0),)]
    part = resolve_recipe(space.recipe_of(cut | {FIRST: "below"})).strategy
    assert [part.bands_of(k) for k in range(3)] == [((0.0, 15.0),), ((8.0, 150.0),), ((0.0, 15.0),)]


def test_the_recipes_own_bands_stay_a_choice():
    shipped = load_recipe("physionet2017-compact").with_strategy("part")
    by_name = {p.name: p for p in search_space(shipped, RATE_HZ).parameters}
    assert by_name[BANDS].kind.options == ("given", "rings", "cut")
    paper = load_recipe("physionet2017-paper").with_strategy("part")
    by_name = {p.name: p for p in search_space(paper, RATE_HZ).parameters}
    assert by_name[BANDS].kind.options == ("rings", "cut")


@given(st.data())
def test_every_drawn_recipe_can_be_trained(tiny_recipe, tiny_cohort, data):
    recipe = tiny_recipe.with_strategy("dec+part")
    space = search_space(recipe.change(strategies={"dec": {"projected": 8}}), tiny_cohort.rate_hz)
    check_trainable(space.recipe_of(drawn_values(space, data.draw)), tiny_cohort)


def test_vary_restricts_the_space():
    space = search_space(load_recipe("demo").with_strategy("dec+part"), RATE_HZ)
    less = space.restrict(("dec", "member.width"))
    assert less.names == ("member.width", *(f"strategies.dec.{key}" for key in ("weight", "projected", "form")))
    assert space.restrict(("strategies.dec", "member.width")) == less
    assert less.recipe_of(less.values_of(less.given)) == less.given
    for wrong in ("dce", "member.with", "strategies.part.below_hz", "decorrelation"):
        with pytest.raises(TuningError, match="--vary: "):
            space.restrict((wrong,))
    with pytest.raises(TuningError, match="found nothing"):
        space.restrict(())
