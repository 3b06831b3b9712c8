"""Ensembles of custom networks: predict on arrays, save, load."""

import sys

import numpy as np
import pytest
import torch
from torch import nn

import ecgquorum as eq
from ecgquorum.errors import BundleError, RecordingError

SPEC = eq.InputSpec(leads=("ECG",), rate_hz=100.0, window_s=4.0)


class Own(nn.Module):
    """Two convolutions; `size` is remembered by `config`."""

    def __init__(self, n_leads=1, n_classes=2, *, size=4):
        super().__init__()
        self.config = {"size": size}
        self.conv = nn.Conv1d(n_leads, size, 9, stride=4)
        self.head = nn.Linear(size, n_classes)

    def forward(self, x):
        return self.head(torch.relu(self.conv(x)).mean(dim=2))


@pytest.fixture
def ensemble():
    torch.manual_seed(0)
    members = [Own(size=4), eq.BandFilter([(0, 10)], rate_hz=100.0).then(Own(size=6))]
    return eq.Ensemble(members, classes=["N", "A"], input=SPEC)


def test_arrays_paths_and_recordings_give_the_same_prediction(ensemble, tmp_path):
    samples = np.random.default_rng(0).normal(size=(3, 1, 350)).astype(np.float32)
    many = ensemble.predict(samples, rate_hz=100.0)
    assert many.ids == ("0", "1", "2") and many.probs.shape == (3, 2)
    recordings = [eq.Recording(str(i), one, 100.0, ("ECG",)) for i, one in enumerate(samples)]
    np.testing.assert_allclose(ensemble.predict(recordings).probs, many.probs, atol=1e-6)
    np.testing.assert_allclose(ensemble.predict(iter(recordings)).probs, many.probs, atol=1e-6)
    np.testing.assert_allclose(ensemble.predict(samples[1, 0], rate_hz=100.0).probs[0], many.probs[1], atol=1e-6)
    np.testing.assert_allclose(ensemble.predict(samples[1].tolist(), rate_hz=100.0).probs[0], many.probs[1], atol=1e-6)
    in_microvolts = ensemble.predict(torch.from_numpy(samples) * 1000, rate_hz=100.0, units="uV")
    np.testing.assert_allclose(in_microvolts.probs, many.probs, atol=1e-5)
    paths = [eq.write(one, tmp_path / f"{one.id}.npz") for one in recordings]
    np.testing.assert_allclose(ensemble.predict(paths).probs, many.probs, atol=1e-6)
    np.testing.assert_allclose(ensemble.predict(str(paths[0])).probs[0], many.probs[0], atol=1e-6)
    assert ensemble.predict([]).probs.shape == (0, 2)


@pytest.mark.parametrize(
    ("samples", "options", "reason"),
    [
        (np.zeros(300), {}, "give rate_hz="),
        (np.zeros((2, 300)), {"rate_hz": 100.0}, "2 leads does not name them: give leads="),
        (np.zeros((2, 2, 2, 2)), {"rate_hz": 100.0}, "found the shape"),
        (np.zeros(300), {"rate_hz": 100.0, "units": "parsec"}, "expected a unit of voltage"),
    ],
)
def test_arrays_that_say_too_little_are_refused_with_what_to_do(ensemble, samples, options, reason):
    with pytest.raises(RecordingError, match=reason):
        ensemble.predict(samples, **options)


def test_custom_members_are_saved_and_loaded_by_their_class(ensemble, tmp_path):
    ensemble.temperature = 1.5
    folder = ensemble.save(tmp_path / "mine")
    with pytest.raises(BundleError, match="not built in; name their class: load_ensemble"):
        eq.load_ensemble(folder)
    again = eq.load_ensemble(folder, member=Own)
    samples = np.random.default_rng(0).normal(size=(3, 1, 350))
    np.testing.assert_allclose(
        again.predict(samples, rate_hz=100.0).probs, ensemble.predict(samples, rate_hz=100.0).probs, atol=1e-6
    )
    assert again.classes == ("N", "A") and again.input == SPEC and again.temperature == 1.5
    by_function = eq.load_ensemble(folder, member=lambda index: Own(size=(4, 6)[index]))
    assert all(torch.equal(a, b) for a, b in zip(by_function.parameters(), ensemble.parameters(), strict=True))


def test_loading_imports_nothing_that_was_not_named(ensemble, tmp_path, monkeypatch):
    (tmp_path / "trap.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(Own, "__module__", "trap")
    folder = ensemble.save(tmp_path / "mine")
    with pytest.raises(BundleError, match="trap:Own, which is not built in"):
        eq.load_ensemble(folder)
    assert "trap" not in sys.modules


def test_members_without_parameters_predict_on_the_cpu():
    class Sign(nn.Module):
        def forward(self, x):
            level = x.mean(dim=(1, 2))
            return torch.stack([level, -level], dim=1)

    ensemble = eq.Ensemble([Sign()], classes=["up", "down"], input=SPEC)
    assert ensemble.predict(np.ones(400), rate_hz=100.0).labels == ("up",)
