"""What all commands share: where they may write."""

import pytest

COMMANDS = {
    "triage": ["triage", "sample:af", "--out"],
    "cohort build": ["cohort", "build", "synthetic:physionet2017", "--out"],
    "cohort fetch": ["cohort", "fetch", "physionet2017", "--out"],
    "study": ["study", "demo", "--out"],
    "train": ["train", "demo", "--cohort", "none", "--out"],
    "tune": ["tune", "demo", "--cohort", "none", "--out"],
    "report": ["report", "none.json", "--out"],
    "pack": ["pack", "none", "none.json", "--out"],
    "calibrate": ["calibrate", "none", "--cohort", "none", "--out"],
    "policy fit": ["policy", "fit", "none", "--cohort", "none", "--out"],
    "serve": ["serve", "--data"],
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())
@pytest.mark.parametrize("inner", ["", "deeper/still"])
def test_a_folder_to_write_to_that_is_a_file_is_one_clear_line(ecgquorum, tmp_path, command, inner):
    path = tmp_path / "file"
    path.write_text("mine")
    printed = ecgquorum(*command, path / inner, code=1)
    message = " ".join(printed.stderr.split())
    what = f"{path} is" if inner else "this is"
    assert (
        message
        == f"error: {path / inner}: expected a folder, but {what} a file; name another folder, or remove the file"
    )
    assert path.read_text() == "mine" and [one.name for one in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    "command",
    [
        ["evaluate", "none", "--cohort", "none", "--out", "file/card.json"],
        ["report", "none.json", "--out", "file/page.md"],
        ["convert", "sample:af", "file/one.edf"],
        ["simulate", "N", "--out", "file/one.csv"],
    ],
    ids=["evaluate", "report", "convert", "simulate"],
)
def test_a_file_to_write_below_a_file_is_one_clear_line(ecgquorum, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("mine")
    message = " ".join(ecgquorum(*command, code=1).stderr.split())
    assert message.startswith("error: file") and "a file" in message and "remove the file" in message, message
    assert (tmp_path / "file").read_text() == "mine"
