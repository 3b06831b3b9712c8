"""The disk is full: every command that writes says so in one line, names the file, and leaves no half output."""

import re
import shutil
import subprocess

import pytest
import typer.main

from ecgquorum import SplitOptions, build_cohort, open_source, simulate, train_ensemble
from ecgquorum.cli import app
from ecgquorum.recordings import write

from ..commands import Command
from ..conftest import TINY_RECIPE, TINY_STUDY

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

COMMANDS = {
    "train": "train {recipe} --cohort {cohort} --out {disk}/run --device cpu",
    "study": "study {study} --out {disk}/study --device cpu",
    "tune": "tune {recipe} --cohort {cohort} --out {disk}/search --trials 1 --device cpu",
    "evaluate": "evaluate {run} --cohort {cohort} --attack pgd --epsilons 10 --out {disk}/card.json --device cpu",
    "report": "report {scorecard} --out {disk}/report",
    "card": "card {run} --out {disk}/card.md",
    "pack": "pack {strategy} {scorecard} --out {disk}/packed",
    "export": "export {run} --out {disk}/model.onnx",
    "calibrate": "calibrate {half_run} --cohort {half} --out {disk}/calibrated",
    "policy fit": "policy fit {run} --cohort {cohort} --value 10% --out {disk}/policy",
    "cohort build": "cohort build synthetic:physionet2017 --records 40 --seconds 5 --out {disk}/cohort",
    "triage": "triage {recordings} --model {run} --budget 10% --out {disk}/out",
    "simulate": "simulate A --seconds 10 --out {disk}/a.edf",
    "convert": "convert {recordings}/r0.npz {disk}/a.edf",
    "corrupt": "corrupt {recordings}/r0.npz {disk}/a.edf --kind mains",
    "plot": "plot {recordings}/r0.npz --out {disk}/a.pdf",
}
"""command -> its arguments; what it writes goes to the full disk"""

NOT_HERE = {
    "predict": "prints",
    "corruptions": "prints",
    "policy show": "prints",
    "cohort info": "prints",
    "cohort fetch": "needs the internet; writes as `cohort build` does",
    "serve": "tests/service fills the desk's disk",
    "retrain": "trains as `train` does, on a desk's folder",
    "token add": "tests/service",
    "token list": "tests/service",
    "token revoke": "tests/service",
    "audit verify": "reads",
}


def names_of(command, prefix=""):
    for name, one in command.commands.items():
        yield from names_of(one, f"{prefix}{name} ") if hasattr(one, "commands") else [f"{prefix}{name}"]


def test_every_command_is_here_or_has_a_reason():
    assert set(names_of(typer.main.get_command(app))) == COMMANDS.keys() | NOT_HERE.keys()


@pytest.fixture
def disk(name, tmp_path):
    """A file system of 1 MiB of its own, with 16 KiB left, or nothing for commands that write less than that."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)]
    if not shutil.which("mount") or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("file systems cannot be mounted here: run as root")
    try:
        left = 0 if name in ("card", "convert", "corrupt") else 16 << 10
        (place / "filler").write_bytes(bytes((1 << 20) - left))
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.fixture(scope="module")
def recordings(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recordings")
    for number in range(20):
        made = simulate("NAO"[number % 3], seed=number, leads=("ECG",), seconds=6).recording
        write(made, folder / f"r{number}.npz")
    return folder


@pytest.fixture(scope="module")
def half(tmp_path_factory):
    """A cohort with enough recordings to fit a risk on."""
    source = open_source("synthetic:physionet2017", records=120, seconds=5.0)
    return build_cohort(source, tmp_path_factory.mktemp("half") / "cohort", split=SplitOptions(tune_share=0.5))[0]


@pytest.fixture(scope="module")
def half_run(half, tiny_recipe, tmp_path_factory):
    out = tmp_path_factory.mktemp("half-run") / "run"
    train_ensemble(tiny_recipe.change(risk=False), half, out, device="cpu")
    return out


@pytest.fixture
def places(request, disk, tmp_path):
    """What the arguments of a command name; fixtures that it does not use are not made."""
    (tmp_path / "recipe.toml").write_text(TINY_RECIPE)
    (tmp_path / "study.toml").write_text(TINY_STUDY)
    here = {"disk": disk, "recipe": tmp_path / "recipe.toml", "study": tmp_path / "study.toml"}
    made = {
        "recordings": lambda: request.getfixturevalue("recordings"),
        "run": lambda: request.getfixturevalue("tiny_run"),
        "cohort": lambda: request.getfixturevalue("tiny_cohort").path,
        "half": lambda: request.getfixturevalue("half").path,
        "half_run": lambda: request.getfixturevalue("half_run"),
        "strategy": lambda: request.getfixturevalue("tiny_study") / "runs" / "baseline",
        "scorecard": lambda: request.getfixturevalue("tiny_study") / "scorecard.json",
    }
    return lambda wanted: here | {name: made[name]() for name in wanted if name in made}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_full_disk_is_one_line_that_names_the_file(name, disk, places, record_property):
    words = COMMANDS[name].format(**places(re.findall(r"{(\w+)}", COMMANDS[name]))).split()
    command = Command(*words, threads=1)
    code = command.wait(900)
    said = command.stderr.replace("\n", "")
    assert code == 1, (code, said, command.stdout)
    assert "Traceback" not in said and "No space left on device" in said and str(disk) in said, said
    assert not list(disk.rglob("*.partial")), "scratch files are removed"
    record_property("done", 1)
