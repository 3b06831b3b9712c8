"""Other groupings, threads and instruction sets give the same labels, and probabilities to the stated tolerance."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from ecgquorum import load_ensemble, simulate
from ecgquorum.ensemble.prediction import TOLERANCE
from ecgquorum.preprocessing import read_recordings
from ecgquorum.preprocessing.input_spec import pad_or_cut

NAMES = ["physionet2017", "cpsc2018"]
MAKE = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
import numpy as np
from ecgquorum import load_ensemble
from tests.ensemble.test_reproducibility import simulated
for name in {NAMES!r}:
    ensemble = load_ensemble(name)
    probs = [ensemble.predict(recording).member_probs for recording in simulated(ensemble)]
    np.save(sys.argv[1] + "/" + name + ".npy", np.concatenate(probs))
"""


def simulated(ensemble):
    """Recordings of several lengths, one of them longer than a window."""
    lengths = (7.0, 10.0, 10.0, 30.0, 61.0, 10.0)
    made = zip(lengths, ensemble.classes * 2, strict=False)
    return [simulate(label, seed=1, leads=ensemble.input.leads, seconds=s).recording for s, label in made]


def assert_same_answers(prediction, member_probs):
    """Probabilities to the tolerance, and the same label unless the two likeliest classes are as close as that."""
    np.testing.assert_allclose(member_probs, prediction.member_probs, rtol=0, atol=TOLERANCE)
    ordered = np.sort(prediction.raw_probs, axis=1)
    clear = ordered[:, -1] - ordered[:, -2] > 2 * TOLERANCE
    labels = member_probs.mean(axis=1).argmax(axis=1)
    np.testing.assert_array_equal(labels[clear], prediction.label_index[clear])


@pytest.fixture(scope="module")
def answers():
    """By name: the ensemble, recordings, and what it says of all of them at once."""
    found = {}
    for name in NAMES:
        ensemble = load_ensemble(name)
        recordings = simulated(ensemble)
        found[name] = ensemble, recordings, ensemble.predict(recordings)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_answers_do_not_depend_on_the_grouping(name, answers):
    ensemble, recordings, together = answers[name]
    for order in ([0, 1, 2, 3, 4, 5], [5, 3, 1, 4, 2, 0]):
        for size in (1, 2, 4):
            chosen = [order[start : start + size] for start in range(0, len(order), size)]
            found = np.empty_like(together.member_probs)
            for some in chosen:
                found[some] = ensemble.predict([recordings[i] for i in some]).member_probs
            assert_same_answers(together, found)


@pytest.mark.long
@pytest.mark.parametrize(
    "settings",
    [
        {"OMP_NUM_THREADS": "1", "ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2"},
        {"OMP_NUM_THREADS": "1", "ONEDNN_MAX_CPU_ISA": "SSE41", "ATEN_CPU_CAPABILITY": "default"},
    ],
    ids=["AVX2", "SSE4.1"],
)
def test_answers_do_not_depend_on_the_processor(settings, tmp_path, answers):
    """Other instruction sets stand for other processors."""
    subprocess.run([sys.executable, "-c", MAKE, str(tmp_path)], env=os.environ | settings, check=True)
    for name, (_, _, together) in answers.items():
        assert_same_answers(together, np.load(tmp_path / f"{name}.npy"))


@pytest.mark.parametrize("n_threads", [1, 3])
def test_answers_do_not_depend_on_the_threads(n_threads, answers, one_thread):
    torch.set_num_threads(n_threads)
    for ensemble, recordings, together in answers.values():
        alone = [ensemble.predict(recording).member_probs for recording in recordings]
        assert_same_answers(together, np.concatenate(alone))


@pytest.mark.parametrize("name", NAMES)
def test_float32_is_exact_enough(name, answers):
    """Against the same network in float64: what every processor's result is close to."""
    ensemble = load_ensemble(name)
    windows = [pad_or_cut(ensemble.input.fit(one), ensemble.input.n_window)[0] for one in answers[name][1]]
    signal = torch.from_numpy(np.stack(windows))
    with torch.no_grad():
        found = ensemble.eval().member_log_probs(signal).exp().numpy()
        exact = ensemble.double().member_log_probs(signal.double()).exp().numpy()
    np.testing.assert_allclose(found, exact, rtol=0, atol=TOLERANCE / 4)


def test_real_recordings_have_the_same_answers_one_by_one(real_data):
    ensemble = load_ensemble("physionet2017")
    outcomes = read_recordings([real_data / "physionet2017/training2017.zip"], sandbox=False)
    recordings = [outcome.recording for _, outcome in zip(range(40), outcomes, strict=False)]
    alone = np.concatenate([ensemble.predict(one).member_probs for one in recordings])
    assert_same_answers(ensemble.predict(recordings), alone)
