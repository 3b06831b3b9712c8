"""A study: resuming, sharing of jobs, same numbers."""

import shutil
import time
from dataclasses import replace
from functools import partial

import pytest

from ecgquorum import Cohort, Scorecard, build_cohort, load_ensemble, open_source, run_study
from ecgquorum.errors import AttackError, RecipeError, TrainingError
from ecgquorum.evaluation.attack_cache import AttackJob
from ecgquorum.recipes import load_study, parse_study, recipe_names
from ecgquorum.study.runner import _load_scorecard

from ..commands import Command
from ..conftest import TINY_STUDY

QUICK_STUDY = TINY_STUDY.replace("records = 240", "records = 120").replace(
    "masking_records = 8", "masking_records = 0\nepsilons = [50.0, 100.0]"
)


def test_a_study_writes_its_recipe_scorecard_and_report(tiny_study):
    study = parse_study((tiny_study / "study.toml").read_text())
    assert study == parse_study(TINY_STUDY)
    assert study.evaluation.epsilons == (10.0, 50.0, 75.0, 100.0)
    card = Scorecard.load(tiny_study / "scorecard.json")
    assert [one.name for one in card.ensembles] == ["baseline", "dec+part"]
    for one in card.ensembles:
        assert load_ensemble(tiny_study / "runs" / one.name).card["weights_sha256"] == one.model
    assert (tiny_study / "report" / "report.html").is_file()
    assert len(list((tiny_study / "members").iterdir())) == 2 + 1  # the first member is shared


def test_a_finished_study_is_not_repeated(tiny_study, tmp_path, monkeypatch, no_figures):
    shutil.copytree(tiny_study, tmp_path / "s")
    card = Scorecard.load(tiny_study / "scorecard.json")
    monkeypatch.setattr("ecgquorum.study.runner.evaluate_recipe", lambda *a, **k: pytest.fail("tested again"))
    again, _ = run_study(parse_study(TINY_STUDY), tmp_path / "s")
    assert again.rows == card.rows


@pytest.mark.parametrize("earlier", [{"recipe_hashes": ()}, {"fitted": "another risk"}])
def test_a_scorecard_of_an_earlier_version_or_another_risk_is_made_anew(tiny_study, monkeypatch, earlier):
    study, card = parse_study(TINY_STUDY), Scorecard.load(tiny_study / "scorecard.json")
    ensembles = {one.name: load_ensemble(tiny_study / "runs" / one.name) for one in card.ensembles}
    load = partial(_load_scorecard, study, tiny_study, Cohort(tiny_study / "cohort"), ensembles)
    assert load().rows == card.rows
    stale = replace(card, ensembles=tuple(replace(one, **earlier) for one in card.ensembles))
    monkeypatch.setattr(Scorecard, "load", lambda path: stale)
    assert load() is None


@pytest.mark.long
def test_a_strategy_and_an_attack_can_be_added_later(tmp_path, monkeypatch, no_figures):
    study = parse_study(QUICK_STUDY.replace("epochs = 2", "epochs = 1"))
    run_study(study.with_strategies(("baseline",)), tmp_path / "s")
    crafted = []
    craft = AttackJob.craft
    monkeypatch.setattr(AttackJob, "craft", lambda self, *a: crafted.append(self.condition.name) or craft(self, *a))
    card, _ = run_study(study, tmp_path / "s")
    assert [one.name for one in card.ensembles] == ["baseline", "dec+part"]
    assert set(crafted) == {"confident"}  # pgd and sap on the shared member were there


FURTHER = """
[[runs]]
compare = ["baseline"]
seeds = [3]
[[runs]]
name = "paper"
compare = ["part+dec"]
strategies.dec = { form = "paper" }
"""


@pytest.mark.long
def test_further_runs_have_other_seeds_and_parameters(tmp_path, no_figures):
    study = parse_study(QUICK_STUDY.replace("epochs = 2", "epochs = 1") + FURTHER)
    recipes = study.recipes()
    assert list(recipes) == ["baseline", "dec+part", "baseline seed 3", "dec+part paper"]
    assert recipes["baseline seed 3"] == recipes["baseline"].change(seed=3)
    assert recipes["dec+part paper"].strategies["dec"]["form"] == "paper"
    assert recipes["dec+part"].strategies.get("dec", {}).get("form") is None
    assert parse_study(study.toml()) == study
    evaluation = study.evaluation.change(attacks=("pgd",), epsilons=(50.0,))
    card, _ = run_study(study.model_copy(update={"evaluation": evaluation}), tmp_path / "s")
    assert [one.name for one in card.ensembles] == list(recipes)
    assert [one.seed for one in card.ensembles] == [0, 0, 3, 0]
    assert load_ensemble(tmp_path / "s/runs/dec+part_paper").card["weights_sha256"] == card.ensembles[3].model


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        ('compare = ["baseline"]\nstrategies.dec = { form = "paper" }', "need a name"),
        ('compare = ["baseline"]', "expected seeds or strategies"),
        ('compare = ["baseline"]\nseeds = [0]', "found baseline twice"),
        (
            'compare = ["dec"]\nseeds = [1]\n[[runs]]\ncompare = ["dec"]\nname = "seed_1"\nseeds = [0]',
            "dec_seed_1 twice",
        ),
        (
            'compare = ["dec"]\nname = "a"\nstrategies.part = { bands = ["all"] }',
            "strategies.part: none of dec uses it",
        ),
        ('compare = ["dec"]\nname = "a/b"\nseeds = [1]', "name"),
    ],
)
def test_wrong_further_runs_are_explained(runs, message):
    with pytest.raises(RecipeError, match=message):
        parse_study(TINY_STUDY + f"[[runs]]\n{runs}\n")


def test_another_recipe_is_refused(tiny_study, tmp_path):
    with pytest.raises(RecipeError, match="started with another recipe"):
        run_study(parse_study(TINY_STUDY.replace("epochs = 2", "epochs = 3")), tiny_study)
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(RecipeError, match="something else"):
        run_study(parse_study(TINY_STUDY), tmp_path)
    with pytest.raises(RecipeError, match="found a file"):
        run_study(parse_study(TINY_STUDY), tmp_path / "thesis.txt")


def test_a_cohort_that_the_study_did_not_build_is_refused(tmp_path):
    build_cohort(open_source("synthetic:physionet2017", records=60, seconds=2.0, seed=9), tmp_path / "s" / "cohort")
    with pytest.raises(RecipeError, match="something else"):
        run_study(parse_study(TINY_STUDY), tmp_path / "s")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (TINY_STUDY.replace("n_steps = 4", "nsteps = 4", 1), AttackError),
        (TINY_STUDY.replace("projected = 8", 'form = "paper"\nprojected = 80'), TrainingError),
    ],
)
def test_mistakes_are_found_before_anything_is_trained(tmp_path, text, error):
    with pytest.raises(error):
        run_study(parse_study(text), tmp_path / "s")
    assert not (tmp_path / "s" / "members").exists()


def test_a_study_without_a_cohort_is_an_error(tmp_path):
    with pytest.raises(RecipeError, match="give --cohort DIR"):
        run_study(load_study("physionet2017-compact"), tmp_path / "s")
    assert not (tmp_path / "s").exists()


@pytest.mark.long
def test_a_killed_study_resumes_to_the_same_numbers(tmp_path, ecgquorum, no_figures):
    """Killed while training and while attacking, then resumed."""
    run_study(parse_study(QUICK_STUDY), tmp_path / "whole", device="cpu")
    toml = tmp_path / "study.toml"
    toml.write_text(QUICK_STUDY)
    out = tmp_path / "s"
    arguments = ["study", str(toml), "--out", str(out), "--device", "cpu"]

    def killed_when(ready):
        process = Command(*arguments)
        while process.poll() is None and not ready():
            time.sleep(0.02)
        if process.poll() is None:
            process.kill()
            return True
        return False

    assert killed_when(lambda: any(out.glob("members/*/checkpoint.safetensors")))
    assert killed_when(lambda: any(out.glob("attacks/*/*.safetensors")))
    assert not (out / "scorecard.json").exists()
    done = ecgquorum(*arguments)
    assert "epoch" not in done.stderr  # all members were there
    found, expected = (Scorecard.load(folder / "scorecard.json") for folder in (out, tmp_path / "whole"))
    assert found.rows == expected.rows


@pytest.mark.parametrize("name", [name for name in recipe_names() if not name.endswith("-short")])
def test_every_study_that_ships_names_what_it_compares(name):
    study = load_study(name)
    hardened = "compact" in name
    assert (
        {"harden", "dec+part+harden"} <= set(study.compare)
        if hardened
        else {"baseline", "dec+part"} <= set(study.compare)
    )
    assert {(a.name, a.target) for a in study.evaluation.attacks} >= {("pgd", "member 0"), ("sap", "member 0")}
    expected = (0.025, 0.05, 0.15, 0.175) if "cpsc" in name else (10.0, 50.0, 75.0, 100.0)
    assert study.evaluation.epsilons == expected
    assert parse_study(study.toml()) == study


def test_the_short_study_has_two_of_the_papers_members_in_its_setting():
    short, paper = load_study("physionet2017-paper-short"), load_study("physionet2017-paper")
    assert short.compare == ("dec",) and short.members == 2
    assert short.recipe.member == paper.recipe.member
    assert short.recipe.training.repeat == paper.recipe.training.repeat


def test_the_demo_is_small():
    study = load_study("demo")
    assert study.cohort is not None and study.cohort.records <= 1500
    assert study.compare == ("baseline", "dec+part")


@pytest.mark.long
@pytest.mark.parametrize("name", ["physionet2017-paper", pytest.param("cpsc2018-paper", marks=pytest.mark.slow)])
def test_the_papers_studies_run_a_few_steps(name, tmp_path, no_figures):
    """At full width, on short windows and few recordings, so that a few steps take seconds, not hours."""
    study = load_study(name)
    kind = "cpsc2018" if "cpsc" in name else "physionet2017"
    small = {
        "compare": ("dec+part",),
        "members": 2,
        "input": study.input.model_copy(update={"window_s": 1.0}),
        "training": study.training.model_copy(update={"epochs": 1, "batch_size": 36}),
        "cohort": {"source": f"synthetic:{kind}", "records": 50, "seconds": 1.0},
        "evaluation": {
            "epsilons": study.evaluation.epsilons[:1],
            "masking_records": 0,
            "attacks": ({"kind": "pgd", "records": 3, "options": {"n_steps": 1}},),
        },
    }
    changed = type(study).model_validate(
        study.model_dump() | {k: getattr(v, "model_dump", lambda v=v: v)() for k, v in small.items()}
    )
    card, page = run_study(changed, tmp_path / "s")
    assert page.is_file() and len(card.ensembles) == 1
    assert len(Cohort(tmp_path / "s/cohort")) == 50
