import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecgquorum import load_recipe
from ecgquorum.errors import RecipeError
from ecgquorum.recipes import parse_recipe, recipe_names
from ecgquorum.training.jobs import build_recipe_member
from tests.conftest import REPOSITORY


@pytest.mark.parametrize("path", sorted((REPOSITORY / "recipes").glob("*.toml")), ids=lambda path: path.stem)
def test_every_recipe_loads_by_path_and_name_and_builds(path):
    recipe = load_recipe(path)
    assert recipe == load_recipe(path.stem)
    assert recipe.name == path.stem
    rate_hz, n_leads, n_classes = (500.0, 12, 9) if "cpsc" in path.stem else (300.0, 1, 4)
    build_recipe_member(recipe, recipe.members - 1, n_leads=n_leads, n_classes=n_classes, rate_hz=rate_hz)


def test_all_recipes_ship():
    assert recipe_names() == sorted(path.stem for path in (REPOSITORY / "recipes").glob("*.toml"))


@pytest.mark.parametrize("name", recipe_names())
def test_the_resolved_recipe_means_the_same(name):
    recipe = load_recipe(name)
    assert parse_recipe(recipe.toml()) == recipe


@given(st.lists(st.tuples(st.floats(0, 70), st.floats(71, 150)), min_size=1, max_size=3))
def test_bands_survive_being_written_down(bands):
    text = f'name = "x"\nstrategy = "part"\n[partition]\nbands = ["all", {[list(band) for band in bands]}]'
    recipe = parse_recipe(text)
    assert recipe.bands_of(1) == tuple(bands)
    assert parse_recipe(recipe.toml()) == recipe


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "name is missing"),
        ('name = "x"\nsede = 1', r"unknown key sede; did you mean seed\?"),
        ('name = "x"\n[training]\nepohcs = 1', r"unknown key training.epohcs; did you mean epochs\?"),
        ('name = "x"\n[zzz]\na = 1', "unknown key zzz; known: name, seed"),
        ('name = "x"\n[training]\nepochs = "many"', "training.epochs: expected a valid integer, found 'many'"),
        ('name = "x"\n[training]\nepochs = 0', "training.epochs: expected greater than or equal to 1, found 0"),
        ('name = "x"\n[training]\nbatch_size = 1', "training.batch_size: expected greater than or equal to 2"),
        ('name = "x"\n[input]\nwindow_s = inf', "input.window_s: expected a finite number"),
        ('name = "x"\n[input]\nwindow_s = 1e12', "input.window_s: expected less than or equal to 3600"),
        (
            'name = "x"\n[input]\nwindow_s = 9.0\n[training]\ncrop_s = 10.0',
            "crop_s: expected at most input.window_s, 9, found 10",
        ),
        ('name = "x"\n[training]\nrepeat = { A = 0 }', "training.repeat.A: expected greater"),
        ('name = "x"\n[member]\nkind = "huge"', "member.kind: expected 'compact' or 'dilated', found 'huge'"),
        ('name = "x"\n[partition]\nbands = []', "partition.bands"),
        ('name = "x"\n[partition]\nbands = ["treble"]', "rings:odd or a list of .low, high. in Hz .*found 'treble'"),
        ('name = "x"\n[partition]\nbands = ["all", []]', "partition.bands: expected all"),
        ('name = "x"\n[partition]\nbands = [[[5, 5]]]', "0 <= low < high"),
        ('name = "x"\n[partition]\nbands = [[[0, 15, 3]]]', "partition.bands: expected all"),
        ('name = "x"\nstrategy = "dec+prat"', "sum of dec, part, adv, dverge such as dec\\+part, found 'prat'"),
        ('name = "x"\nstrategy = "dec+dec"', "one of them twice"),
        ('name = "x"\nstrategy = "baseline+dec"', "found 'baseline'"),
        ('name = "x"\nstrategy = ""', "strategy: expected baseline or a sum"),
        ('name = "x"\nmembers = 1\nstrategy = "dverge"', "at least 2 members"),
        ('name = "x"\nseed = 1\nseed = 2', "expected TOML"),
        ('name = "x"\nstrategies = ["dec", "dec"]', "each of them once"),
        ('name = "x"\nstrategies = []', "strategies"),
        ('name = "x"\nstrategies = ["dec+part", "part+dec"]', "each of them once"),
        ('name = "x"\n[[evaluation.attacks]]\nkind = "pgd"\nname = "worst of all"', "which is taken"),
        ('name = "x"\nstrategies = ["dce"]', "found 'dce'"),
        ('name = "x"\nmembers = 1\nstrategies = ["dverge"]', "at least 2 members"),
        ('name = "x"\nmembers = 1\n[[evaluation.attacks]]\nkind = "pgd"\ntarget = "member 1"', "member below 1"),
        ('name = "x"\n[[evaluation.attacks]]\nkind = "pgd"\ntarget = "all"', "member 0.*or.*ensemble.*found 'all'"),
        ('name = "x"\n[[evaluation.attacks]]\nkind = "confident"', "confident: expected the target .ensemble."),
        (
            'name = "x"\n[[evaluation.attacks]]\nknid = "pgd"',
            r"unknown key evaluation.attacks.0.knid; did you mean kind\?",
        ),
        ('name = "x"\n[evaluation]\nepsilons = [0.0]', "evaluation.epsilons.0: expected greater than 0, found 0.0"),
        ('name = "x"\n[evaluation]\npart = "train"', "evaluation.part: expected 'test' or 'tune'"),
        ('name = "x"\n[cohort]\nrecords = 5', "cohort.source is missing"),
    ],
)
def test_mistakes_are_explained(text, reason):
    with pytest.raises(RecipeError, match=reason) as caught:
        parse_recipe(text, "my.toml")
    assert str(caught.value).startswith("my.toml: ")
    assert "\n" not in str(caught.value)


def test_bands_are_heard_only_by_partitioned_members_and_go_round():
    recipe = parse_recipe('name = "x"\nmembers = 5')
    assert [recipe.bands_of(k) for k in range(3)] == ["all"] * 3
    parted = recipe.with_strategy("dec+part")
    assert [parted.bands_of(k) for k in range(5)] == ["all", "rings:even", "rings:odd", "rings:even", "rings:odd"]
    assert recipe.with_strategy("part+dec").parts == parted.parts == {"dec", "part"}
    with pytest.raises(RecipeError, match="found 'nonsense'"):
        recipe.with_strategy("nonsense")


def test_a_binary_file_is_no_recipe(tmp_path):
    (tmp_path / "r.toml").write_bytes(bytes(range(256)))
    with pytest.raises(RecipeError, match="as text"):
        load_recipe(tmp_path / "r.toml")


def test_a_missing_recipe_lists_those_that_ship(tmp_path):
    with pytest.raises(RecipeError, match="physionet2017-compact"):
        load_recipe(tmp_path / "none.toml")
