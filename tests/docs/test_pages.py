"""The documentation: commands exist, code runs, links resolve."""

import re
import shlex
import subprocess
import sys

import pytest
import typer.main

from ecgquorum import Ensemble, SplitOptions, build_cohort, load_ensemble, open_source
from ecgquorum.attacks import PGD
from ecgquorum.cli import app
from ecgquorum.corruptions import CORRUPTIONS, OOD_SETS
from ecgquorum.members import CompactMember
from ecgquorum.preprocessing import InputSpec
from ecgquorum.recipes import parse_recipe

from ..conftest import REPOSITORY

PAGES = sorted([*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md")])


def blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL)


def test_the_readme_session_runs(capsys):
    (session,) = blocks(REPOSITORY / "README.md", "python")
    assert len([line for line in session.splitlines() if line.strip()]) <= 9
    exec(session, {})  # noqa: S102 (with the ensemble that ships)
    assert capsys.readouterr().out.count("[") >= 4


def test_the_session_of_the_attacks_page_runs(tiny_run, tiny_cohort, monkeypatch):
    (session,) = blocks(REPOSITORY / "docs/reference/attacks.md", "python")
    monkeypatch.setattr(
        "ecgquorum.attacks.worst_case.standard_suite", lambda epsilon, norm: (PGD(epsilon, norm=norm, n_steps=2),)
    )
    names = {}
    exec(session.replace('"run"', repr(str(tiny_run))).replace('"cohort"', repr(str(tiny_cohort.path))), names)  # noqa: S102
    assert names["worst"].shape == names["x"].shape


def test_the_sessions_of_the_evaluation_page_run(tmp_path, monkeypatch, capsys):
    first, second = blocks(REPOSITORY / "docs/how-to/evaluate.md", "python")
    (compared,) = blocks(REPOSITORY / "docs/reference/metrics.md", "python")
    monkeypatch.chdir(tmp_path)
    exec(first + second, {})  # noqa: S102
    assert (tmp_path / "scorecard.json").is_file() and "pgd 5 on ensemble, 10 µV" in capsys.readouterr().out
    exec(compared, {})  # noqa: S102
    assert f"# {capsys.readouterr().out}" in compared


def test_the_sessions_of_the_uncertainty_page_run(tmp_path, monkeypatch, capsys):
    first, second = blocks(REPOSITORY / "docs/explanation/uncertainty.md", "python")
    names = {}
    exec(first, names)  # noqa: S102
    assert "fitted" in capsys.readouterr().out
    monkeypatch.chdir(tmp_path)
    source = open_source("synthetic:physionet2017", records=110, seconds=5.0)
    build_cohort(source, tmp_path / "cohort", split=SplitOptions(tune_share=0.5))
    members = [CompactMember(1, 4, 300.0, width=0.125) for _ in range(2)]
    names["ensemble"] = Ensemble(members, ("N", "A", "O", "~"), InputSpec(("ECG",), 300.0, window_s=6.0))
    exec(second, names)  # noqa: S102
    assert "lost contact" in [one["name"] for one in load_ensemble("mine").risk_model.tune["conditions"]]


def test_the_session_of_the_corruptions_page_runs(capsys):
    (session,) = blocks(REPOSITORY / "docs/reference/corruptions.md", "python")
    exec(session, {})  # noqa: S102
    printed = capsys.readouterr().out
    assert "mains, severity 5" in printed and "muscle, severity 2" in printed and "all corruptions" in printed


def test_the_corruptions_page_names_every_corruption_and_its_levels():
    page = (REPOSITORY / "docs/reference/corruptions.md").read_text()
    for name in CORRUPTIONS:
        (line,) = [line for line in page.splitlines() if line.startswith("| `") and f"`{name}`" in line]
        levels = CORRUPTIONS.get(name).levels
        assert len(levels) == 1 or name == "precordial-swap" or ", ".join(f"{one:g}" for one in levels) in line
    assert all(f"| `{name}` |" in page for name in OOD_SETS)


def test_the_session_of_the_plot_page_runs(tmp_path, monkeypatch):
    (session,) = blocks(REPOSITORY / "docs/how-to/plot.md", "python")
    monkeypatch.chdir(tmp_path)
    exec(session, {})  # noqa: S102
    assert {path.name for path in tmp_path.iterdir()} == {"af.pdf", "why.png"}


def test_the_extensions_of_the_extending_page_work(tiny_cohort):
    names = {"__name__": __name__}
    for block in blocks(REPOSITORY / "docs/tutorials/6-extend.md", "python"):
        exec(block, names)  # noqa: S102
    spec = InputSpec(tiny_cohort.leads, tiny_cohort.rate_hz)
    x, valid, y = tiny_cohort.batch(tiny_cohort.part("tune"), spec)
    network = names["MyNet"](len(tiny_cohort.leads), len(tiny_cohort.classes))
    assert names["RandomSigns"](50.0)(network, x, y, valid).shape == x.shape
    assert names["LogitPenalty"]().parameters == {"weight": 0.01}
    assert names["read_lines"].suffixes == (".lines",)


def test_readme_and_makefile_have_demo_and_test():
    text = (REPOSITORY / "README.md").read_text()
    makefile = (REPOSITORY / "Makefile").read_text()
    for target in ("demo", "test"):
        assert f"make {target}" in text
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)
    assert "make test" in (REPOSITORY / ".ci/run").read_text()


def commands():
    for page in PAGES:
        lines = [line for block in blocks(page, "console") for line in block.splitlines()]
        lines += re.findall(r"`(ecgquorum [^`]*)`", page.read_text())
        for line in lines:
            line = line.removeprefix("$ ").partition("#")[0].strip()
            if line.startswith("ecgquorum ") and "[" not in line:
                yield pytest.param(line, id=f"{page.name}: {line[:60]}")


@pytest.mark.parametrize("line", list(commands()))
def test_every_command_in_the_documents_exists_with_its_options(line):
    command = typer.main.get_command(app)
    words = shlex.split(line)[1:]
    while words and hasattr(command, "commands"):
        if words[0].startswith("-"):
            break
        assert words[0] in command.commands, line
        command = command.commands[words.pop(0)]
    known = {option for parameter in command.params for option in parameter.opts} | {"--help"}
    assert {word for word in words if word.startswith("--")} <= known


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_resolve(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


def test_the_recipe_in_the_documentation_is_valid():
    (shown,) = blocks(REPOSITORY / "docs/reference/recipes.md", "toml")
    assert parse_recipe(shown).members == 3


def test_the_command_line_reference_is_current(tmp_path):
    arguments = ["typer", "ecgquorum.cli", "utils", "docs", "--name", "ecgquorum", "--title", "Command line"]
    out = tmp_path / "cli.md"
    subprocess.run([sys.executable, "-m", *arguments, "--output", str(out)], check=True, capture_output=True)
    assert out.read_text() == (REPOSITORY / "docs/reference/cli.md").read_text(), "run `make docs`"


def test_the_first_command_of_the_readme_prints_what_the_readme_shows(ecgquorum, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    readme = REPOSITORY / "README.md"
    first = next(line for block in blocks(readme, "console") for line in block.splitlines() if line.startswith("ecgq"))
    printed = ecgquorum(*shlex.split(first, comments=True)[1:]).stdout
    (shown,) = blocks(readme, "text")
    without_numbers = [re.sub(r"\d\.\d+", "0", text.splitlines()[0]) for text in (printed, shown)]
    assert without_numbers[0] == without_numbers[1]
