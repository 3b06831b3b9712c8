"""The quality guard: sound recordings pass, each defect is named, and any recording can be assessed."""

import multiprocessing
import resource
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ecgquorum import Recording, simulate
from ecgquorum.preprocessing import InputSpec
from ecgquorum.preprocessing.quality import Severity, _longest_run, assess_quality
from ecgquorum.recordings import STANDARD_LEADS

RATE_HZ = 300.0


@pytest.fixture
def sound():
    return np.array(simulate("N", seed=3, leads=("ECG",), rate_hz=RATE_HZ, seconds=20).recording.signal)


def assess(signal, leads=("ECG",), rate_hz=RATE_HZ):
    return assess_quality(Recording("r", signal, rate_hz, leads))


@pytest.mark.parametrize("label", ["N", "A", "O"])
@pytest.mark.parametrize("seed", range(5))
def test_sound_recordings_pass(label, seed):
    quality = assess_quality(simulate(label, seed=seed, leads=("ECG",), seconds=20).recording)
    assert quality.severity is Severity.USABLE, quality.reasons


def flat(signal):
    signal[:, 1000:2000] = signal[:, 1000:1001]


def off(signal):
    signal[:] = 0.3


def missing(signal):
    signal[:, ::10] = np.nan


def mostly_missing(signal):
    signal[:, 1000:] = np.nan


def saturated(signal):
    np.clip(signal, -10, np.quantile(signal, 0.95), out=signal)


def microvolts(signal):
    signal *= 1000


def tiny(signal):
    signal *= 0.01


def mains(signal):
    signal += np.sin(2 * np.pi * 50 * np.arange(signal.shape[1]) / RATE_HZ) * 2


@pytest.mark.parametrize(
    ("spoil", "name", "severity"),
    [
        (flat, "flat line", Severity.DOUBTFUL),
        (off, "lead off", Severity.UNREADABLE),
        (missing, "missing samples", Severity.DOUBTFUL),
        (mostly_missing, "missing samples", Severity.UNREADABLE),
        (saturated, "saturation", Severity.DOUBTFUL),
        (microvolts, "implausible amplitude", Severity.DOUBTFUL),
        (tiny, "implausible amplitude", Severity.DOUBTFUL),
        (mains, "mains", Severity.DOUBTFUL),
    ],
)
def test_each_defect_is_named(sound, spoil, name, severity):
    spoil(sound)
    quality = assess(sound)
    assert name in {finding.name for finding in quality.findings}
    assert quality.severity is severity
    assert quality.reasons[0].startswith(f"{name} on ECG: ")


def test_wrong_units_are_detected(sound):
    (finding,) = assess(sound * 1000).findings
    assert "as if its samples were in uV" in finding.detail
    (finding,) = assess(sound / 1000).findings
    assert "as if its samples were in V" in finding.detail


def test_length(sound):
    assert assess(sound[:, :1200]).reasons == ("too short: 4.0 s, expected at least 5 s",)
    assert assess(sound[:, :450]).severity is Severity.UNREADABLE


def test_one_lead_of_twelve_that_is_off_makes_it_doubtful_and_all_unreadable():
    signal = np.array(simulate("Normal", seed=1, seconds=10).recording.signal)
    recording = Recording("r", signal, 500.0, STANDARD_LEADS)
    assert assess_quality(recording).severity is Severity.USABLE, assess_quality(recording).reasons
    signal[4] = 0
    quality = assess_quality(Recording("r", signal, 500.0, STANDARD_LEADS))
    assert (quality.severity, quality.findings[0].lead) == (Severity.DOUBTFUL, "aVL")
    assert assess_quality(Recording("r", signal * 0, 500.0, STANDARD_LEADS)).severity is Severity.UNREADABLE


def test_a_lead_that_is_mostly_missing_leaves_a_doubtful_recording_that_fits():
    signal = np.array(simulate("Normal", seed=1, seconds=10).recording.signal)
    signal[7, signal.shape[1] // 5 :] = np.nan
    recording = Recording("r", signal, 500.0, STANDARD_LEADS)
    assert not InputSpec(STANDARD_LEADS, 500.0, "microvolt", 10.0).fit(recording)[7].any()
    quality = assess_quality(recording)
    assert (quality.severity, quality.reasons) == (
        Severity.DOUBTFUL,
        ("missing samples on V2: 80% of them; set to zero",),
    )


def test_swapped_arm_leads_are_reported():
    signal = np.array(simulate("Normal", seed=1, seconds=10).recording.signal)
    one, two, three, right, left, foot = signal[:6]
    signal[:6] = np.stack([-one, three, two, left, right, foot])
    quality = assess_quality(Recording("r", signal, 500.0, STANDARD_LEADS))
    assert [(f.name, f.lead) for f in quality.findings] == [("inverted lead", "I")]


@given(
    arrays(np.float32, st.tuples(st.integers(1, 3), st.integers(1, 200)), elements=st.floats(width=32)),
    st.sampled_from([25.0, 300.0, 99999.0]),
)
def test_any_recording_can_be_assessed(signal, rate_hz):
    quality = assess(signal, ("I", "II", "V6")[: len(signal)], rate_hz)
    assert quality.severity in Severity
    assert all("\n" not in reason for reason in quality.reasons)


def assess_a_day(connection):
    """20 million samples of a sound lead, a flat line across what is looked at piece by piece, in 16 bytes a sample."""
    beats = simulate("N", seed=3, leads=("ECG",), rate_hz=250.0, seconds=100).recording.signal
    signal = np.tile(beats, 800)
    signal[:, (1 << 18) - 2000 : (1 << 18) + 2000] = 0.3
    signal[:, 100] = np.nan
    recording = Recording("day", signal, 250.0, ("ECG",))
    assess(beats)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 16 * signal.size,) * 2)
    connection.send(assess_quality(recording).reasons)


@pytest.mark.slow
def test_a_day_is_assessed_within_16_bytes_a_sample():
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=assess_a_day, args=(theirs,))
    process.start()
    theirs.close()
    assert ours.recv() == ("flat line on ECG: for 16.0 s",)
    process.join()


@pytest.mark.parametrize("n_pieces", [1, 3, 7, 50])
def test_flat_runs_continue_across_pieces(n_pieces):
    rng = np.random.default_rng(n_pieces)
    for share in (0.0, 0.3, 0.9, 1.0):
        flags = rng.random(50) < share
        words = "".join("x" if flag else " " for flag in flags).split()
        assert _longest_run(np.array_split(flags, n_pieces)) == max(map(len, words), default=0)


def test_a_short_gap_in_a_long_recording_is_doubtful():
    signal = np.tile(simulate("N", seed=1, leads=("II",), seconds=10).recording.signal, (1, 30))
    rate_hz = signal.shape[1] / 300
    for seconds, reasons in ((1.5, ()), (3.0, ("missing samples on II: for 3.0 s",))):
        cut = signal.copy()
        cut[:, 1000 : 1000 + round(seconds * rate_hz)] = np.nan
        assert assess_quality(Recording("long", cut, rate_hz, ("II",))).reasons == reasons
