"""Options from `ecgquorum.toml`."""

import pytest

from ecgquorum import simulate
from ecgquorum.recordings import write


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(simulate("N", seed=1, leads=("ECG",), seconds=6).recording, tmp_path / "in" / "one.npz")
    (tmp_path / "in" / "notes.txt").write_text("no recording")
    return tmp_path


def test_a_file_says_what_options_can_say(ecgquorum, here, tiny_run):
    lines = [f'model = "{tiny_run}"', 'out = "sorted"', 'budget = "50%"', "plots = 0", "floor = 0.0", "quiet = true"]
    lines += ['ignore = ["*.txt"]', 'always = ["A", "O"]']
    (here / "ecgquorum.toml").write_text("[triage]\n" + "\n".join(lines))
    assert ecgquorum("triage", "in").stdout == ""
    page = (here / "sorted" / "worklist.html").read_text()
    assert "1 ignored" in page and "Always to a person: A, O. Never certain below a probability of 0." in page
    printed = ecgquorum("triage", "in", "--out", "other", "--ignore", "*.pdf", code=4)
    assert printed.stdout == "" and (here / "other" / "worklist.csv").exists(), "the command line comes first"


def test_tables_of_commands_of_a_group(ecgquorum, here, tiny_run, tiny_cohort):
    (here / "own.toml").write_text(f'[policy.fit]\ncohort = "{tiny_cohort.path}"\nkind = "cost"\nout = "fitted"\n')
    assert "expected cost" in ecgquorum("--config", "own.toml", "policy", "fit", tiny_run).stdout


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("budget = 1", "expected tables of commands"),
        ("[triag]", "found triag"),
        ("[triage]\nbudgte = 1", "[triage] has no option budgte; known: address"),
        ("[triage]\nwatch = 'yes'", "watch: expected true or false, found 'yes'"),
        ("[triage", "expected a TOML file with options"),
    ],
)
def test_a_wrong_file_is_one_line(ecgquorum, here, text, expected):
    (here / "ecgquorum.toml").write_text(text)
    printed = ecgquorum("triage", "in", "--out", "o", code=1)
    assert expected in printed.stderr and printed.stderr.count("\n") == 1
