"""A program of somebody else that uses the public names; `mypy --strict` checks it against the installed package."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import ecgquorum as eq

CLASSES = ["N", "A", "O", "~"]


class MyNet(nn.Module):
    def __init__(self, n_leads: int = 1, n_classes: int = 4) -> None:
        super().__init__()
        self.conv = nn.Conv1d(n_leads, 8, 31, stride=8)
        self.linear = nn.Linear(8, n_classes)

    def forward(self, x: Tensor) -> Tensor:
        features: Tensor = torch.relu(self.conv(x / 300)).mean(dim=2)
        logits: Tensor = self.linear(features)
        return logits


def use_what_ships(path: Path) -> tuple[list[str], float]:
    ensemble = eq.load_ensemble("physionet2017")
    prediction = ensemble.predict(path)
    several = ensemble.predict([path, path])
    from_array = ensemble.predict(np.zeros((1, 3000), np.float32), rate_hz=300, leads=("ECG",), units="mV")
    results: Sequence[eq.Result] = prediction.results()
    shape: tuple[int, ...] = several.probs.shape + from_array.probs.shape
    assert shape and results
    risk: float = float(prediction.risk[0])
    return list(prediction.labels), risk


def attack_any_model(model: nn.Module, x: Tensor, y: Tensor, mask: Tensor) -> Tensor:
    x_adv: Tensor = eq.attacks.PGD(epsilon=50.0)(model, x, y)
    return eq.attacks.SAP(epsilon=50.0)(model, x_adv, y, valid=mask)


def use_the_method(net: nn.Module, earlier: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    logits, features = eq.members.forward_with_features(net, x)
    loss: Tensor = F.cross_entropy(logits, y) + 0.2 * eq.losses.decorrelation(features, eq.members.embed(earlier, x))
    net2: nn.Module = eq.BandFilter([(0, 15), (30, 45)], rate_hz=300).then(net)
    return loss + F.cross_entropy(net2(x), y)


def evaluate_own_models(x: Tensor, y: Tensor, out: Path) -> eq.Scorecard:
    spec = eq.InputSpec(leads=("ECG",), rate_hz=300)
    ensemble = eq.Ensemble([MyNet(), MyNet(), MyNet()], classes=CLASSES, input=spec)
    card = eq.evaluate(ensemble, (x, y), attacks=[eq.attacks.PGD(10.0), eq.attacks.SAP(50.0)])
    print(card.table("accuracy"))
    card.plot()
    card.save(out / "scorecard.json")
    return eq.Scorecard.load(out / "scorecard.json")


def train_own_network(cohort: eq.Cohort, out: Path) -> eq.Ensemble:
    strategy = eq.strategies.Decorrelation(weight=0.2) + eq.strategies.FourierPartition()
    ensemble = eq.train(MyNet, cohort, strategy=strategy, members=3, options=eq.TrainingOptions(epochs=1))
    ensemble.save(out / "mine")
    return eq.load_ensemble(out / "mine", member=MyNet)


class Signs(eq.attacks.Attack):
    """An attack of one's own."""

    def perturb(
        self, model: eq.attacks.Model, x: Tensor, y: Tensor, valid: Tensor, generator: torch.Generator
    ) -> Tensor:
        return self.epsilon * torch.sign(x) * valid


def read_files(paths: Sequence[Path]) -> list[str]:
    try:
        recording: eq.Recording = eq.read(paths[0], eq.FileDefaults(rate_hz=300.0))
    except eq.EcgQuorumError as error:
        return [str(error)]
    return [recording.id]
