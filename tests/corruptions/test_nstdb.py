"""Simulated noise against the recorded noise of the MIT-BIH Noise Stress Test Database."""

from itertools import pairwise

import numpy as np
import pytest
import wfdb
from scipy.signal import welch

from ecgquorum.corruptions import build_corruption

RATE_HZ = 360.0
EDGES_HZ = (0.05, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 40.0, 80.0)
RECORDS = {"baseline-wander": "bw", "electrode-motion": "em", "muscle": "ma"}


@pytest.fixture(scope="module")
def folder(real_data, tmp_path_factory):
    """The recorded noise in the layout of the download."""
    source, out = real_data / "nstdb", tmp_path_factory.mktemp("nstdb")
    if not source.is_dir():
        pytest.skip(f"no recorded noise at {source}")
    for record in RECORDS.values():
        with np.load(source / f"{record}.npz") as found:
            signal = found["signal"].T / float(found["adc_per_mv"])
        wfdb.wrsamp(
            record,
            fs=RATE_HZ,
            units=["mV"] * 2,
            sig_name=["noise1", "noise2"],
            p_signal=signal,
            fmt=["16"] * 2,
            write_dir=str(out),
        )
    return out


def band_shares(noise):
    """Share of the power in each band, the mean over leads and recordings."""
    hertz, power = welch(noise, RATE_HZ, nperseg=7200, axis=-1)
    power = power / power.sum(axis=-1, keepdims=True)
    bands = pairwise(EDGES_HZ)
    return np.array([power[..., (hertz >= low) & (hertz < high)].sum(axis=-1).mean() for low, high in bands])


@pytest.mark.data
@pytest.mark.parametrize("name", RECORDS)
def test_simulated_noise_has_the_spectrum_of_recorded_noise(name, folder, monkeypatch):
    monkeypatch.setenv("ECGQUORUM_NSTDB", str(folder))
    rng = np.random.default_rng(0)
    quiet = np.zeros((60, 1, 21600))
    made, recorded = (
        band_shares(build_corruption(kind, 3)(quiet, RATE_HZ, generator=rng)[:, 0]) for kind in (name, f"{name}-nstdb")
    )
    assert np.abs(made - recorded).sum() / 2 < 0.12, (made.round(3), recorded.round(3))
    large = recorded > 0.03
    assert (np.abs(np.log2(made[large] / recorded[large])) < 1).all(), (made.round(3), recorded.round(3))


@pytest.mark.data
def test_the_spectra_of_the_three_kinds_differ(folder, monkeypatch):
    """The comparison above can fail: no kind would pass for another."""
    monkeypatch.setenv("ECGQUORUM_NSTDB", str(folder))
    rng = np.random.default_rng(0)
    quiet = np.zeros((20, 1, 21600))
    found = {name: band_shares(build_corruption(name, 3)(quiet, RATE_HZ, generator=rng)[:, 0]) for name in RECORDS}
    recorded = {
        name: band_shares(build_corruption(f"{name}-nstdb", 3)(quiet, RATE_HZ, generator=rng)[:, 0]) for name in RECORDS
    }
    for one in RECORDS:
        for other in RECORDS:
            if one != other:
                assert np.abs(found[one] - recorded[other]).sum() / 2 > 0.2
