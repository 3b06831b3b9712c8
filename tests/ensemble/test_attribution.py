"""Attribution maps of members for which the result is known."""

import numpy as np
import pytest
import torch
from torch import nn

from ecgquorum import Ensemble, Recording, simulate
from ecgquorum.ensemble.attribution import STRETCH_S, attribute, class_gradients
from ecgquorum.ensemble.prediction import TOLERANCE
from ecgquorum.errors import FittingError
from ecgquorum.members import BandFilter, CompactMember
from ecgquorum.preprocessing import InputSpec

RATE = 100.0
CLASSES = ("a", "b", "c")


class Linear(nn.Module):
    """logits = W x, over a whole window."""

    def __init__(self, weight):
        super().__init__()
        self.weight = nn.Parameter(torch.as_tensor(weight, dtype=torch.float32))  # (class, lead, time)

    def forward(self, x):
        return torch.einsum("clt,blt->bc", self.weight, x)


class SegmentMember(nn.Module):
    """A member whose class depends on one segment of one lead only."""

    def __init__(self, lead, first, last):
        super().__init__()
        self.where = lead, slice(first, last)
        self.scale = nn.Parameter(torch.tensor(1e-5))

    def forward(self, x):
        lead, span = self.where
        mean_square = self.scale * x[:, lead, span].square().mean(dim=1)
        return torch.stack([torch.zeros_like(mean_square), mean_square, torch.zeros_like(mean_square)], dim=1)


def ensemble_of(*members, leads=("ECG",), window_s=4.0):
    return Ensemble(members, CLASSES, InputSpec(leads, RATE, "microvolt", window_s))


def noise(n_leads, seconds, rate_hz=RATE, seed=0):
    rng = np.random.default_rng(seed)
    leads = ("ECG",) if n_leads == 1 else ("I", "II", "V1")[:n_leads]
    return Recording("noise", rng.normal(size=(n_leads, round(seconds * rate_hz))), rate_hz, leads)


def linear(seed, n_leads, n_samples, size=1e-4):
    return np.random.default_rng(seed).normal(size=(3, n_leads, n_samples)) * size


def softmax(logits):
    shares = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return shares / shares.sum(axis=-1, keepdims=True)


def test_the_gradient_map_of_a_linear_member_is_known():
    weights = [linear(seed, 2, 400) for seed in (1, 2)]
    recording = noise(2, 4.0)
    maps = attribute(ensemble_of(*map(Linear, weights), leads=("I", "II")), recording)
    x = recording.signal.astype(float) * 1000
    bell = np.hanning(round(STRETCH_S * RATE) + 3)[1:-1]
    for k, weight in enumerate(weights):
        probs = softmax(np.einsum("clt,lt->c", weight, x))
        own = int(probs.argmax())
        slope = weight[own] - np.einsum("c,clt->lt", probs, weight)
        size = np.abs(slope * (x - np.median(x, axis=1, keepdims=True)))
        expected = np.stack([np.convolve(row, bell / bell.sum(), mode="same") for row in size])
        np.testing.assert_allclose(maps.values[k], expected / expected.max(), atol=1e-4)
        np.testing.assert_allclose(maps.strongest[k], expected.max(), rtol=1e-3)
        assert maps.classes[k] == CLASSES[own]
    assert maps.values.min() >= 0 and (maps.values.max(axis=(1, 2)) == 1).all()
    assert "gradient" in maps.description and maps.leads == ("I", "II")


def test_over_windows_it_is_the_gradient_of_the_mean_probability():
    weight = linear(3, 1, 200, 2e-4)
    ensemble = ensemble_of(Linear(weight), window_s=2.0)
    x = noise(1, 5.0).signal * 1000
    found = class_gradients(ensemble, x, np.array([1]))[0, 0]
    expected, total = np.zeros(500), 0.0
    for start in (0, 150, 300):
        probs = softmax(np.einsum("clt,lt->c", weight, x[:, start : start + 200].astype(float)))
        slope = weight[1, 0] - np.einsum("c,ct->t", probs, weight[:, 0])
        expected[start : start + 200] += probs[1] * slope
        total += probs[1]
    np.testing.assert_allclose(found, expected / total, atol=1e-3 * np.abs(expected / total).max())
    some = class_gradients(ensemble, x, np.array([1]), slice(320, 340))[0, 0]
    np.testing.assert_allclose(some[320:340], found[320:340], atol=1e-4 * np.abs(found).max())


def test_a_certain_member_has_a_gradient():
    weight = linear(4, 1, 400, 1e-2)
    recording = noise(1, 4.0)
    maps = attribute(ensemble_of(Linear(weight)), recording)
    assert maps.prediction.probs.max() > 1 - 1e-9 and maps.values.max() == 1


def test_the_gradient_of_a_filtered_member_is_inside_its_bands():
    torch.manual_seed(0)
    member = BandFilter([(5.0, 15.0)], RATE).then(CompactMember(1, 3, RATE, width=0.125))
    ensemble = ensemble_of(member)
    power = np.abs(np.fft.rfft(class_gradients(ensemble, noise(1, 4.0).signal * 1000, np.array([0]))[0, 0]))
    hertz = np.fft.rfftfreq(400, 1 / RATE)
    inside = (hertz >= 5) & (hertz < 15)
    assert power[inside].max() > 0
    assert power[~inside].max() < 1e-5 * power[inside].max()


@pytest.mark.parametrize("rate_hz", [RATE, 360.0, 50.0])
def test_occlusion_finds_the_segment_that_a_member_depends_on(rate_hz):
    recording = noise(2, 4.0, rate_hz)
    ensemble = ensemble_of(SegmentMember(1, 220, 260), SegmentMember(0, 0, 30), leads=("I", "II"))
    maps = attribute(ensemble, recording, "occlusion")
    assert maps.values.shape == (2, 2, recording.n_samples)
    time = np.arange(recording.n_samples) / rate_hz
    margin = STRETCH_S + 1 / rate_hz
    for k, lead, first, last in ((0, 1, 2.2, 2.6), (1, 0, 0.0, 0.3)):
        assert maps.classes[k] == "b"
        assert maps.values[k, 1 - lead].max() < 1e-6
        near = (time > first - margin) & (time < last + margin)
        assert maps.values[k, lead, ~near].max() < 1e-6
        assert maps.values[k, lead, near].max() == pytest.approx(1)
    assert 0 < maps.strongest.max() <= 1


@pytest.mark.parametrize("how", ["gradient", "occlusion"])
def test_a_span_of_a_long_recording_is_attributed(how):
    """A member that reacts to large samples only, and a long recording with large samples in one window."""
    signal = np.full((1, 1700), 0.01)
    signal[0, 1000:1030] = 3 * np.random.default_rng(0).normal(size=30)
    recording = Recording("long", signal, RATE, ("ECG",))
    ensemble = ensemble_of(SegmentMember(0, 0, 400))
    whole = attribute(ensemble, recording, how)
    assert 1000 <= whole.values[0, 0].argmax() < 1030
    part = attribute(ensemble, recording, how, span_s=(9.0, 12.0))
    asked = ~np.isnan(part.values[0, 0])
    assert asked[900:1201].all() and asked.sum() == 301
    np.testing.assert_allclose(part.values[0, 0, asked], whole.values[0, 0, asked], atol=1e-4)
    np.testing.assert_allclose(part.prediction.probs, whole.prediction.probs, atol=TOLERANCE)
    with pytest.raises(FittingError, match="inside its 17 s, found 20 to 30 s"):
        attribute(ensemble, recording, how, span_s=(20.0, 30.0))


@pytest.mark.parametrize("how", ["gradient", "occlusion"])
def test_leads_are_chosen_and_derived(how):
    recording = noise(2, 3.0)
    maps = attribute(ensemble_of(SegmentMember(0, 150, 190), leads=("III",)), recording, how)
    assert maps.leads == ("III",) and maps.values.shape == (1, 1, 300)
    maps = attribute(ensemble_of(SegmentMember(0, 150, 190)), recording, how, lead="II")
    assert maps.leads == ("II",)
    assert 90 <= maps.values[0, 0].argmax() < 150  # half a second of padding comes before it
    with pytest.raises(FittingError, match="choose one with --lead II"):
        attribute(ensemble_of(SegmentMember(0, 150, 190)), recording, how)


def test_a_recording_shorter_than_an_occlusion_has_a_zero_map():
    short = Recording("short", np.full((1, 7), 0.5), RATE, ("ECG",))
    for how in ("gradient", "occlusion"):
        maps = attribute(ensemble_of(SegmentMember(0, 0, 3)), short, how)
        assert maps.strongest[0] == 0 and not maps.values.any()


def test_the_model_is_left_as_it_was(tiny_ensemble):
    tiny_ensemble.train()
    wanted = [parameter.requires_grad for parameter in tiny_ensemble.parameters()]
    recording = simulate("A", seed=1, seconds=5, leads=("ECG",)).recording
    seen = []

    class Seen:
        def update(self, text, done, total):
            seen.append((done, total))

        def log(self, line):
            seen.append(line)

    for how in ("gradient", "occlusion"):
        maps = attribute(tiny_ensemble, recording, how, progress=Seen())
        np.testing.assert_allclose(maps.prediction.probs, tiny_ensemble.predict(recording).probs, atol=TOLERANCE)
    assert tiny_ensemble.training
    assert [parameter.requires_grad for parameter in tiny_ensemble.parameters()] == wanted
    assert seen[-1] == (51, 51)
