"""The space of a search: what it holds, and the way between parameters and recipes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecgquorum.errors import TuningError
from ecgquorum.recipes import PartitionRecipe, load_recipe, recipe_names
from ecgquorum.training import check_trainable
from ecgquorum.training.decorrelation import fewest_records
from ecgquorum.tuning import search_space
from ecgquorum.tuning.space import Choice, Range

STRATEGIES = ("baseline", "dec", "part", "dec+part", "adv", "dec+adv")
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
    fields["decorrelation"]["projected"] = draw(st.integers(1, fields["training"]["batch_size"] - 2))
    fields["decorrelation"]["weight"] = draw(st.sampled_from([0.0, 0.001, 0.2, 3.0]))
    fields["member"]["width"] = draw(st.sampled_from([0.1, 1.0, 16.0]))
    fields["partition"]["bands"] = draw(
        st.sampled_from([PartitionRecipe().bands, ("rings:odd",), ("all", ((0.0, 9.0), (20.0, 30.0)))])
    )
    return search_space(type(recipe).model_validate(fields), draw(st.sampled_from([25.0, 100.0, RATE_HZ])))


@given(st.data())
def test_parameters_and_recipes_are_two_spellings_of_the_same(data):
    space = data.draw(spaces())
    values = drawn_values(space, data.draw)
    recipe = space.recipe_of(values)  # every sampled recipe is a valid one
    assert space.values_of(recipe) == values
    assert recipe.strategy == space.given.strategy and recipe.seed == space.given.seed
    if "dec" in recipe.parts:
        term = recipe.decorrelation
        assert fewest_records(10**6, term.projected, "regressor") <= recipe.training.batch_size


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
        ("dec", {"member", "training", "decorrelation"}),
        ("part", {"member", "training", "partition"}),
        ("dec+part", {"member", "training", "decorrelation", "partition"}),
    ],
)
def test_what_is_searched_depends_on_the_strategy(strategy, tables):
    space = search_space(load_recipe("physionet2017-compact").with_strategy(strategy), RATE_HZ)
    assert {name.split(".")[0] for name in space.names} == tables
    assert {"training.attacked", "training.attack_epsilon", "training.crop_s"} <= set(space.names)
    plain = search_space(load_recipe("physionet2017-paper").with_strategy(strategy), RATE_HZ)
    assert not {"training.attacked", "training.attack_epsilon", "training.crop_s"} & set(plain.names)


def test_a_cut_is_one_band_below_and_one_above():
    space = search_space(load_recipe("physionet2017-paper").with_strategy("part"), RATE_HZ)
    cut = {"partition.bands": "cut", "partition.below_hz": 15.0, "partition.above_hz": 8.0}
    heard = space.recipe_of(cut | {"partition.first": "all"})
    assert [heard.bands_of(k) for k in range(4)] == ["all", ((0.0, 15.0),), ((8.0, 150.0),), ((0.0, 15.0),)]
    heard = space.recipe_of(cut | {"partition.first": "below"})
    assert [heard.bands_of(k) for k in range(3)] == [((0.0, 15.0),), ((8.0, 150.0),), ((0.0, 15.0),)]


def test_the_recipes_own_bands_stay_a_choice():
    shipped = load_recipe("physionet2017-compact").with_strategy("part")
    by_name = {p.name: p for p in search_space(shipped, RATE_HZ).parameters}
    assert by_name["partition.bands"].kind.options == ("given", "rings", "cut")
    paper = load_recipe("physionet2017-paper").with_strategy("part")
    by_name = {p.name: p for p in search_space(paper, RATE_HZ).parameters}
    assert by_name["partition.bands"].kind.options == ("rings", "cut")


@given(st.data())
def test_what_is_drawn_can_be_trained(tiny_recipe, tiny_cohort, data):
    recipe = tiny_recipe.with_strategy("dec+part")
    term = recipe.decorrelation.model_copy(update={"projected": 8})
    space = search_space(recipe.model_copy(update={"decorrelation": term}), tiny_cohort.rate_hz)
    check_trainable(space.recipe_of(drawn_values(space, data.draw)), tiny_cohort)


def test_a_search_may_be_over_less():
    space = search_space(load_recipe("demo").with_strategy("dec+part"), RATE_HZ)
    less = space.chosen(("decorrelation", "member.width"))
    assert less.names == ("member.width", "decorrelation.weight", "decorrelation.projected", "decorrelation.whiten")
    assert less.recipe_of(less.values_of(less.given)) == less.given
    for wrong in ("decorelation", "member.with", "partition.below_hz"):
        with pytest.raises(TuningError, match="--vary: expected"):
            space.chosen((wrong,))
    with pytest.raises(TuningError, match="found nothing"):
        space.chosen(())
