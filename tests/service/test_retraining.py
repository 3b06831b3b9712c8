"""From files to a new model through the command line: triage, desk, verdicts, retrain."""

import csv
from collections import Counter
from types import SimpleNamespace

import pytest

from ecgquorum import Cohort, load_ensemble, simulate
from ecgquorum.recordings import SandboxLimits, write
from ecgquorum.service.retraining import read_labels
from ecgquorum.service.store import reviews, worklist
from ecgquorum.service.store.judgements import make_judgement
from ecgquorum.service.store.queue import AuditSample
from ecgquorum.service.store.tokens import LOCAL
from ecgquorum.service.store.worklist import WorklistFilter
from ecgquorum.service.triaged_folder import TriagedFolder

N_EACH = 11
OTHERS = {0: ("none", ()), 1: ("unclear", ()), 2: ("", ("N", "A"))}


@pytest.fixture
def source(tmp_path):
    """Simulated recordings of four classes, named after them; of patients with two recordings each."""
    folder = tmp_path / "source"
    folder.mkdir()
    for number in range(4 * N_EACH):
        label = "NAO~"[number % 4]
        made = simulate(label, seed=number, seconds=6, leads=("ECG",)).recording
        path = folder / f"{'noise' if label == '~' else label}-{number}.hea"
        write(made, path)
        path.write_text(path.read_text() + f"#Patient: {1000 + number // 8 * 4 + number % 4}\n")
    return folder


def truth(name):
    return {"noise": "~"}.get(name.split("-")[0], name.split("-")[0])


def give_verdict(desk, case, kind, labels):
    with desk.store.write_session() as session:
        row, reader = session.merge(case), desk.reviewer(LOCAL)
        reviews.claim_case(session, row, reader)
        for _ in range(2):
            reviews.add_verdict(session, row, reader, make_judgement(labels, kind, "", desk.classes))


@pytest.fixture
def read_desk(source, model, tmp_path, ecgquorum, make_desk):
    """A desk whose open cases all have verdicts, three of them not one class; gives its folder and the open cases."""
    out = tmp_path / "triaged"
    ecgquorum("triage", source, "--out", out, "--model", model, "--budget", "90%", "--plots", 0, "--readers", 1)
    desk = make_desk()
    desk.__dict__["audit_sample"] = AuditSample(0.15, b"always the same")
    TriagedFolder(out).open_at(desk, limits=SandboxLimits(1, seconds=300.0))
    with desk.store.read_session() as session:
        rows, _ = worklist.query_worklist(session, WorklistFilter(state="open", sort="name"), limit=500)
    cases = [row for row, _ in rows]
    for number, case in enumerate(cases):
        give_verdict(desk, case, *OTHERS.get(number, ("", (truth(case.name),))))
    desk.close()
    return SimpleNamespace(folder=desk.settings.data, cases=cases, n_all=4 * N_EACH)


@pytest.fixture
def recipe_file(tiny_recipe, tmp_path):
    path = tmp_path / "tiny.toml"
    path.write_text(tiny_recipe.toml())
    return path


def test_verdicts_become_a_model_and_the_random_sample_its_test_part(read_desk, recipe_file, tmp_path, ecgquorum):
    out = tmp_path / "again"
    printed = ecgquorum("retrain", read_desk.folder, "--recipe", recipe_file, "--out", out, "--device", "cpu")
    cohort = Cohort(out / "cohort")
    assert cohort.classes == ("N", "A", "O", "~") and cohort.leads == ("ECG",) and cohort.rate_hz == 300.0
    cases = {case.id: case for case in read_desk.cases[len(OTHERS) :]}
    parts = {row.id.partition(".")[0]: row for row in cohort.rows}
    drawn = {one for one, case in cases.items() if case.drawn}
    assert 0 < len(drawn) < len(cases) / 2 and any(case.state == "deferred" for case in cases.values() if case.drawn)
    assert {one for one, row in parts.items() if row.part == "test"} == drawn
    tested = {row.patient for row in parts.values() if row.part == "test"}
    for one, case in cases.items():
        if one in parts:
            assert parts[one].label == truth(case.name)
    assert tested.isdisjoint(row.patient for row in parts.values() if row.part != "test")
    assert len(cases) - len(parts) == len(cohort.card["left_out"]["same_patient_as_test"]) > 0
    ensemble = load_ensemble(out / "model")
    assert ensemble.classes == cohort.classes and ensemble.card["data_hash"] == cohort.data_hash
    for words in ("1 with the verdict none of these", "1 with the verdict cannot tell", "several classes"):
        assert words in printed.stderr
    assert f"accuracy on the random sample, {len(drawn)} recordings" in printed.stdout
    assert "the desk's results" in printed.stdout and "policy fit" in printed.stdout
    with (out / "cohort" / "records.csv").open() as table:
        assert Counter(row["part"] for row in csv.DictReader(table))["test"] == len(drawn)
    again = ecgquorum("retrain", read_desk.folder, "--recipe", recipe_file, "--out", out, code=1).stderr
    assert "exists already" in again and "\n" not in again.strip()


@pytest.mark.long
def test_too_few_labels_are_one_line_and_write_nothing(read_desk, recipe_file, tmp_path, ecgquorum, model, make_desk):
    desk = make_desk()
    for case in read_desk.cases:
        if truth(case.name) == "A":
            with desk.store.write_session() as session:
                row = session.merge(case)
                session.refresh(row)
                reviews.reopen_case(session, row, desk.store.now(), "me", "again")
    assert read_labels(read_desk.folder).n_unread == sum(c.drawn for c in read_desk.cases if truth(c.name) == "A")
    out = tmp_path / "none"
    told = ecgquorum("retrain", read_desk.folder, "--recipe", recipe_file, "--out", out, code=1).stderr
    assert "\n" not in told.strip() and "at least 5 verdicts of each class" in told and "too few of A (" in told
    assert not out.exists()


@pytest.mark.parametrize("wrong", ["nothing", "empty"])
def test_a_folder_without_a_desk_is_one_line(wrong, recipe_file, tmp_path, ecgquorum, make_desk):
    folder = tmp_path / "desk"
    if wrong == "nothing":
        told = ecgquorum("retrain", folder, "--recipe", recipe_file, "--out", tmp_path / "out", code=1).stderr
        assert "no folder of a review desk" in told and "\n" not in told.strip() and not folder.exists()
    else:
        make_desk()
        told = ecgquorum("retrain", folder, "--recipe", recipe_file, "--out", tmp_path / "out", code=1).stderr
        assert "at least 5 verdicts" in told and "\n" not in told.strip()
