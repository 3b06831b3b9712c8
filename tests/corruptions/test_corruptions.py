"""Corruptions do what their levels say."""

import sys
import types

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ecgquorum as eq
from ecgquorum import corruptions
from ecgquorum.corruptions import CORRUPTIONS, SNR_DB, Corruption, build_corruption, expand_severities, list_corruptions
from ecgquorum.corruptions.additive_noise import AdditiveNoise, electrode_mixing
from ecgquorum.corruptions.nstdb import RecordedNoise
from ecgquorum.corruptions.stretches import cover_share, hold_values
from ecgquorum.errors import CorruptionError, RegistryError
from ecgquorum.recordings import STANDARD_LEADS

RATE_HZ = 300.0
NOISES = [
    name
    for name in CORRUPTIONS
    if issubclass(CORRUPTIONS.get(name), AdditiveNoise) and not issubclass(CORRUPTIONS.get(name), RecordedNoise)
]


@pytest.fixture(scope="module")
def recording():
    return eq.simulate("Normal", seed=1, seconds=10, rate_hz=RATE_HZ).recording


def generator(seed=0):
    return np.random.default_rng(seed)


@pytest.mark.parametrize("name", NOISES)
@pytest.mark.parametrize("severity", [1, 3, 5])
def test_noise_has_the_signal_to_noise_ratio_of_its_level(name, severity, recording):
    signal = recording.signal.astype(np.float64)
    noise = build_corruption(name, severity)(signal, RATE_HZ, generator=generator()) - signal
    assert 10 * np.log10(signal.var(axis=1).mean() / (noise**2).mean()) == pytest.approx(SNR_DB[severity - 1])


@pytest.mark.parametrize("name", [*NOISES, "motion-bursts"])
def test_noise_of_electrodes_obeys_einthoven(name, recording):
    signal = recording.signal.astype(np.float64)
    noise = build_corruption(name, 3)(signal, RATE_HZ, generator=generator()) - signal
    one, two, three, right, left, foot = noise[:6]
    np.testing.assert_allclose(two - one, three, atol=1e-9)
    np.testing.assert_allclose(right + left + foot, 0, atol=1e-9)


def test_electrodes_of_unknown_leads_are_their_own():
    np.testing.assert_array_equal(electrode_mixing(("X", "Y")), np.eye(2))


def test_mains_has_its_power_at_the_mains_frequency_and_odd_harmonics(recording):
    signal = recording.signal[:1].astype(np.float64)
    for mains_hz in (50.0, 60.0):
        hum = corruptions.Mains(severity=3, mains_hz=mains_hz)(signal, RATE_HZ, leads=("I",)) - signal
        power = np.abs(np.fft.rfft(hum[0])) ** 2
        hertz = np.fft.rfftfreq(hum.shape[1], 1 / RATE_HZ)
        shares = [power[np.abs(hertz - f) < 1].sum() / power.sum() for f in (mains_hz, 2 * mains_hz)]
        assert shares[0] > 0.85 and 0.001 < shares[1] < 0.05


@given(st.floats(0.01, 0.9), st.floats(0.01, 0.9), st.integers(0, 100))
def test_stretches_cover_their_share_and_contain_smaller_ones(one, other, seed):
    small, large = (cover_share(generator(seed), 1000, 100.0, (0.1, 0.5), share) for share in sorted((one, other)))
    assert abs(small.mean() - min(one, other)) <= 0.001 and (large | ~small).all()


def test_a_lost_contact_holds_the_last_value():
    signal = np.arange(6.0)[None]
    lost = np.array([True, False, True, True, False, True])
    np.testing.assert_array_equal(hold_values(signal, lost), [[1, 1, 1, 1, 4, 4]])
    np.testing.assert_array_equal(hold_values(signal, np.ones(6, bool)), np.zeros((1, 6)))


def test_a_lead_that_is_off_is_constant_for_its_share(recording):
    off = corruptions.LeadOff(severity=4)(recording, generator=generator()).signal[0]
    assert (np.diff(off) == 0).mean() == pytest.approx(0.4, abs=0.02)


def test_quantised_samples_are_steps_apart_and_never_zero(recording):
    found = corruptions.Quantisation(severity=3)(recording).signal.astype(np.float64)
    steps = found / 0.1 - 0.5
    np.testing.assert_allclose(steps, steps.round(), atol=1e-4)
    assert np.abs(found - recording.signal).max() <= 0.05 + 1e-6 and (found != 0).all()


def test_clipping_leaves_the_level_of_the_peak(recording):
    lead = recording.signal[1].astype(np.float64)
    found = corruptions.Clipping(severity=3)(lead, RATE_HZ)
    distance = np.abs(lead - np.median(lead))
    assert np.abs(found - np.median(lead)).max() == pytest.approx(0.4 * np.percentile(distance, 99.5))


def test_missing_samples_are_missing_in_a_recording_and_interpolated_in_an_array(recording):
    lost = corruptions.MissingSamples(severity=4)(recording, generator=generator(2))
    assert np.isnan(lost.signal).mean() == pytest.approx(0.2, abs=0.001)
    filled = corruptions.MissingSamples(severity=4)(recording.signal, RATE_HZ, generator=generator(2))
    spec = eq.InputSpec(STANDARD_LEADS, RATE_HZ, "none")
    np.testing.assert_allclose(filled, spec.fit(lost), atol=1e-6)


def test_gaps_of_a_recording_stay(recording):
    signal = recording.signal.copy()
    signal[:, 100:150] = np.nan
    changed = corruptions.Muscle()(eq.Recording("gaps", signal, RATE_HZ, STANDARD_LEADS))
    assert np.isnan(changed.signal[:, 100:150]).all() and np.isfinite(changed.signal[:, 150:]).all()


def test_gaps_of_an_array_are_filled_before_it_is_corrupted(recording):
    gaps = recording.signal.astype(np.float64)
    gaps[:, 100:150] = np.nan
    whole = eq.InputSpec(STANDARD_LEADS, RATE_HZ, "none").fit(eq.Recording("gaps", gaps, RATE_HZ, STANDARD_LEADS))
    for name in ("muscle", "clipping", "rate-error"):
        found, expected = (build_corruption(name, 3)(one, RATE_HZ, generator=generator()) for one in (gaps, whole))
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_an_amplitude_error_multiplies_or_divides(recording):
    factors = {
        round(
            float(
                (
                    corruptions.AmplitudeError(severity=5)(recording, generator=generator(s)).signal / recording.signal
                ).mean()
            ),
            3,
        )
        for s in range(8)
    }
    assert factors == {5.0, 0.2}


def test_a_rate_error_moves_the_heart_rate(recording):
    """A sine of 1 Hz is read 1.5 times too fast or too slow."""
    sine = np.sin(2 * np.pi * np.arange(3000) / RATE_HZ)
    peaks = set()
    for seed in range(8):
        found = corruptions.RateError(severity=5)(sine, RATE_HZ, generator=generator(seed))[:2000]
        peaks.add(round(float(np.fft.rfftfreq(20000, 1 / RATE_HZ)[np.abs(np.fft.rfft(found, 20000)).argmax()]), 1))
    assert peaks == {1.5, 0.7}


def test_reversals_follow_from_the_potentials_of_the_electrodes():
    rng = generator()
    right, left, foot = rng.normal(size=(3, 50))

    def leads(right, left, foot):
        one, two, three = left - right, foot - right, foot - left
        return np.stack([one, two, three, -(one + two) / 2, (one - three) / 2, (two + three) / 2, *np.zeros((6, 50))])

    signal = leads(right, left, foot)
    for kind, swapped in (
        (corruptions.RightLeftArmReversal, leads(left, right, foot)),
        (corruptions.RightArmLegReversal, leads(foot, left, right)),
        (corruptions.LeftArmLegReversal, leads(right, foot, left)),
    ):
        np.testing.assert_allclose(kind()(signal, RATE_HZ), swapped, atol=1e-12)
        np.testing.assert_allclose(kind()(kind()(signal, RATE_HZ), RATE_HZ), signal)


def test_missing_limb_leads_are_derived_and_chest_leads_become_zero():
    recording = eq.simulate("Normal", seed=1, seconds=5, rate_hz=RATE_HZ, noise=0).recording
    for seed in range(5):
        lost = corruptions.MissingLeads(severity=1)(recording, generator=generator(seed))
        (row,) = np.flatnonzero(np.isnan(lost.signal).all(axis=1))
        found = corruptions.MissingLeads(severity=1)(recording.signal, RATE_HZ, generator=generator(seed))[row]
        if row >= 6:
            assert not found.any()
        else:
            np.testing.assert_allclose(found, recording.signal[row], atol=1e-5)


def test_what_all_stands_for_depends_on_the_leads_alone():
    one, twelve = list_corruptions(("ECG",)), list_corruptions(STANDARD_LEADS)
    assert set(twelve) - set(one) == {
        "reversal-ra-la",
        "reversal-ra-ll",
        "reversal-la-ll",
        "precordial-swap",
        "missing-leads",
    }
    assert not [name for name in twelve if name.endswith("-nstdb")]


def test_a_corruption_without_severities_is_made_once():
    assert [one.severity for one in expand_severities("reversal-ra-la", (3, 5))] == [1]
    assert [one.severity for one in expand_severities("muscle", (5, 1, 1))] == [1, 5]


class Upside(Corruption):
    """A corruption of another package."""

    levels = (1.0,)
    unit = "flip"

    def change(self, signal, rate_hz, leads, rng):
        return -signal


def test_corruptions_of_other_packages_are_found_by_import_path(monkeypatch):
    module = types.ModuleType("another_package")
    module.Upside, module.NoCorruption = Upside, dict
    monkeypatch.setitem(sys.modules, "another_package", module)
    np.testing.assert_array_equal(build_corruption("another_package:Upside", 2)(np.ones(9), 100.0), -np.ones(9))
    with pytest.raises(CorruptionError, match="is not a Corruption"):
        build_corruption("another_package:NoCorruption", 2)


def test_wrong_use_is_refused_with_a_reason(monkeypatch, tmp_path):
    with pytest.raises(CorruptionError, match="severity from 1 to 5, found 6"):
        corruptions.Muscle(severity=6)
    with pytest.raises(CorruptionError, match="severity from 1 to 5, found 2.5"):
        corruptions.Muscle(severity=2.5)
    with pytest.raises(RegistryError, match="known: baseline-wander"):
        build_corruption("musle", 1)
    with pytest.raises(CorruptionError, match="unknown option folder; known: mains_hz"):
        build_corruption("mains", 1, {"folder": "x"})
    with pytest.raises(CorruptionError, match="rate_hz"):
        corruptions.Muscle()(np.zeros(10))
    with pytest.raises(CorruptionError, match=r"found \(1, 1, 1, 5\)"):
        corruptions.Muscle()(np.zeros((1, 1, 1, 5)), 100.0)
    monkeypatch.setenv("ECGQUORUM_NSTDB", str(tmp_path))
    with pytest.raises(CorruptionError, match="ecgquorum cohort fetch nstdb"):
        build_corruption("muscle-nstdb", 1)(np.zeros(100), 100.0)
