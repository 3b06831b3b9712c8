"""Generated reference pages are current and complete; what ecgquorum writes is valid by its JSON Schemas."""

import importlib.util
import json
import re
import subprocess
import sys

import pytest
import typer.main
from jsonschema import Draft202012Validator

import ecgquorum as eq
from ecgquorum.cli import app
from ecgquorum.recipes import parse_recipe, parse_study
from ecgquorum.recipes.study import AttackRecipe, CohortRecipe, EvaluationRecipe, FurtherRuns
from ecgquorum.recipes.training import InputRecipe, TrainingRecipe

from ..conftest import REPOSITORY
from .code_blocks import find_blocks

REFERENCE = REPOSITORY / "docs" / "reference"


def load_generator(name):
    path = REPOSITORY / "docs" / "generators" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"docs_generators_{name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def schemas():
    return {
        name: Draft202012Validator(json.loads((REFERENCE / "schemas" / f"{name}.schema.json").read_text()))
        for name in ("result", "worklist", "triage-summary", "scorecard")
    }


def test_the_command_line_reference_is_current(tmp_path):
    arguments = ["typer", "ecgquorum.cli", "utils", "docs", "--name", "ecgquorum", "--title", "Command line"]
    out = tmp_path / "cli.md"
    subprocess.run([sys.executable, "-m", *arguments, "--output", str(out)], check=True, capture_output=True)
    assert out.read_text() == (REFERENCE / "cli.md").read_text(), "run `make docs`"


def test_every_command_is_in_the_command_line_reference():
    def names(command, path):
        yield path
        for name, one in getattr(command, "commands", {}).items():
            if not one.hidden:
                yield from names(one, f"{path} {name}")

    text = (REFERENCE / "cli.md").read_text()
    for path in names(typer.main.get_command(app), "ecgquorum"):
        assert f"$ {path} " in text, path


def test_recipe_keys_are_current_and_complete():
    text = (REFERENCE / "recipe-keys.md").read_text()
    assert text == load_generator("recipe_keys").make_page(), "run `make docs`"
    shown = set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE))
    nested = {"input", "member", "training", "strategies", "runs", "cohort", "evaluation", "attacks"}
    for table in (
        eq.Recipe,
        eq.Study,
        InputRecipe,
        TrainingRecipe,
        EvaluationRecipe,
        AttackRecipe,
        CohortRecipe,
        FurtherRuns,
    ):
        assert set(table.model_fields) - nested <= shown
    assert all(f"[{name}" in text for name in nested - {"attacks"}) and "evaluation.attacks" in text


def test_every_key_of_a_recipe_has_a_meaning():
    rows = re.findall(r"^\| `(\w+)` \|.*\| (.*) \|$", (REFERENCE / "recipe-keys.md").read_text(), re.MULTILINE)
    known = {"form", "norm", "n_steps", "step", "epochs", "learning_rate"}  # the page of strategies or attacks says it
    assert {name for name, meaning in rows if not meaning.strip()} <= known


def test_the_recipe_in_the_documentation_is_valid():
    (shown,) = find_blocks(REFERENCE / "recipes.md", "toml")
    assert parse_recipe(shown.code).members == 3
    (study,) = find_blocks(REPOSITORY / "docs/how-to/evaluate.md", "toml")
    assert [attack.kind for attack in parse_study(study.code).evaluation.attacks] == ["sap", "worst"]


def test_schemas_are_current():
    for name, schema in load_generator("schemas").make_schemas().items():
        written = json.loads((REFERENCE / "schemas" / f"{name}.schema.json").read_text())
        assert written == json.loads(json.dumps(schema)), "run `make docs`"
        Draft202012Validator.check_schema(written)


def test_predict_and_triage_write_what_the_schemas_say(schemas, ecgquorum, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "broken.edf").write_bytes(b"nothing")
    (folder / "note.txt").write_text("no recording")
    long = eq.simulate("A", seed=1, seconds=130, leads=("ECG",), rate_hz=300.0).recording  # several windows
    eq.write(long, folder / "long.hea")
    for result in json.loads(ecgquorum("predict", "sample:af", "--json").stdout):
        schemas["result"].validate(result)
    summary = json.loads(ecgquorum("triage", folder, "--out", tmp_path / "out", "--json", code=3).stdout)
    schemas["triage-summary"].validate(summary)
    lines = (tmp_path / "out/worklist.jsonl").read_text().splitlines()
    results = [json.loads(line) for line in lines]
    for result in results:
        schemas["worklist"].validate(result)
    assert {"unreadable", "skipped"} <= {one["decision"] for one in results} and len(results[0]["windows"]) > 1


def test_scorecards_are_what_the_schema_says(schemas, tiny_study):
    schemas["scorecard"].validate(json.loads((tiny_study / "scorecard.json").read_text()))
    for name in ("cpsc2018", "physionet2017-compact"):  # the second was written by an earlier version
        assert schemas["scorecard"].is_valid(json.loads((REPOSITORY / f"docs/results/{name}.json").read_text())), name


def test_a_field_without_a_schema_is_an_error(schemas):
    (result,) = eq.load_ensemble("physionet2017").predict("sample:af").results()
    plain = json.loads(json.dumps(result.to_json()))
    schemas["result"].validate(plain)
    assert not schemas["result"].is_valid(plain | {"new_field": 1})
    assert not schemas["result"].is_valid({name: value for name, value in plain.items() if name != "risk"})


def test_every_public_name_is_in_the_api_reference():
    pages = "\n".join(page.read_text() for page in (REFERENCE / "api").glob("*.md"))
    shown = set(re.findall(r"^::: ecgquorum\.([\w.]+)$", pages, re.MULTILINE))
    modules = {"attacks", "corruptions", "losses", "members", "metrics", "recordings", "strategies"}
    assert set(eq.__all__) - modules <= {name.rpartition(".")[2] for name in shown}
