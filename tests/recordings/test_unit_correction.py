"""Wrong units are detected by the size of beats, corrected exactly and reported; true units are kept."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from ecgquorum import Recording, read, simulate
from ecgquorum.cli import app
from ecgquorum.errors import RecordingError
from ecgquorum.preprocessing.quality import Severity, assess_quality
from ecgquorum.recordings import STANDARD_LEADS, FileDefaults
from ecgquorum.recordings.filetree import open_tree
from ecgquorum.recordings.readers import read_from, recording_names
from ecgquorum.recordings.unit_correction import correct_units, typical_size
from ecgquorum.simulation import LABELS

RHYTHMS = [label for label in LABELS if label != "~"]


def scaled(factor, label="N", leads=("ECG",), unit="mV", seconds=10.0, seed=0):
    """The recording read from a file whose numbers are `factor` times too large for its unit."""
    true = simulate(label, seed=seed, leads=leads, seconds=seconds).recording
    return true, Recording("r", true.signal * np.float32(factor), true.rate_hz, leads, unit=unit)


@pytest.mark.parametrize("leads", [("ECG",), STANDARD_LEADS], ids=["one lead", "twelve"])
@pytest.mark.parametrize("label", RHYTHMS)
@pytest.mark.parametrize(("factor", "used"), [(1e3, "uV"), (1e-3, "V"), (1.0, None)])
def test_every_rhythm_is_read_in_its_unit(label, leads, factor, used):
    for seed in range(3):
        true, stated = scaled(factor, label, leads, seed=seed)
        found = correct_units(stated)
        if used is None:
            assert found is stated
            continue
        assert (found.correction.stated, found.correction.used, found.correction.given) == ("mV", used, False)
        assert found.correction.factor == pytest.approx(1 / factor)
        np.testing.assert_allclose(found.signal, true.signal, rtol=1e-5)


@pytest.mark.parametrize(
    ("unit", "factor", "used"), [("uV", 1e-3, "mV"), ("uV", 1e-6, "V"), ("V", 1e3, "mV"), ("V", 1e6, "uV")]
)
def test_the_unit_is_named_against_the_stated_one(unit, factor, used):
    _, stated = scaled(factor, unit=unit)
    assert correct_units(stated).correction.used == used


def test_noise_is_not_corrected():
    generator = np.random.default_rng(0)
    time_s = np.arange(9000) / 300
    shapes = {
        "open electrode": generator.normal(size=9000),
        "hum": np.sin(2 * np.pi * 50 * time_s) + 0.01 * generator.normal(size=9000),
        "drift": np.cumsum(generator.normal(size=9000)) / 20,
    }
    for name, shape in shapes.items():
        for factor in (1e-3, 1e3):
            stated = Recording("r", shape[None] * factor, 300.0, ("ECG",))
            assert correct_units(stated) is stated, name


@pytest.mark.parametrize("size_mv", [0.03, 60.0])
def test_amplitudes_that_no_unit_explains_are_kept(size_mv):
    true, _ = scaled(1.0)
    factor = size_mv / typical_size(true.signal[0].astype(float), true.rate_hz)
    stated = Recording("r", true.signal * factor, true.rate_hz, true.leads)
    assert correct_units(stated) is stated
    (finding,) = [one for one in assess_quality(stated).findings if one.name == "implausible amplitude"]
    assert "as if" not in finding.detail


def test_spikes_dead_leads_and_gaps_do_not_mislead():
    _, stated = scaled(1e3, leads=STANDARD_LEADS)
    signal = np.array(stated.signal)
    signal[:4] = 0
    signal[5, ::7] = np.nan
    signal[:, ::700] = 3e7
    found = correct_units(Recording("r", signal, stated.rate_hz, stated.leads))
    assert found.correction.used == "uV"


def test_a_detected_unit_is_doubtful_and_a_given_one_is_not():
    _, stated = scaled(1e3)
    detected, given = correct_units(stated), correct_units(stated, "uV")
    assert assess_quality(detected).severity is Severity.DOUBTFUL
    assert [one.name for one in assess_quality(detected).findings] == ["wrong units"]
    assert "uV where it says mV (detected)" in assess_quality(detected).reasons[0]
    assert (
        assess_quality(given).severity is Severity.USABLE
        and "as given with --units" in assess_quality(given).reasons[0]
    )
    assert correct_units(stated, "mV") is stated  # the user insists
    assert assess_quality(stated).severity is Severity.DOUBTFUL
    true, _ = scaled(1.0)
    assert correct_units(true, "uV") is true  # a plausible statement of the file is believed


def test_leads_of_different_units_are_left_alone(write_record):
    true = simulate("N", seed=1, leads=("I", "II"), seconds=10).recording
    path = write_record("two", true.signal, units=("mV", "uV"), leads=("I", "II"))
    assert read(path).correction is None


@pytest.mark.parametrize("ending", ["hea", "csv", "npz", "edf"])
def test_files_with_wrong_units_are_corrected(ending, tmp_path):
    """Files with microvolts that are labelled as millivolts."""
    from ecgquorum.recordings import write

    true, mislabelled = scaled(1e3)
    path = write(mislabelled, tmp_path / f"lie.{ending}")
    found = read(path)
    assert found.correction.used == "uV"
    np.testing.assert_allclose(found.signal[:, : true.n_samples], true.signal, atol=2e-4)
    stated = read(path, as_stated=True)
    assert stated.correction is None
    assert typical_size(stated.signal[0].astype(float), 300.0) > 200
    assert read(path, FileDefaults(units="mV")).correction is None
    assert read(path, FileDefaults(units="uV")).correction.given


def test_commands_report_corrections(tmp_path, tiny_run):
    from ecgquorum.recordings import write

    true, mislabelled = scaled(1e3, seconds=6.0)
    path, sound = write(mislabelled, tmp_path / "lie.csv"), write(true, tmp_path / "sound.csv")
    run = CliRunner().invoke
    answers = [
        json.loads(run(app, ["predict", str(file), "--model", str(tiny_run), "--json"]).stdout)[0]
        for file in (path, sound)
    ]
    assert "uV where it says mV" in answers[0]["notices"][0] and answers[1]["notices"] == []
    assert [one["quality"] for one in answers] == ["doubtful", "usable"]
    assert answers[0]["uncertainty"] == pytest.approx(answers[1]["uncertainty"], abs=1e-4)
    kept = run(app, ["convert", str(path), str(tmp_path / "kept.csv")])
    assert kept.exit_code == 0 and "written as stated, give --units uV" in kept.stderr.replace("\n", " ")
    np.testing.assert_allclose(read(tmp_path / "kept.csv", as_stated=True).signal, mislabelled.signal, rtol=1e-5)
    mended = run(app, ["convert", str(path), str(tmp_path / "mended.csv"), "--units", "uV"])
    assert mended.exit_code == 0 and "as given with --units" in mended.stderr.replace("\n", " ")
    np.testing.assert_allclose(read(tmp_path / "mended.csv").signal, true.signal, rtol=1e-4, atol=1e-6)
    with pytest.raises(RecordingError, match="--units: expected a unit of voltage such as mV or uV, found 'furlong'"):
        FileDefaults(units="furlong")


@pytest.mark.data
@pytest.mark.parametrize(
    "archive", ["physionet2017/training2017.zip", "cpsc2018/cpsc2018_100hz.zip", "cpsc2018/cpsc2018_native_sample.zip"]
)
def test_real_recordings_are_corrected_only_with_wrong_units(real_data, archive):
    tree = open_tree(real_data / archive)
    names = recording_names(tree)
    for name in names[:: max(1, len(names) // 200)]:
        stated = read_from(tree, name, as_stated=True)
        assert correct_units(stated) is stated, name
        for factor, used in ((1e3, "uV"), (1e-3, "V")):
            lie = Recording("r", stated.signal * np.float32(factor), stated.rate_hz, stated.leads)
            assert correct_units(lie).correction.used == used, name
