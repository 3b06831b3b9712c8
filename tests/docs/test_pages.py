"""The documentation: commands exist, links resolve, the README is short and true. Code runs in test_code_blocks.py."""

import re
import shlex
import subprocess
import sys

import pytest
import typer.main

from ecgquorum.cli import app
from ecgquorum.corruptions import CORRUPTIONS, OOD_SETS

from ..conftest import REPOSITORY

PAGES = sorted([*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md")])


def blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL)


def test_the_readme_session_runs(capsys):
    (session,) = blocks(REPOSITORY / "README.md", "python")
    assert len([line for line in session.splitlines() if line.strip()]) <= 9
    exec(session, {})  # noqa: S102 (with the ensemble that ships)
    assert capsys.readouterr().out.count("[") >= 4


def test_the_corruptions_page_names_every_corruption_and_its_levels():
    page = (REPOSITORY / "docs/reference/corruptions.md").read_text()
    for name in CORRUPTIONS:
        (line,) = [line for line in page.splitlines() if line.startswith("| `") and f"`{name}`" in line]
        levels = CORRUPTIONS.get(name).levels
        assert len(levels) == 1 or name == "precordial-swap" or ", ".join(f"{one:g}" for one in levels) in line
    assert all(f"| `{name}` |" in page for name in OOD_SETS)


def test_readme_and_makefile_have_demo_and_test():
    text = (REPOSITORY / "README.md").read_text()
    assert len(text.splitlines()) < 120
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


def test_the_first_command_of_the_readme_prints_what_the_readme_shows(ecgquorum, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    readme = REPOSITORY / "README.md"
    first = next(line for block in blocks(readme, "console") for line in block.splitlines() if line.startswith("ecgq"))
    printed = ecgquorum(*shlex.split(first, comments=True)[1:]).stdout
    (shown,) = blocks(readme, "text")
    without_numbers = [re.sub(r"\d\.\d+", "0", text.splitlines()[0]) for text in (printed, shown)]
    assert without_numbers[0] == without_numbers[1]


@pytest.mark.parametrize(("link", "code"), [("other.md", 0), ("nowhere.md", 1), ("other.md#nowhere", 1)])
def test_make_site_refuses_broken_links(link, code, tmp_path):
    """With the Makefile's own options, since --quiet would hide warnings from --strict."""
    (options,) = re.findall(r"-m mkdocs build(.*)$", (REPOSITORY / "Makefile").read_text(), re.MULTILINE)
    whole = (REPOSITORY / "mkdocs.yml").read_text()
    validation = re.search(r"^validation:\n(?:  .*\n)+", whole, re.MULTILINE)[0]
    (tmp_path / "mkdocs.yml").write_text(f"site_name: small\n{validation}")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/index.md").write_text(f"# One\n\n[two]({link})\n")
    (tmp_path / "docs/other.md").write_text("# Two\n")
    command = [sys.executable, "-m", "mkdocs", "build", *options.split()]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
