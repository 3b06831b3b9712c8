"""What users write: every call of the design's first section, on small data."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import ecgquorum as eq

RATE_HZ = 300.0
CLASSES = ["N", "A", "O", "~"]


class MyNet(nn.Module):
    """A custom network."""

    def __init__(self, n_leads=1, n_classes=4):
        super().__init__()
        self.conv = nn.Conv1d(n_leads, 12, 31, stride=8)
        self.norm = nn.BatchNorm1d(12)
        self.linear = nn.Linear(12, n_classes)

    def forward(self, x):
        return self.linear(torch.relu(self.norm(self.conv(x / 300))).mean(dim=2))


@pytest.fixture
def batch():
    generator = torch.Generator().manual_seed(0)
    return torch.randn(48, 1, 900, generator=generator) * 200, torch.arange(48) % 4


def test_use_what_ships(tmp_path):
    ensemble = eq.load_ensemble("physionet2017")
    recording = eq.simulate("A", seed=1, leads=("ECG",), rate_hz=RATE_HZ).recording
    path = eq.write(recording, tmp_path / "A00001.hea")
    prediction = ensemble.predict(path)
    assert prediction.labels[0] in CLASSES and prediction.probs.shape == (1, 4)
    assert 0 <= prediction.risk[0] <= 1
    assert ensemble.predict([path, path]).probs.shape == (2, 4)
    same = ensemble.predict(recording.signal, rate_hz=RATE_HZ, leads=("ECG",), units="mV")
    np.testing.assert_allclose(same.probs, prediction.probs, atol=1e-2)  # the file holds whole microvolts


@pytest.mark.parametrize("attack", [eq.attacks.PGD(epsilon=50.0), eq.attacks.SAP(epsilon=50.0)])
def test_attack_any_model(attack, batch):
    x, y = batch
    model = MyNet().eval()
    valid = torch.ones(48, 1, 900, dtype=torch.bool)
    valid[..., :100] = False
    x_adv = attack(model, x, y, valid=valid)
    assert torch.equal(x_adv[..., :100], x[..., :100]) and (x_adv - x).abs().max() <= 50 * (1 + 1e-5)
    with torch.no_grad():
        assert F.cross_entropy(model(x_adv), y) > F.cross_entropy(model(x), y)
    assert attack(model, x, y).shape == x.shape


def test_use_the_method_in_your_own_training_loop(batch):
    x, y = batch
    net, earlier = MyNet(), MyNet().eval()
    logits, features = eq.members.forward_with_features(net, x)
    with torch.no_grad():
        earlier_features = eq.members.embed(earlier, x)
    loss = F.cross_entropy(logits, y) + 0.2 * eq.losses.decorrelation(features, earlier_features)
    loss.backward()
    assert all(torch.isfinite(p.grad).all() for p in net.parameters())
    net2 = eq.BandFilter([(0, 15), (30, 45)], rate_hz=300).then(net)
    assert net2(x).shape == (48, 4)


def test_evaluate_your_own_models_on_arrays(batch, tmp_path):
    x, y = batch
    spec = eq.InputSpec(leads=("ECG",), rate_hz=300, window_s=3.0)
    ensemble = eq.Ensemble([MyNet(), MyNet(), MyNet()], classes=CLASSES, input=spec)
    card = eq.evaluate(ensemble, (x, y), attacks=[eq.attacks.PGD(10.0), eq.attacks.SAP(50.0)])
    table = str(card.table("accuracy"))
    assert "natural" in table and "PGD" in table.upper()
    assert card.plot().axes
    card.save(tmp_path / "scorecard.json")
    assert eq.Scorecard.load(tmp_path / "scorecard.json").rows


def test_train_your_own_network_with_any_strategy(tmp_path):
    simulations = [
        eq.simulate("NAO~"[i % 4], seed=i, seconds=3, leads=("ECG",), rate_hz=300).recording for i in range(48)
    ]
    x = np.stack([recording.signal for recording in simulations])
    cohort = eq.Cohort.from_arrays(x, np.arange(48) % 4, rate_hz=300, classes=CLASSES)
    strategy = eq.strategies.Decorrelation(weight=0.2) + eq.strategies.FourierPartition()
    options = eq.TrainingOptions(epochs=1, batch_size=36)
    ensemble = eq.train(MyNet, cohort, strategy=strategy, members=3, options=options)
    assert len(ensemble.members) == 3
    ensemble.save(tmp_path / "mine")
    again = eq.load_ensemble(tmp_path / "mine", member=MyNet)
    np.testing.assert_allclose(
        again.predict(x[0], rate_hz=300).probs, ensemble.predict(x[0], rate_hz=300).probs, atol=1e-6
    )
