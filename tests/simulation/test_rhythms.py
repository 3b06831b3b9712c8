"""Intervals and patterns of simulated recordings, measured on the signal."""

import numpy as np
import pytest
import wfdb.processing

from ecgquorum import simulate
from ecgquorum.errors import RecordingError
from ecgquorum.recordings import STANDARD_LEADS
from ecgquorum.simulation import LABELS

RATE_HZ = 1000.0
SEEDS = range(8)


def beat(label, seed):
    """One clean beat, averaged: (lead, time) in millivolts and the time of each sample from the R peak, in seconds."""
    made = simulate(label, seed=seed, noise=0, rate_hz=RATE_HZ, seconds=20)
    rr = np.median(np.diff(made.beat_times_s))
    signal, before, after = made.recording.signal, int((rr - 0.37) * RATE_HZ), int(0.42 * RATE_HZ)
    peaks = [int(t * RATE_HZ) for t in made.beat_times_s[1:-1]]
    inside = [p for p in peaks if before <= p < signal.shape[1] - after]
    return np.mean([signal[:, p - before : p + after] for p in inside], axis=0), np.arange(-before, after) / RATE_HZ


def lead(average, name):
    return average[STANDARD_LEADS.index(name)]


def hump(strength, start, threshold):
    """First and last index of the stretch around `start` on which `strength` stays above the threshold."""
    first = last = start
    while first > 0 and strength[first - 1] > threshold:
        first -= 1
    while last < len(strength) - 1 and strength[last + 1] > threshold:
        last += 1
    return first, last


def intervals(label, seed):
    """PR interval and QRS duration in seconds, from the root mean square over leads, at 5 % of each wave's peak."""
    average, time_s = beat(label, seed)
    strength = np.sqrt((average**2).mean(axis=0))
    near = np.flatnonzero(np.abs(time_s) < 0.02)
    peak = near[strength[near].argmax()]
    first, last = hump(strength, peak, 0.05 * strength[peak])
    quiet = first - 15  # the foot of the QRS complex ends before this
    p_end = quiet
    while strength[p_end] < 0.01:
        p_end -= 1
    p_peak = p_end - 100 + strength[p_end - 100 : p_end].argmax()
    p_onset = hump(strength, p_peak, 0.05 * strength[p_peak])[0]
    return time_s[first] - time_s[p_onset], time_s[last] - time_s[first]


@pytest.mark.parametrize("label", LABELS)
def test_the_same_seed_gives_the_same_samples_and_another_seed_others(label):
    once, again, other = (simulate(label, seed=s, seconds=5).recording.signal for s in (1, 1, 2))
    np.testing.assert_array_equal(once, again)
    assert not np.array_equal(once, other)
    assert np.isfinite(once).all()


@pytest.mark.parametrize("label", ["N", "Normal"])
def test_a_beat_detector_finds_the_true_beats(label):
    found = true = hits = 0
    for seed in range(6):
        made = simulate(label, seed=seed, seconds=30, rate_hz=300, noise=0)
        detected = wfdb.processing.xqrs_detect(made.recording.signal[1].astype(float), fs=300, verbose=False) / 300
        hits += sum(np.abs(detected - t).min() < 0.1 for t in made.beat_times_s)
        found, true = found + len(detected), true + len(made.beat_times_s)
    assert hits / true >= 0.98
    assert hits / found >= 0.98


@pytest.mark.parametrize("seed", SEEDS)
def test_normal_intervals_are_normal(seed):
    pr_s, qrs_s = intervals("Normal", seed)
    assert 0.11 < pr_s <= 0.20
    assert 0.07 < qrs_s < 0.115


@pytest.mark.parametrize("seed", SEEDS)
def test_first_degree_block_has_a_long_pr_interval_and_a_narrow_qrs(seed):
    pr_s, qrs_s = intervals("I-AVB", seed)
    assert pr_s > 0.20
    assert qrs_s < 0.115


@pytest.mark.parametrize("label", ["LBBB", "RBBB"])
@pytest.mark.parametrize("seed", SEEDS)
def test_bundle_branch_blocks_have_a_broad_qrs(label, seed):
    assert 0.12 < intervals(label, seed)[1] < 0.20


@pytest.mark.parametrize("seed", SEEDS)
def test_left_bundle_branch_block_has_its_pattern(seed):
    average, time_s = beat("LBBB", seed)
    qrs = np.abs(time_s) < 0.1
    assert lead(average, "V1")[qrs].min() < -0.4 and lead(average, "V1")[qrs].max() < 0.1  # QS or rS
    assert lead(average, "V6")[qrs].max() > 0.4 and lead(average, "V6")[qrs].min() > -0.1  # no q, no S
    assert lead(average, "I")[qrs].min() > -0.1
    repolarisation = (time_s > 0.2) & (time_s < 0.42)
    assert lead(average, "V6")[repolarisation].mean() < 0 < lead(average, "V1")[repolarisation].mean()


@pytest.mark.parametrize("seed", SEEDS)
def test_right_bundle_block_has_a_second_r_in_v1_and_a_broad_s_in_v6(seed):
    average, time_s = beat("RBBB", seed)
    late = (time_s > 0.035) & (time_s < 0.12)
    v1, v6, one = lead(average, "V1"), lead(average, "V6"), lead(average, "I")
    assert v1[late].max() > 0.3
    assert v1[np.abs(time_s) < 0.015].min() < v1[late].max() - 0.4  # the S between r and R'
    assert v6[late].min() < -0.15 and one[late].min() < -0.1
    assert v6[np.abs(time_s) < 0.02].max() > 0.4


def st_level(label, seed):
    """Millivolts 60 ms after the end of the QRS complex, from the level before it, on every lead."""
    average, time_s = beat(label, seed)
    before = average[:, (time_s > -0.055) & (time_s < -0.05)].mean(axis=1)
    return average[:, (time_s > 0.10) & (time_s < 0.12)].mean(axis=1) - before


@pytest.mark.parametrize("seed", SEEDS)
def test_st_shifts_are_where_they_should_be(seed):
    assert np.abs(st_level("Normal", seed)).max() < 0.06
    depressed = dict(zip(STANDARD_LEADS, st_level("STD", seed), strict=True))
    assert depressed["V5"] < -0.1 and depressed["II"] < -0.08
    elevated = st_level("STE", seed)
    assert np.sort(elevated)[-2] > 0.1  # two leads at least


@pytest.mark.parametrize("seed", SEEDS)
def test_fibrillation_is_irregular_and_has_no_p_wave(seed):
    af, sinus = (simulate(label, seed=seed, seconds=60, noise=0) for label in ("AF", "Normal"))
    spread = [np.std(np.diff(s.beat_times_s)) / np.mean(np.diff(s.beat_times_s)) for s in (af, sinus)]
    assert spread[0] > 0.1 and spread[0] > spread[1]

    # before the QRS, sinus beats repeat (the P wave); fibrillatory waves do not
    def repeats(made):
        first = made.recording.signal[1]
        cuts = [first[int(t * 300) - 66 : int(t * 300) - 18] for t in made.beat_times_s if t > 0.3]
        return np.var(np.mean(cuts, axis=0)) / np.mean(np.var(cuts, axis=1))

    assert repeats(sinus) > 0.8 > 0.4 > repeats(af)


@pytest.mark.parametrize("seed", SEEDS)
def test_premature_beats_are_premature(seed):
    for label, kind in (("PAC", "S"), ("PVC", "V")):
        made = simulate(label, seed=seed, seconds=30, noise=0)
        assert kind in made.beat_kinds
        rr = np.diff(made.beat_times_s)
        early = [rr[i - 1] for i, k in enumerate(made.beat_kinds) if k == kind and i > 0]
        assert np.mean(early) < 0.85 * np.median(rr)


def test_limb_leads_obey_einthoven():
    for label in LABELS[4:]:
        one, two, three, right, left, foot = simulate(label, seed=0, noise=0).recording.signal[:6]
        np.testing.assert_allclose(three, two - one, atol=1e-5)
        np.testing.assert_allclose(right + left + foot, 0, atol=1e-5)


def test_unknown_classes_and_leads_are_refused():
    with pytest.raises(RecordingError, match="found 'XYZ'"):
        simulate("XYZ", seed=0)
    with pytest.raises(RecordingError, match="V9"):
        simulate("N", seed=0, leads=("V9",))
