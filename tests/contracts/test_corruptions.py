"""The contract of corruptions and out-of-distribution sets: shape, padding, determinism, severity."""

import numpy as np
import pytest
import wfdb

import ecgquorum as eq
from ecgquorum.corruptions import CORRUPTIONS, OOD_SETS, SEVERITIES, build_corruption
from ecgquorum.recordings import STANDARD_LEADS

RATE_HZ = 250.0
BY_CLOCK = ("rate-error", "time-stretch")
"""Corruptions of the time axis: a ramp shows by how much they move a sample."""


@pytest.fixture(autouse=True, scope="module")
def recorded_noise(tmp_path_factory):
    """A stand-in for the recorded noise, in the layout of the download."""
    folder = tmp_path_factory.mktemp("nstdb")
    rng = np.random.default_rng(0)
    for record in ("bw", "em", "ma"):
        noise = np.cumsum(rng.normal(size=(7200, 2)), axis=0) * 0.01 + rng.normal(size=(7200, 2)) * 0.1
        wfdb.wrsamp(
            record,
            fs=360,
            units=["mV"] * 2,
            sig_name=["noise1", "noise2"],
            p_signal=noise,
            fmt=["16"] * 2,
            write_dir=str(folder),
        )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ECGQUORUM_NSTDB", str(folder))
        yield


@pytest.fixture(scope="module")
def recordings():
    return [eq.simulate("Normal", seed=seed, seconds=12, rate_hz=RATE_HZ).recording for seed in range(4)]


def generator(seed=0):
    return np.random.default_rng(seed)


def make(name, severity=3):
    return build_corruption(name, severity) if name in CORRUPTIONS else OOD_SETS.get(name)()


EVERY = [*CORRUPTIONS, *OOD_SETS]


@pytest.mark.parametrize("name", EVERY)
class TestEveryTransform:
    @pytest.mark.parametrize("severity", [1, 5])
    def test_shape_and_dtype_stay_and_samples_are_finite(self, name, severity, recordings):
        batch = np.stack([one.signal for one in recordings])
        changed = make(name, severity)(batch, RATE_HZ, generator=generator())
        assert changed.shape == batch.shape and changed.dtype == batch.dtype
        assert np.isfinite(changed).all() and not np.array_equal(changed, batch)

    def test_padding_is_untouched(self, name, recordings):
        valid = np.zeros((len(recordings), 1, recordings[0].n_samples), dtype=bool)
        valid[:, :, 300:-401] = True
        batch = np.stack([one.signal for one in recordings]) * valid
        changed = make(name)(batch, RATE_HZ, valid=valid, generator=generator())
        assert not changed[:, :, :300].any() and not changed[:, :, -401:].any()
        cut = np.ascontiguousarray(batch[:, :, 300:-401])
        np.testing.assert_allclose(changed[:, :, 300:-401], make(name)(cut, RATE_HZ, generator=generator()), atol=1e-5)

    def test_the_same_generator_gives_the_same_result_and_the_input_stays(self, name, recordings):
        before = recordings[0].signal.copy()
        once, again = (make(name)(recordings[0].signal, RATE_HZ, generator=generator(3)) for _ in range(2))
        np.testing.assert_array_equal(once, again)
        np.testing.assert_array_equal(recordings[0].signal, before)

    def test_a_recording_is_changed_as_its_array(self, name, recordings):
        one = recordings[1]
        changed = make(name)(one, generator=generator(1))
        assert (changed.rate_hz, changed.leads, changed.labels) == (one.rate_hz, one.leads, one.labels)
        array = make(name)(one.signal, one.rate_hz, leads=one.leads, generator=generator(1))
        there = np.isfinite(changed.signal)
        np.testing.assert_allclose(changed.signal[there], array[there], atol=1e-5)

    def test_a_single_lead_is_changed_or_refused_with_a_reason(self, name, recordings):
        transform, one = make(name), recordings[0].signal[0]
        if transform.applies_to(("ECG",)):
            assert transform(one, RATE_HZ, generator=generator()).shape == one.shape
        else:
            with pytest.raises(eq.EcgQuorumError, match="does not apply"):
                transform(one, RATE_HZ, generator=generator())


@pytest.mark.parametrize("name", list(CORRUPTIONS))
class TestEveryCorruption:
    def test_levels_have_a_unit(self, name):
        kind = CORRUPTIONS.get(name)
        assert len(kind.levels) in (1, len(SEVERITIES)) and kind.unit and kind.__doc__
        assert str(kind(severity=5)) == f"{kind.levels[-1]:g} {kind.unit}"

    def test_the_distance_from_the_original_grows_with_the_severity(self, name, recordings):
        if name in BY_CLOCK:
            signals = [np.tile(np.arange(3000) / RATE_HZ, (12, 1))]
        else:
            signals = [one.signal.astype(np.float64) for one in recordings]
        for seed, signal in enumerate(signals):
            distances = [
                np.sqrt(np.mean((make(name, s)(signal, RATE_HZ, generator=generator(seed)) - signal) ** 2))
                for s in SEVERITIES
            ]
            same = len(CORRUPTIONS.get(name).levels) == 1
            steps = np.diff(distances)
            assert (steps >= 0).all(), distances
            assert same or (distances[-1] > distances[0] and (steps > 0).sum() >= 3), distances


def test_twelve_leads_are_the_default_of_twelve_rows(recordings):
    one = recordings[0]
    np.testing.assert_array_equal(
        make("missing-leads")(one.signal, RATE_HZ), make("missing-leads")(one.signal, RATE_HZ, leads=STANDARD_LEADS)
    )
