"""Corruptions, sets out of distribution and label maps through the command line."""

import numpy as np
import pytest

import ecgquorum as eq
from ecgquorum import Scorecard, build_cohort, open_source
from ecgquorum.cohorts import SplitOptions


@pytest.fixture
def clean(tmp_path):
    recording = eq.simulate("Normal", seed=0, seconds=10, rate_hz=250, leads=("I", "II"), noise=0).recording
    return eq.write(recording, tmp_path / "clean.npz")


def test_a_recording_is_corrupted(ecgquorum, clean, tmp_path):
    out = tmp_path / "noisy.npz"
    printed = ecgquorum("corrupt", clean, out, "--kind", "muscle", "--severity", 5, "--seed", 1)
    assert "I, II, 10.0 s at 250 Hz" in printed.stdout and "muscle, severity 5: -6 dB SNR" in printed.stdout
    before, after = (eq.read(path).signal for path in (clean, out))
    ratio = 10 * np.log10(before.var(axis=1).mean() / ((after - before) ** 2).mean())
    assert ratio == pytest.approx(-6, abs=0.01)
    ecgquorum("corrupt", clean, tmp_path / "again.npz", "--kind", "muscle", "--severity", 5, "--seed", 1)
    np.testing.assert_array_equal(eq.read(tmp_path / "again.npz").signal, after)
    ecgquorum("corrupt", clean, tmp_path / "other.npz", "--kind", "muscle", "--severity", 5, "--seed", 2)
    assert not np.array_equal(eq.read(tmp_path / "other.npz").signal, after)
    assert "exists already" in ecgquorum("corrupt", clean, out, "--kind", "mains", code=1).stderr


def test_wrong_corruptions_are_one_line(ecgquorum, clean, tmp_path):
    out = tmp_path / "out.npz"
    assert "no corruption is called 'musle'" in ecgquorum("corrupt", clean, out, "--kind", "musle", code=1).stderr
    found = ecgquorum("corrupt", clean, out, "--kind", "reversal-ra-la", code=1).stderr
    assert "does not apply to recordings with the leads" in found and len(found.strip().splitlines()) == 1
    assert "--severity" in ecgquorum("corrupt", clean, out, "--kind", "mains", "--severity", 6, code=2).stderr
    assert not out.exists()


def test_a_bundle_is_evaluated_under_corruptions(ecgquorum, tiny_run, tiny_cohort, tmp_path):
    out = tmp_path / "card.json"
    printed = ecgquorum(
        "evaluate", tiny_run, "--cohort", tiny_cohort.path, "--out", out, "--corruptions", "muscle,lead-off",
        "--severities", "1,5", "--ood", "noise", "--records", 4,
    )  # fmt: skip
    assert "mean over corruptions" in printed.stdout and "noise" in printed.stdout
    card = Scorecard.load(out)
    assert [str(one) for one in card.conditions] == [
        "natural",
        "muscle, severity 1",
        "muscle, severity 5",
        "lead-off, severity 1",
        "lead-off, severity 5",
        "noise (out of distribution)",
    ]
    assert {len(positions) for positions in card.records[1:]} == {4}
    ecgquorum("report", out, "--out", tmp_path / "report")
    page = (tmp_path / "report" / "report.html").read_text()
    assert "Corruptions" in page and "Out of distribution" in page
    for name in ("corruptions", "corruption_deferral", "corruption_heat_map", "corruption_examples"):
        assert (tmp_path / "report" / "figures" / f"{name}.png").is_file()
    ecgquorum("report", out, "--out", tmp_path / "results.md")
    assert "lead-off" in (tmp_path / "results.md").read_text()


def test_wrong_shift_options_are_one_line(ecgquorum, tiny_run, tiny_cohort, tmp_path):
    run = ("evaluate", tiny_run, "--cohort", tiny_cohort.path, "--out", tmp_path / "card.json")
    for options, message in (
        (("--corruptions", "musle"), "no corruption is called 'musle'"),
        (("--corruptions", "muscle", "--severities", "0"), "expected numbers from 1 to 5"),
        (("--corruptions", "muscle", "--reference", "x"), "no ensemble 'x' to compare with"),
        (("--ood", "unseen"), "no class that the ensembles do not know"),
        (("--labels", tmp_path / "absent.toml"), "cannot read the labels"),
    ):
        assert message in ecgquorum(*run, *options, code=1).stderr


def test_a_bundle_is_evaluated_on_a_cohort_of_other_classes_leads_and_rate(ecgquorum, tiny_run, tmp_path):
    source = open_source("synthetic:cpsc2018", records=36, seconds=5.0)
    cohort, _ = build_cohort(source, tmp_path / "other", split=SplitOptions(test_share=0.6))
    labels, out = tmp_path / "map.toml", tmp_path / "card.json"
    labels.write_text('lead = "I"\n[labels]\nNormal = "N"\nAF = "A"\nPAC = "O"\nPVC = "O"\n')
    printed = ecgquorum(
        "evaluate", tiny_run, "--cohort", cohort.path, "--out", out, "--labels", labels, "--ood", "unseen"
    ).stdout
    assert "PVC → O" in printed and "left out: I-AVB" in printed and "(lead I) at 300 Hz" in printed
    card = Scorecard.load(out)
    assert card.data.classes == ("N", "A", "O", "~") and card.data.n_recordings["~"] == 0
    unseen = [one.attack for one in card.conditions if one.target == "out of distribution"]
    assert "unseen RBBB" in unseen and "unseen PVC" not in unseen
    assert "the classes, leads and rate" in ecgquorum(
        "evaluate", tiny_run, "--cohort", cohort.path, "--out", out, "--ood", "noise", code=1
    ).stderr  # fmt: skip
