"""The command line end to end, with valid and invalid input."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest

from ecgquorum import Scorecard, load_ensemble, read, simulate, write
from ecgquorum.ensemble.prediction import TOLERANCE
from tests.conftest import TINY_RECIPE, TINY_STUDY


def one_line(text):
    """The error, alone on its line, behind what was finished before it."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("evaluated: ")]
    assert len(lines) == 1, text
    return lines[0]


@pytest.fixture
def record(write_record):
    made = simulate("A", seed=5, seconds=6, leads=("ECG",), noise=0.5).recording
    return write_record("A1", made.signal)


def test_help_and_version(ecgquorum):
    assert re.fullmatch(r"ecgquorum \d+\.\d+\.\d+(\.dev\d+)?\n", ecgquorum("--version").stdout)
    text = ecgquorum("--help").stdout
    for command in ("study", "train", "evaluate", "report", "predict", "cohort"):
        assert command in text
    for command in (
        ["train"],
        ["predict"],
        ["study"],
        ["evaluate"],
        ["report"],
        ["cohort"],
        ["cohort", "build"],
        ["cohort", "info"],
        ["cohort", "fetch"],
    ):
        assert "Usage" in ecgquorum(*command, "--help").stdout
    assert "physionet2017" in ecgquorum("train", "--help").stdout


def test_cohort_train_predict(ecgquorum, tmp_path, record):
    said = ecgquorum(
        "cohort", "build", "synthetic:physionet2017", "--out", tmp_path / "c", "--records", 60, "--seconds", 4
    )
    assert "60 recordings from simulated physionet2017" in said.stdout
    info = ecgquorum("cohort", "info", tmp_path / "c").stdout
    assert "300 Hz, mV, leads ECG, 4.0 to 4.0 s" in info
    assert re.search(r"all +48 +6 +6 +60", info)
    (tmp_path / "r.toml").write_text(TINY_RECIPE)
    said = ecgquorum("train", tmp_path / "r.toml", "--cohort", tmp_path / "c", "--out", tmp_path / "run")
    assert f"bundle: {tmp_path / 'run'}" in said.stdout
    assert "tune accuracy" in said.stderr
    text = ecgquorum("predict", record, "--model", tmp_path / "run").stdout
    assert re.search(
        r"A1 +[NAO~] \(.*\) +probability 0\.\d{3} \(calibrated\) +risk \d\.\d{3} +uncertainty -?\d\.\d{3} +mutual",
        text,
    )
    assert "member 1" in text
    (row,) = json.loads(ecgquorum("predict", record, "--model", tmp_path / "run", "--json").stdout)
    expected = load_ensemble(tmp_path / "run").predict(read(record)).results()[0].to_json()
    assert row.keys() >= expected.keys()
    assert row["label"] == expected["label"]
    assert list(row["probabilities"]) == ["N", "A", "O", "~"]
    for key in ("mutual_information", "uncertainty", "entropy"):
        assert row[key] == pytest.approx(expected[key], abs=2 * TOLERANCE)
    for found, wanted in zip(row["raw_member_probabilities"], expected["raw_member_probabilities"], strict=True):
        np.testing.assert_allclose(list(found.values()), list(wanted.values()), atol=2 * TOLERANCE)


def test_predict_continues_after_bad_files(ecgquorum, tiny_run, record, tmp_path):
    (tmp_path / "bad.hea").write_text("junk")
    done = ecgquorum("predict", tmp_path / "bad.hea", record, tmp_path / "gone", "--model", tiny_run, "--json", code=1)
    assert [row["id"] for row in json.loads(done.stdout)] == ["A1"]
    errors = [line for line in done.stderr.splitlines() if line]
    assert len(errors) == 2 and "bad.hea" in errors[0] and "gone" in errors[1]
    nothing = ecgquorum("predict", tmp_path / "gone", "--model", tiny_run, "--json", code=1)
    assert json.loads(nothing.stdout) == []


def test_many_recordings_are_one_json_array(ecgquorum, tiny_run, write_record, tmp_path):
    for i in range(40):
        write_record(f"r{i:02d}", folder=tmp_path / "many")
    rows = json.loads(ecgquorum("predict", tmp_path / "many", "--model", tiny_run, "--json").stdout)
    assert [row["id"] for row in rows] == [f"r{i:02d}" for i in range(40)]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["cohort", "info", "nowhere"], "nowhere: expected a cohort"),
        (["cohort", "build", "nowhere", "--out", "x"], "nowhere: expected a folder or a zip archive, found nothing"),
        (["cohort", "build", "synthetic:x", "--out", "x"], "found synthetic:x"),
        (["cohort", "fetch", "mitdb", "--out", "x"], "found 'mitdb'"),
        (["cohort", "fetch", "cpsc2018", "--out", "x", "--url", "http://127.0.0.1:9"], "needs a network"),
        (["train", "nowhere.toml", "--cohort", "c", "--out", "o"], "nowhere.toml: expected a recipe file"),
        (["train", "demo", "--cohort", "nowhere", "--out", "o"], "nowhere: expected a cohort"),
        (["predict", "sample:af", "--model", "nowhere"], "nowhere: expected the folder of a bundle"),
        (
            ["cohort", "build", "synthetic:cpsc2018", "--records", "3", "--seconds", "2", "--out", "/dev/null/x"],
            "/dev/null",
        ),
        (
            ["cohort", "build", "synthetic:cpsc2018", "--records", "3", "--seconds", "2", "--out", "x", "--rate", "0"],
            "--rate",
        ),
    ],
)
def test_wrong_input_gives_a_one_line_error(ecgquorum, arguments, reason, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = ecgquorum(*arguments, code=1)
    assert reason in one_line(said.stderr)
    assert not list(tmp_path.iterdir())


def test_unusual_file_names_are_printed_unchanged(ecgquorum, write_record, tmp_path):
    folder = tmp_path / "mine"
    lines = ["id,label"]
    for i in range(20):
        write_record(f"r{i}", np.random.default_rng(i).normal(size=(1, 600)), folder=folder)
        lines.append(f"r{i},{'[/x]' if i % 2 else '[bold]y'}")
    (folder / "labels.csv").write_text("\n".join(lines))
    said = ecgquorum("cohort", "build", folder, "--out", tmp_path / "out")
    assert "[/x]" in said.stdout
    assert "[bold]y" in said.stdout


def test_debug_shows_where_an_error_came_from(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "ecgquorum", "cohort", "info", str(tmp_path), "--debug"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0 and "Traceback" in done.stderr


def test_evaluate_and_report_from_end_to_end(ecgquorum, tiny_study, tmp_path, no_figures):
    runs = [f"plain={tiny_study / 'runs/baseline'}", tiny_study / "runs/dec+part"]
    said = ecgquorum(
        "evaluate", *runs, "--cohort", tiny_study / "cohort", "--out", tmp_path / "s.json", "--epsilons", "20,40",
        "--attack", "pgd", "--attack", "pgd@1", "--attack", "square@ensemble", "--records", 6, "--part", "tune",
    )  # fmt: skip
    assert "tune part" in said.stdout and "pgd on member 1, 40 µV" in said.stdout
    assert re.search(r"natural +\d+\.\d \(\d+\.\d to \d+\.\d\) +\d+\.\d \(", said.stdout)
    card = Scorecard.load(tmp_path / "s.json")
    assert [one.name for one in card.ensembles] == ["plain", "dec+part"]
    assert {(c.attack, c.target, c.epsilon) for c in card.conditions} == {
        ("natural", "", 0.0),
        *(
            (a, t, e)
            for a, t in (("pgd", "member 0"), ("pgd", "member 1"), ("square", "ensemble"))
            for e in (20.0, 40.0)
        ),
    }
    said = ecgquorum("report", tmp_path / "s.json", tiny_study / "scorecard.json", "--out", tmp_path / "r")
    assert f"report: {tmp_path / 'r' / 'report.html'}" in said.stdout
    assert "the results are too good" in (tmp_path / "r" / "report.html").read_text()


def test_a_study_from_the_command_line(ecgquorum, tiny_study, tmp_path):
    (tmp_path / "mine.toml").write_text(TINY_STUDY)
    arguments = ["study", tmp_path / "mine.toml", "--out", tmp_path / "s", "--strategies", "baseline"]
    said = ecgquorum(*arguments, "--cohort", tiny_study / "cohort")
    assert f"report: {tmp_path / 's' / 'report' / 'report.html'}" in said.stdout
    assert "dec+part" not in said.stdout and "worst of all" in said.stdout
    assert "1/2 baseline  member 0  epoch   1" in said.stderr
    figures = {path.name for path in (tmp_path / "s" / "report" / "figures").iterdir()}
    assert {"examples.png", "examples.svg", "masking.png", "masking.svg"} <= figures


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["report", "nowhere.json", "--out", "x"], "nowhere.json: cannot read the scorecard"),
        (["study", "nowhere.toml", "--out", "x"], "nowhere.toml: expected a recipe file"),
        (["study", "physionet2017", "--out", "x"], "give --cohort DIR"),
        (["study", "demo", "--out", "x", "--strategies", "dec+prat"], "no strategy is called 'prat'"),
        (["study", "demo", "--out", "x", "--strategies", ""], "compare: expected at least 1, found 0"),
        (
            ["evaluate", "RUN", "--cohort", "COHORT", "--out", "s.txt"],
            "s.txt: expected the name of a file that ends in .json",
        ),
        (["evaluate", "RUN", "--cohort", "nowhere", "--out", "s.json"], "nowhere: expected a cohort"),
        (["evaluate", "a=RUN", "a=OTHER", "--cohort", "COHORT", "--out", "s.json"], "two bundles are called a"),
        (
            ["evaluate", "dec+part=RUN", "OTHER", "--cohort", "COHORT", "--out", "s.json"],
            "two bundles are called dec+part",
        ),
        (
            ["evaluate", "a=nowhere", "--cohort", "COHORT", "--out", "s.json"],
            "nowhere: expected the folder of a bundle",
        ),
        (["report", "CARD", "--out", "r.md", "--intro", "nowhere.md"], "nowhere.md: cannot read this text"),
        (["report", "CARD", "--out", "r", "--intro", "nowhere.md"], "--intro is for a Markdown page only"),
        (["evaluate", "nowhere", "--cohort", "COHORT", "--out", "s.json"], "nowhere: expected the folder of a bundle"),
        (["evaluate", "RUN", "--cohort", "COHORT", "--out", "s.json", "--attack", "pdg"], "no attack is called 'pdg'"),
        (
            ["evaluate", "RUN", "--cohort", "COHORT", "--out", "s.json", "--attack", "pgd@9"],
            "no member 9 in an ensemble of 2",
        ),
        (["evaluate", "RUN", "--cohort", "COHORT", "--out", "s.json", "--attack", "pgd@all"], "found 'member all'"),
        (["evaluate", "RUN", "--cohort", "COHORT", "--out", "s.json", "--attack", "pgd", "--attack", "pgd"], "twice"),
        (
            ["evaluate", "RUN", "--cohort", "COHORT", "--out", "s.json", "--epsilons", "0"],
            "epsilons.0: expected greater than 0, found 0.0",
        ),
        (
            ["evaluate", "RUN", "--cohort", "COHORT", "--out", "s.json", "--attack", "confident@1"],
            "confident: expected the target",
        ),
        (["evaluate", "RUN", "--cohort", "COHORT", "--out", "s.json", "--epsilons", "1e40"], "are not finite"),
        (["evaluate", "RUN", "--cohort", "COHORT", "--out", "s.json", "--epsilons", "ten"], "--epsilons: expected num"),
        (["evaluate", "RUN", "--cohort", "COHORT", "--out", "s.json", "--epsilons", ","], "epsilons"),
        (["evaluate", "RUN", "--cohort", "COHORT", "--out", "s.json", "--part", "train"], "part: expected"),
        (["evaluate", "RUN", "--cohort", "COHORT", "--out", "s.json", "--device", "tpu"], "--device"),
    ],
)
def test_wrong_options_give_a_one_line_error(ecgquorum, arguments, reason, tmp_path, monkeypatch, tiny_study):
    monkeypatch.chdir(tmp_path)
    places = {"RUN": tiny_study / "runs/baseline", "OTHER": tiny_study / "runs/dec+part"}
    places |= {"COHORT": tiny_study / "cohort", "CARD": tiny_study / "scorecard.json"}
    for word, place in places.items():
        arguments = [argument.replace(word, str(place)) for argument in arguments]
    said = ecgquorum(*arguments, code=1)
    assert reason in one_line(said.stderr)
    assert not list(tmp_path.iterdir())


@pytest.mark.data
def test_a_real_record_straight_from_the_archive(ecgquorum, real_data, tiny_run):
    path = real_data / "physionet2017/training2017.zip/training2017/A00004"
    (row,) = json.loads(ecgquorum("predict", path, "--model", tiny_run, "--json").stdout)
    expected = load_ensemble(tiny_run).predict(read(path)).results()[0].to_json()
    assert list(row["probabilities"]) == ["N", "A", "O", "~"]
    assert len(row["raw_member_probabilities"]) == 2
    for key in ("mutual_information", "uncertainty"):
        assert row[key] == pytest.approx(expected[key], abs=1e-6)


def test_packing_and_cards(ecgquorum, tiny_study, tmp_path):
    run, scorecard = tiny_study / "runs" / "dec+part", tiny_study / "scorecard.json"
    said = ecgquorum("pack", run, scorecard, "--out", tmp_path / "mine").stdout
    assert re.search(r"mine, 0\.\d MB", said)
    text = ecgquorum("card", tmp_path / "mine").stdout
    assert "## Results" in text
    assert "card.md" in ecgquorum("card", tmp_path / "mine", "--out", tmp_path / "card.md").stdout
    assert (tmp_path / "card.md").read_text() == text
    assert "expected a new folder" in ecgquorum("pack", run, scorecard, "--out", tmp_path / "mine", code=1).stderr
    assert "this is a folder" in ecgquorum("card", run, "--out", tmp_path, code=1).stderr


def test_a_report_as_one_markdown_page(ecgquorum, tiny_study, tmp_path):
    said = ecgquorum("report", tiny_study / "scorecard.json", "--out", tmp_path / "r.md").stdout
    assert str(tmp_path / "r.md") in said
    assert (tmp_path / "r.md").read_text().startswith("# Results\n")


def test_scorecards_are_merged(ecgquorum, tiny_study, tmp_path):
    card = tiny_study / "scorecard.json"
    assert "scorecard: " in ecgquorum("report", card, card, "--out", tmp_path / "both.json").stdout
    assert len(Scorecard.load(tmp_path / "both.json").ensembles) == 2


def test_converting(ecgquorum, record, tmp_path):
    for target in ("a.edf", "b.csv", "c.npz", "d.hea"):
        said = ecgquorum("convert", record, tmp_path / target).stdout
        assert f"{target}: ECG, " in said
        np.testing.assert_allclose(read(tmp_path / target).signal, read(record).signal, atol=2e-3)
    np.save(tmp_path / "x.npy", read(record).signal * 1000)
    assert "give it with --rate" in ecgquorum("convert", tmp_path / "x.npy", tmp_path / "y.npz", code=1).stderr
    ecgquorum("convert", tmp_path / "x.npy", tmp_path / "y.npz", "--rate", 300, "--units", "uV", "--leads", "II")
    assert read(tmp_path / "y.npz").leads == ("II",)
    assert "ends in .hea, .edf, .csv, .npz" in ecgquorum("convert", record, tmp_path / "x.pdf", code=1).stderr


def test_triage_and_policies(ecgquorum, tiny_run, tiny_cohort, record, tmp_path):
    (tmp_path / "in").mkdir()
    for i in range(4):
        ecgquorum("convert", record, tmp_path / "in" / f"r{i}.npz")
    (tmp_path / "in" / "bad.edf").write_text("junk")
    arguments = ("triage", tmp_path / "in", "--model", tiny_run, "--out", tmp_path / "out")
    assert "has no policy" in ecgquorum("policy", "show", tiny_run).stdout
    assert "the bundle has no policy" in ecgquorum(*arguments, code=1).stderr
    arguments = (*arguments, "--plots", 0, "--floor", 0)
    said = ecgquorum(*arguments, "--budget", "50%", code=3).stdout
    assert "2 deferred, 2 certain, 1 unreadable" in said
    assert (tmp_path / "out" / "worklist.csv").read_text().count("\n") == 6
    assert "2 deferred, 2 certain" in ecgquorum(*arguments, "--budget", "50%", code=3).stdout
    assert "a share such as 10%" in ecgquorum(*arguments, "--budget", "400%", code=1).stderr
    fit = ("policy", "fit", tiny_run, "--cohort", tiny_cohort.path)
    for kind, value in (("budget", "20%"), ("conformal", "0.2"), ("threshold", "0.3"), ("cost", "0.2")):
        out = tmp_path / kind
        said = ecgquorum(*fit, "--kind", kind, "--value", value, "--out", out).stdout
        assert ecgquorum("policy", "show", out).stdout.strip() in said
    (tmp_path / "costs.json").write_text('{"A": {"N": 7}}')
    costly = ecgquorum(*fit, "--kind", "cost", "--costs", tmp_path / "costs.json", "--out", tmp_path / "c2").stdout
    assert "7 for A predicted as N" in costly
    sort = ("triage", tmp_path / "in", "--model", tmp_path / "budget", "--out", tmp_path / "o2", "--plots", 0)
    assert "unreadable" in ecgquorum(*sort, code=3).stdout
    urgent = (*fit, "--urgent", "A,O", "--always", "A", "--never", "~", "--floor", "60%", "--out", tmp_path / "urgent")
    rules = "Urgent, in this order: A, O. Always to a person: A. Never to a person: ~. Never certain below"
    assert rules in ecgquorum(*urgent).stdout and rules in ecgquorum("policy", "show", tmp_path / "urgent").stdout
    sort = ("triage", tmp_path / "in", "--model", tmp_path / "urgent", "--out", tmp_path / "o3", "--plots", 0)
    ecgquorum(*sort, code=3)
    assert rules in (tmp_path / "o3" / "worklist.html").read_text(), "triage follows the bundle's rules"
    assert "found 'x'" in ecgquorum(*fit, "--kind", "x", "--out", tmp_path / "x", code=1).stderr


def test_predict_tells_every_finding_of_the_guard(ecgquorum, tmp_path):
    recording = simulate("Normal", seed=1, seconds=10, rate_hz=500).recording
    recording.signal[7] = 0.1
    recording.signal[8, 1000:2500] = 0.0
    write(recording, tmp_path / "dead.npz")
    command = ("predict", tmp_path / "dead.npz", "--model", "cpsc2018")
    printed = ecgquorum(*command)
    assert "lead off on V2: a constant signal" in printed.stderr and "flat line on V3: for 3.0 s" in printed.stderr
    assert "/min, RR irregularity 0.0" in printed.stdout
    (row,) = json.loads(ecgquorum(*command, "--json").stdout)
    assert {(one["name"], one["lead"]) for one in row["findings"]} == {("lead off", "V2"), ("flat line", "V3")}


def test_plotting(ecgquorum, tiny_run, record, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "A1.png: rows, 25 mm/s, 10 mm/mV, from 0 to 6.0 of 6.0 s" in ecgquorum("plot", record).stdout
    assert (tmp_path / "A1.png").read_bytes().startswith(b"\x89PNG")
    assert "A1.png: the file exists already" in one_line(ecgquorum("plot", record, code=1).stderr)
    for how in ("gradient", "occlusion"):
        said = ecgquorum(
            "plot", record, "--map", how, "--model", tiny_run, "--out", "m.svg", "--start", 2, "--force"
        ).stdout
        assert "m.svg: rows, 25 mm/s, 10 mm/mV, from 2 to 6.0 of 6.0 s" in said
        assert re.search(r"tiny predicts [NAO~].*: probability 0\.\d\d, risk", said)
        assert b"<svg" in (tmp_path / "m.svg").read_bytes()
    np.save("x.npy", simulate("AF", seed=1, seconds=3, rate_hz=250).recording.signal * 1000)
    hints = ("--rate", 250, "--units", "uV", "--out", "x.pdf", "--force")
    said = ecgquorum("plot", "x.npy", *hints, "--speed", 50, "--gain", 20, "--layout", "6x2").stdout
    assert "x.pdf: 6x2, 50 mm/s, 20 mm/mV, from 0 to 3.0 of 3.0 s" in said
    assert (tmp_path / "x.pdf").read_bytes().startswith(b"%PDF")
    single = ("--map", "gradient", "--model", tiny_run)
    assert "3x4+1" in ecgquorum("plot", "x.npy", *hints, *single, "--lead", "V2").stdout
    assert "choose one with --lead II" in one_line(ecgquorum("plot", "x.npy", *hints, *single, code=1).stderr)


def test_plot_errors_are_one_line(ecgquorum, record, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.doc").write_text("letter")
    for arguments, expected in (
        (("none.hea",), "none.hea: expected a recording, a folder or an archive, found no such file"),
        (("a.doc",), "found none of them"),
        ((record, "--out", "a.gif"), "must end in .png, .svg, .pdf, not in .gif"),
        ((record, "--out", "gif"), "not in nothing"),
        ((record, "--layout", "6x2"), "found only ECG; draw the leads there are with --layout rows"),
        ((record, "--layout", "2x6"), "there is no layout '2x6'; choose one of 3x4+1, 6x2, 12x1, rows"),
        ((record, "--speed", 30), "speed: expected 12.5, 25, 50 mm/s, found 30"),
        ((record, "--gain", 15), "gain: expected 5, 10, 20 mm/mV, found 15"),
        ((record, "--start", 60), "cannot start at 60 s; the recording lasts 6 s"),
        ((record, "--model", "physionet2017"), "--model needs --map gradient or --map occlusion"),
        ((record, "--map", "gradient", "--model", "nobody"), "nobody: expected the folder of a bundle"),
        ((record, "--map", "gradient", "--model", "cpsc2018"), "found only ECG"),
    ):
        assert expected in one_line(ecgquorum("plot", *arguments, code=1).stderr)
    assert not list(tmp_path.glob("*.png"))
