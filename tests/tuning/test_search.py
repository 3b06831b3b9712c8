"""A search from end to end: real training, interruptions, other processes, refusals."""

import csv
import fcntl
import hashlib
import io
import shutil
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch

from ecgquorum import Cohort, load_ensemble, load_recipe
from ecgquorum.cli import main
from ecgquorum.cohorts.cohort import FIELDS
from ecgquorum.errors import TrainingError, TuningError
from ecgquorum.parallel import LocalExecutor
from ecgquorum.recipes import load_study, parse_study
from ecgquorum.training import check_trainable
from ecgquorum.tuning import TuningOptions, search_space, tune

from ..commands import Command
from ..conftest import TINY_RECIPE

RECIPE = TINY_RECIPE.replace("epochs = 2", "epochs = 1") + "[strategies.dec]\nprojected = 8\n"
VARIED = ("member.width", "training.learning_rate", "strategies.dec.weight", "part")
N = 3

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def recipe_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("recipe") / "tiny.toml"
    path.write_text(RECIPE)
    return path


def words(recipe_file, cohort, out):
    options = {"--cohort": cohort.path, "--out": out, "--trials": N, "--strategy": "dec+part", "--records": 4}
    options |= {"--device": "cpu", "--vary": ",".join(VARIED)}
    return ["tune", str(recipe_file), *(str(word) for pair in options.items() for word in pair)]


def command_line(arguments):
    """Run it in this process; gives the exit code and what it printed."""
    printed, errors = io.StringIO(), io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        redirect_stdout(printed),
        redirect_stderr(errors),
        pytest.raises(SystemExit) as ended,
    ):
        patch.setattr(sys, "argv", ["ecgquorum", *arguments])
        main()
    return ended.value.code or 0, printed.getvalue(), errors.getvalue()


def run_search(cohort, out, n_trials=N, text=RECIPE, executor=None, **options):
    options = {"strategy": "dec+part", "records": 4, "device": "cpu", "vary": VARIED, "n_trials": n_trials} | options
    return tune(parse_study(text), cohort, out, options=TuningOptions(**options), executor=executor)


@pytest.fixture(scope="module")
def finished(tmp_path_factory, recipe_file, tiny_cohort):
    """The folder of an uninterrupted search, and its output."""
    out = tmp_path_factory.mktemp("search") / "s"
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    code, printed, errors = command_line(words(recipe_file, tiny_cohort, out))
    torch.set_num_threads(before)
    assert code == 0, errors
    return out, printed


def table(out):
    with (out / "trials.csv").open() as file:
        return list(csv.DictReader(file))


def alone(rows):
    """What is said of each trial by itself."""
    return [{key: value for key, value in row.items() if key not in ("front", "chosen")} for row in rows]


def test_a_search_writes_its_results(finished, recipe_file, tiny_cohort):
    out, printed = finished
    rows = table(out)
    assert [row["trial"] for row in rows] == ["0", "1", "2"]
    assert [row["chosen"] for row in rows].count("True") == 1
    given = check_trainable(load_recipe(recipe_file).with_strategy("dec+part"), tiny_cohort).recipe
    assert load_recipe(out / "trials/000/recipe.toml") == given.change(risk=False)
    for number in range(N):
        assert load_ensemble(out / "trials" / f"{number:03d}").card["data_hash"] == tiny_cohort.data_hash
        assert (out / "trials" / f"{number:03d}" / "scorecard.json").is_file()
    (chosen,) = (int(row["trial"]) for row in rows if row["chosen"] == "True")
    best = load_study(out / "best.toml")
    assert best.recipe.risk, "trials leave the risk out, the recipe that they recommend does not"
    assert best.recipe.change(risk=False) == load_recipe(out / "trials" / f"{chosen:03d}" / "recipe.toml")
    assert f"chosen (trial {chosen})" in printed and "looks better than it is" in printed
    assert str(out / "search.html") in printed
    for row in rows:
        assert float(row["accuracy_low"]) <= float(row["accuracy"]) <= float(row["accuracy_high"])
        assert row["ua_auc"]


@pytest.mark.long
def test_a_search_is_continued_with_more_trials(finished, tiny_cohort, tmp_path):
    shutil.copytree(finished[0], tmp_path / "s")
    begun = [load_ensemble(tmp_path / f"s/trials/{number:03d}").card["weights_sha256"] for number in range(N)]
    search = run_search(tiny_cohort, tmp_path / "s", N + 1)
    assert [trial.number for trial in search.trials] == list(range(N + 1))
    assert alone(table(tmp_path / "s"))[:N] == alone(table(finished[0]))
    assert begun == [load_ensemble(tmp_path / f"s/trials/{n:03d}").card["weights_sha256"] for n in range(N)]
    assert (tmp_path / "s/trials/003/card.json").is_file()
    assert run_search(tiny_cohort, tmp_path / "s", 1).trials == search.trials  # fewer than there are: nothing to do


@pytest.mark.long
def test_a_killed_search_resumes_to_the_same_trials(finished, recipe_file, tiny_cohort, tmp_path):
    out, arguments = tmp_path / "s", words(recipe_file, tiny_cohort, tmp_path / "s")
    process = Command(*arguments, threads=1)
    while process.poll() is None and not (out / "trials/001/history.csv").is_file():
        time.sleep(0.005)
    assert process.poll() is None
    process.kill()
    assert not (out / "search.html").exists()
    code, _, errors = command_line(arguments)
    assert code == 0, errors
    assert (out / "trials.csv").read_bytes() == (finished[0] / "trials.csv").read_bytes()
    assert (out / "best.toml").read_bytes() == (finished[0] / "best.toml").read_bytes()
    assert (out / "search.html").read_bytes() == (finished[0] / "search.html").read_bytes()
    for number in range(N):
        cards = [load_ensemble(folder / "trials" / f"{number:03d}").card for folder in (out, finished[0])]
        assert cards[0]["weights_sha256"] == cards[1]["weights_sha256"]


@pytest.mark.slow
def test_in_other_processes_the_same_parameters_give_the_same_scores(finished, tiny_cohort, tmp_path):
    with LocalExecutor(2, 1) as executor:
        run_search(tiny_cohort, tmp_path / "s", 2, executor=executor)
    assert alone(table(tmp_path / "s")) == alone(table(finished[0]))[:2]


@pytest.mark.long
def test_the_test_part_is_not_used(finished, tiny_cohort, tmp_path):
    """Test recordings of nothing but NaN, which no training and no attack would survive, change nothing."""
    shutil.copytree(tiny_cohort.path, tmp_path / "cohort")
    samples = np.fromfile(tmp_path / "cohort/signal.f32", dtype="<f4")
    rows = []
    for row in tiny_cohort.rows:
        if row.part == "test":
            samples[row.start : row.start + row.n_samples] = np.nan
            content = samples[row.start : row.start + row.n_samples].tobytes()
            row = replace(row, sha256=hashlib.sha256(content).hexdigest())
        rows.append(row)
    samples.tofile(tmp_path / "cohort/signal.f32")
    with (tmp_path / "cohort/records.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)
    blank = Cohort(tmp_path / "cohort")
    blank.verify()
    run_search(blank, tmp_path / "s", 2)
    assert alone(table(tmp_path / "s")) == alone(table(finished[0]))[:2]


@pytest.mark.long
def test_trials_share_what_they_have_in_common(tiny_cohort, tmp_path):
    """The first member depends on neither bands nor decorrelation: it is trained and attacked once, ensembles each."""
    search = run_search(tiny_cohort, tmp_path / "s", vary=("dec",))
    assert len(search.trials) == N
    assert len(list((tmp_path / "s/members").iterdir())) == 1 + N
    assert len(list((tmp_path / "s/attacks").iterdir())) == 1 + N


@pytest.mark.long
def test_the_option_epochs_does_not_change_the_best_recipe(tiny_cohort, tmp_path):
    search = run_search(tiny_cohort, tmp_path / "s", 1, TINY_RECIPE, epochs=1, strategy="baseline", vary=None)
    assert load_recipe(tmp_path / "s/trials/000/recipe.toml").training.epochs == 1
    assert load_recipe(search.best).training.epochs == 2


@pytest.mark.long
def test_a_trial_that_cannot_be_trained_is_reported_and_does_not_stop_the_search(tiny_cohort, tmp_path):
    """Wider members have more features than this projection can be fitted to with such batches."""
    text = RECIPE.replace("projected = 8", 'projected = 8\nform = "paper"\nprojection = "regressand"').replace(
        "batch_size = 16", "batch_size = 19"
    )
    search = run_search(tiny_cohort, tmp_path / "s", text=text, vary=("member.width",), strategy="dec", seed=4)
    failed = [trial for trial in search.trials if trial.reason]
    assert [trial.number for trial in failed] == [1]
    assert search.trials[0].measures and search.trials[2].measures and search.chosen is not None
    for trial in failed:
        assert "expected batches of at least" in trial.reason and "\n" not in trial.reason
        assert trial.reason in search.page.read_text()
    space = search_space(parse_study(text).recipe, tiny_cohort.rate_hz)
    assert all(trial.values["member.width"] > space.given.member.options["width"] for trial in failed)


def test_an_impossible_recipe_is_refused_before_anything_is_written(tiny_cohort, tmp_path):
    with pytest.raises(TrainingError, match="expected batches of at least"):
        run_search(tiny_cohort, tmp_path / "s", text=RECIPE.replace("projected = 8", 'projected = 80\nform = "paper"'))
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"text": RECIPE.replace("gain = 1.2", "gain = 1.3")}, "recipe"),
        ({"strategy": "dec", "vary": None}, "vary"),
        ({"seed": 1}, "seed"),
        ({"records": 5}, "records"),
        ({"epochs": 7}, "recipe"),
        ({"vary": ("member",)}, "vary"),
    ],
)
def test_another_search_in_the_same_folder_is_refused(finished, tiny_cohort, change, what):
    before = (finished[0] / "search.toml").read_bytes()
    with pytest.raises(TuningError, match=f"started with another {what}.*choose another --out"):
        run_search(tiny_cohort, finished[0], **change)
    assert (finished[0] / "search.toml").read_bytes() == before


def test_a_folder_that_is_not_a_search_is_refused(tiny_cohort, tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(TuningError, match="something else"):
        run_search(tiny_cohort, tmp_path)
    with pytest.raises(TuningError, match="found a file"):
        run_search(tiny_cohort, tmp_path / "thesis.txt")
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.txt"]


def test_two_searches_at_once_do_not_mix(finished, tiny_cohort, recipe_file):
    with (finished[0] / "search.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        code, _, errors = command_line(words(recipe_file, tiny_cohort, finished[0]))
    assert code == 1 and "another process runs a search there" in errors and len(errors.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("no-such-recipe", "--cohort", "COHORT", "--out", "OUT"), "expected a recipe file"),
        (("demo", "--cohort", "OUT", "--out", "OUT"), "expected a cohort"),
        (("demo", "--cohort", "COHORT", "--out", "OUT", "--strategy", "decc"), "no strategy is called"),
        (("demo", "--cohort", "COHORT", "--out", "OUT", "--vary", "gains"), "--vary: expected some of"),
        (("demo", "--cohort", "COHORT", "--out", "OUT", "--device", "tpu"), "--device: expected"),
    ],
)
def test_wrong_search_options_give_a_one_line_error(tiny_cohort, tmp_path, arguments, message):
    places = {"COHORT": str(tiny_cohort.path), "OUT": str(tmp_path / "s")}
    code, _, errors = command_line(["tune", *(places.get(word, word) for word in arguments)])
    assert code == 1 and message in errors
    assert len(errors.strip().splitlines()) == 1
    assert not (tmp_path / "s").exists()


def test_zero_trials_are_refused(tiny_cohort, recipe_file, tmp_path):
    code, _, errors = command_line([*words(recipe_file, tiny_cohort, tmp_path / "s"), "--trials", "0"])
    assert code == 2 and "--trials" in errors
    with pytest.raises(TuningError, match="at least one trial"):
        run_search(tiny_cohort, tmp_path / "s", 0)
    assert not (tmp_path / "s").exists()
