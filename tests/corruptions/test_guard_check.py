"""The quality guard against corruptions: what it finds, from which severity on."""

import numpy as np
import pytest

import ecgquorum as eq
from ecgquorum.corruptions.guard_check import check_guard
from tests.conftest import REPOSITORY


@pytest.fixture(scope="module")
def found():
    recordings = [
        eq.simulate(label, seed=seed, seconds=20, rate_hz=300.0, leads=("ECG",)).recording
        for seed, label in enumerate("NAO" * 4)
    ]
    return check_guard(recordings, (1, 3, 5))


def test_the_guard_refuses_no_natural_recording(found):
    assert (found.n_records, found.refused) == (12, 0.0)


@pytest.mark.parametrize(
    ("name", "finding"),
    [
        ("mains", "mains"),
        ("lead-off", "flat line"),
        ("missing-samples", "missing samples"),
        ("clipping", "saturation"),
    ],
)
def test_severe_defects_of_devices_are_found(found, name, finding):
    assert found.found[name][5] == 1 and finding in found.findings[name]


@pytest.mark.parametrize("name", ["baseline-wander", "muscle", "electrode-motion", "rate-error", "time-stretch"])
def test_the_guard_does_not_judge_noise_and_time(found, name):
    """That is for the ensemble's risk; the documentation says so."""
    assert not any(found.found[name].values())


def test_unusable_natural_recordings_are_counted_and_left_out():
    flat = eq.Recording("flat", np.zeros(6000), 300.0, ("ECG",))
    good = eq.simulate("N", seed=0, seconds=20, leads=("ECG",)).recording
    found = check_guard([flat, good], (5,))
    assert (found.n_records, found.refused) == (1, 0.5)
    assert check_guard([flat], (5,)).found == {}


@pytest.mark.data
def test_the_table_of_the_triage_page_holds_on_real_recordings(real_data):
    """Forty other recordings of PhysioNet 2017, none of them of the test part, against the table's figures."""
    source = eq.open_source(str(real_data / "physionet2017" / "training2017.zip"))
    tested = set((real_data / "physionet2017" / "paper_validation_ids.txt").read_text().split())
    paths = [record.path for name, record in source.records.items() if name not in tested][::150][:40]
    recordings = [one.recording for one in eq.read_recordings(paths, sandbox=False)]
    found = check_guard(recordings, (3, 4, 5))
    page = (REPOSITORY / "docs" / "reference" / "quality.md").read_text()
    for name, shares in found.found.items():
        (line,) = [line for line in page.splitlines() if line.startswith(f"| `{name}` |")]
        stated = [float(cell) for cell in line.split("|")[2:7]]
        for severity, share in shares.items():
            assert abs(100 * share - stated[severity - 1]) <= 25, (name, severity, share, stated)
