"""Recipes: what ships loads and resolves, mistakes are explained, and old keys say what to write instead."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecgquorum import load_recipe
from ecgquorum.errors import RecipeError
from ecgquorum.recipes import load_study, parse_recipe, recipe_names, strategy_names, without_hardening
from ecgquorum.training import resolve_recipe
from tests.conftest import REPOSITORY


@pytest.mark.parametrize("path", sorted((REPOSITORY / "recipes").glob("*.toml")), ids=lambda path: path.stem)
def test_every_recipe_loads_by_path_and_name_and_resolves(path):
    recipe = load_recipe(path)
    assert recipe == load_recipe(path.stem)
    assert recipe.name == path.stem
    assert (recipe.input.leads == 12) == ("cpsc" in path.stem)
    for strategy in load_study(path).compare:
        assert resolve_recipe(recipe.with_strategy(strategy)).strategy.name == strategy


def test_all_recipes_ship():
    assert recipe_names() == sorted(path.stem for path in (REPOSITORY / "recipes").glob("*.toml"))


@pytest.mark.parametrize("name", recipe_names())
def test_the_resolved_recipe_means_the_same(name):
    recipe = load_recipe(name)
    assert parse_recipe(recipe.toml()) == recipe
    resolved = resolve_recipe(recipe).recipe
    assert parse_recipe(resolved.toml()) == resolved
    assert resolve_recipe(resolved).recipe == resolved


@given(st.lists(st.tuples(st.floats(0, 70), st.floats(71, 150)), min_size=1, max_size=3))
def test_bands_are_written_and_parsed(bands):
    text = f'name = "x"\nstrategy = "part"\n[strategies.part]\nbands = ["all", {[list(band) for band in bands]}]'
    plan = resolve_recipe(parse_recipe(text))
    assert plan.strategy.bands_of(1) == tuple(bands)
    assert resolve_recipe(parse_recipe(plan.recipe.toml())).strategy == plan.strategy


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
        ('name = "x"\n[input]\nleads = 0', "input.leads: expected greater than or equal to 1"),
        (
            'name = "x"\n[input]\nwindow_s = 9.0\n[training]\ncrop_s = 10.0',
            "crop_s: expected at most input.window_s, 9, found 10",
        ),
        ('name = "x"\n[training]\nrepeat = { A = 0 }', "training.repeat.A: expected greater"),
        ('name = "x"\nstrategy = "dec+dec"', "found dec twice"),
        ('name = "x"\nstrategy = ""', "strategy: expected baseline or a sum"),
        ('name = "x"\nseed = 1\nseed = 2', "expected TOML"),
        ('name = "x"\ncompare = ["dec", "dec"]', "dec twice"),
        ('name = "x"\ncompare = []', "compare"),
        ('name = "x"\ncompare = ["dec+part", "part+dec"]', "dec.part twice"),
        ('name = "x"\n[[evaluation.attacks]]\nkind = "pgd"\nname = "worst of all"', "which is taken"),
        ('name = "x"\nmembers = 1\n[[evaluation.attacks]]\nkind = "pgd"\ntarget = "member 1"', "member below 1"),
        ('name = "x"\n[[evaluation.attacks]]\nkind = "pgd"\ntarget = "all"', "member 0.*or.*ensemble.*found 'all'"),
        ('name = "x"\n[[evaluation.attacks]]\nkind = "confident"', "confident: expected the target .ensemble."),
        ('name = "x"\n[[evaluation.attacks]]\nkind = "quiet"', 'now called "confident"'),
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


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('[member]\nkind = "huge"', "no member is called 'huge'; known: compact, dilated"),
        ("[member]\nwitdh = 2.0", "unknown option witdh; known: width, dropout"),
        ('strategy = "dec+prat"', "no strategy is called 'prat'; known: baseline, dec, gal, part, adv, dverge, harden"),
        ('strategy = "math:sqrt"', "expected a subclass of ecgquorum.strategies.Strategy"),
        ('strategy = "nowhere:Strategy"', "cannot be imported"),
        ("[strategies.dce]\nweight = 0.1", "no strategy is called 'dce'"),
        ("[strategies.dec]\nwieght = 0.1", r"\[strategies.dec\]: unknown key wieght; did you mean weight\?"),
        ("[strategies.dec]\nweight = -1", r"\[strategies.dec\]: .*weight: expected a number of at least 0, found -1"),
        ('[strategies.dec]\nweight = "much"', "weight: expected a number"),
        ("[strategies.dec]\nprojected = 1.5", "projected: expected a whole number"),
        ('[strategies.dec]\nprojection = "none"', "projection: expected one of regressor"),
        ('[strategies.dec]\nform = "own"', "form: expected one of logits, conditional, paper, found 'own'"),
        ("[strategies.dec]\nwhiten = true", 'whiten and projection are options of form = "paper"'),
        ("[strategies.part]\nbands = []", "bands: expected an entry"),
        ('[strategies.part]\nbands = ["treble"]', "rings:odd or a list of .low, high. in Hz .*found 'treble'"),
        ('[strategies.part]\nbands = ["all", []]', "bands: expected all"),
        ("[strategies.part]\nbands = [[[5, 5]]]", "0 <= low < high"),
        ("[strategies.part]\nbands = [[[0, 15, 3]]]", "bands: expected all"),
        ("[strategies.adv]\nepsilon = 0", "epsilon: expected a number of more than 0"),
        ("[strategies.dverge]\nsteps = true", "steps: expected a whole number"),
        ("[strategies.harden]\nshare = 1.5", "share: expected a number of more than 0 and at most 1, found 1.5"),
    ],
)
def test_networks_and_strategies_check_their_own_parameters(text, reason):
    recipe = parse_recipe(f'name = "x"\n{text}')
    with pytest.raises(RecipeError, match=reason) as caught:
        resolve_recipe(recipe)
    assert str(caught.value).startswith("recipe x: ")


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        ("[decorrelation]\nweight = 0.1", "[decorrelation] is now [strategies.dec]"),
        ('[partition]\nbands = ["all"]', "[partition] is now [strategies.part]"),
        ("[adversarial]\nsteps = 1", "[adversarial] is now [strategies.adv]"),
        ("[dverge]\nsteps = 1", "[dverge] is now [strategies.dverge]"),
        ('[evaluation]\nnormalise = "evaluated"', 'evaluation.normalise = "evaluated" is now "authors"'),
        ('strategies = ["baseline", "dec"]', 'compare = ["baseline", "dec"]'),
        (
            'strategy = "dec"\n[training]\nattacked = 0.25\nattack_epsilon = 75.0',
            'strategy = "dec+harden" and a table [strategies.harden] with share = 0.25, epsilon = 75.0',
        ),
        ("[training]\nattacked = 0.5\nattack_epsilon = 0.05", 'strategy = "harden"'),
    ],
)
def test_old_keys_say_what_to_write_instead(text, instead):
    with pytest.raises(RecipeError) as caught:
        parse_recipe(f'name = "x"\n{text}', "old.toml")
    assert instead in str(caught.value)
    assert str(caught.value).startswith("old.toml: ")


def test_sums_have_one_canonical_order():
    recipe = parse_recipe('name = "x"\nstrategy = "harden + my.package:Own + part+dec"')
    assert recipe.strategy == "dec+part+harden+my.package:Own"
    assert recipe.parts == strategy_names("dec+part+harden+my.package:Own")
    assert recipe.with_strategy("baseline+harden").strategy == "harden"
    assert recipe.with_strategy("baseline").parts == ()
    assert without_hardening("harden") == "baseline" and without_hardening("harden+dec") == "dec"


def test_reading_a_recipe_imports_no_code_of_others(tmp_path, monkeypatch):
    """A bundle's card holds a recipe; looking at it must not run what it names."""
    (tmp_path / "trap.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    recipe = parse_recipe('name = "x"\nstrategy = "trap:Strategy"\n[member]\nkind = "trap:Net"\nwidth = 3')
    assert recipe.member.options == {"width": 3}
    assert parse_recipe(recipe.toml()) == recipe


def test_a_binary_file_is_refused_as_recipe(tmp_path):
    (tmp_path / "r.toml").write_bytes(bytes(range(256)))
    with pytest.raises(RecipeError, match="as text"):
        load_recipe(tmp_path / "r.toml")


def test_a_missing_recipe_lists_those_that_ship(tmp_path):
    with pytest.raises(RecipeError, match="physionet2017-compact"):
        load_recipe(tmp_path / "none.toml")
