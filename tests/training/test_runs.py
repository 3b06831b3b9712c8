"""`train` with custom networks and strategies."""

from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from ecgquorum import Cohort, TrainingOptions, load_ensemble, train
from ecgquorum.errors import EcgQuorumError, MemberError, RecipeError, TrainingError
from ecgquorum.recipes import parse_recipe
from ecgquorum.strategies import (
    AdversarialTraining,
    Baseline,
    Decorrelation,
    Dverge,
    FourierPartition,
    Harden,
    Phase,
    Strategy,
)
from ecgquorum.training import train_ensemble
from tests.conftest import REPOSITORY, Recorder

QUICK = {"epochs": 1, "batch_size": 24, "device": "cpu"}


class OwnNet(nn.Module):
    """A network without `embed`, without a rate, with a batch norm and an option."""

    def __init__(self, n_leads: int, n_classes: int, channels: int = 8) -> None:
        super().__init__()
        self.conv = nn.Conv1d(n_leads, channels, 15, stride=4)
        self.norm = nn.BatchNorm1d(channels)
        self.last = nn.Linear(channels, n_classes)

    def forward(self, x):
        return self.last(torch.relu(self.norm(self.conv(x / 1000))).mean(dim=2))


class Scaled(nn.Module):
    """What a strategy may put around a member."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x):
        return self.network(2 * x)


class CooldownPhase(Phase):
    def __init__(self, rate: float) -> None:
        super().__init__("cooldown", 1, rate, parameters={"rate": rate})
        self.seen = []

    def change_batch(self, step):
        self.seen.append((step.phase, step.index))
        return step.batch._replace(signal=-step.batch.signal)


@dataclass(frozen=True)
class Calm(Strategy):
    """Everything that a strategy can do: a check, a wrapper, a changed batch, a loss term and a phase."""

    weight: float = 0.5
    rate: float = 1e-4

    def prepare(self, run):
        if run.n_classes > 9:
            raise TrainingError("calm: too many classes")
        return self

    def transform_input(self, member, index, rate_hz):
        return Scaled(member)

    def change_batch(self, step):
        noise = step.draw(lambda n, generator: torch.randn(n, *step.batch.signal.shape[1:], generator=generator))
        return step.batch._replace(signal=step.batch.signal + noise * step.batch.valid)

    def loss_terms(self, step):
        term = step.logits.square().mean()
        step.stats.add_value(f"calm_{step.phase}", term.item())
        return self.weight * term

    def after_training(self):
        return [CooldownPhase(self.rate)]


@pytest.fixture(scope="module")
def arrays():
    """Two classes that differ in frequency, on one lead at 100 Hz."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=120)
    t = np.arange(200) / 100
    x = np.sin(2 * np.pi * np.where(y, 9.0, 4.0)[:, None] * t + rng.uniform(0, 6, 120)[:, None])
    return (x + 0.3 * rng.standard_normal(x.shape))[:, None].astype(np.float32), y


def test_arrays_are_trained_in_memory(arrays, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x, y = arrays
    cohort = Cohort.from_arrays(x, y, rate_hz=100, parts=["train"] * 80 + ["tune"] * 20 + ["test"] * 20)
    options = TrainingOptions(epochs=12, batch_size=16, learning_rate=1e-2, scaling="unit", device="cpu")
    ensemble = train(partial(UnitNet, channels=12), cohort, members=2, options=options)
    prediction = ensemble.predict_part(cohort, "test")
    assert (prediction.label_index == y[100:]).mean() > 0.8
    assert ensemble.input.window_s == 2.0 and ensemble.input.leads == ("ECG",)
    assert not list(tmp_path.iterdir())


class UnitNet(OwnNet):
    def forward(self, x):
        return super().forward(1000 * x)


def test_a_custom_network_is_trained_with_every_strategy_at_once(tiny_cohort, tmp_path):
    strategy = (
        Harden(epsilon=20.0)
        + Dverge(epochs=1, steps=1)
        + FourierPartition()
        + Decorrelation(projected=4)
        + AdversarialTraining(epochs=1, steps=1)
    )
    recorder = Recorder()
    options = TrainingOptions(**QUICK, progress=recorder)
    ensemble = train(OwnNet, tiny_cohort, strategy=strategy, members=3, out=tmp_path / "own", options=options)
    assert len(ensemble.members) == 3
    assert [type(member).__name__ for member in ensemble.members] == ["OwnNet", "FilteredMember", "FilteredMember"]
    trained = [line.partition("  epoch")[0] for line in recorder.lines]
    bases = ["member 0", "member 1", "member 2"]
    assert trained == [*bases, *(f"{base} (adv)" for base in bases), "all members (dverge)"]
    done, total = recorder.updates[-1][1:]
    assert done == total
    recipe = parse_recipe((tmp_path / "own" / "recipe.toml").read_text())
    assert recipe.strategy == "dec+part+adv+dverge+harden" and recipe.name == "own"
    assert recipe.member.kind == f"{__name__}:OwnNet" and recipe.member.options == {"channels": 8}
    check = ensemble.card["checks"]["harden"]
    assert check["epsilon"] == 10.0 and check["accuracy"].keys() == {"0", "1", "2"}, "only harden checks its members"
    assert ensemble.card["checks"].keys() == {"harden"}
    assert recipe.strategies["adv"]["epsilon"] == 10.0
    with pytest.raises(EcgQuorumError, match="member="):
        load_ensemble(tmp_path / "own")
    loaded = load_ensemble(tmp_path / "own", member=OwnNet)
    x = tiny_cohort.batch([0, 1], loaded.input).signal
    torch.testing.assert_close(loaded(x), ensemble(x))


def test_a_custom_strategy_adds_a_term_a_batch_a_wrapper_and_a_phase(tiny_cohort, tmp_path):
    strategy = Calm() + Decorrelation(projected=4)
    out, recorder = tmp_path / "calm", Recorder()
    options = TrainingOptions(**QUICK, progress=recorder)
    ensemble = train(OwnNet, tiny_cohort, strategy=strategy, members=2, out=out, options=options)
    assert all(isinstance(member, Scaled) for member in ensemble.members)
    history = (out / "history.csv").read_text()
    assert "calm_base" in history and "calm_cooldown" in history
    assert [line.partition("  epoch")[0] for line in recorder.lines][2:] == [
        "member 0 (cooldown)",
        "member 1 (cooldown)",
    ]
    assert ensemble.card["recipe"].count(f"{__name__}:Calm") == 2  # in the sum, and its parameters
    again = train(
        OwnNet, tiny_cohort, strategy=strategy, members=2, out=out, options=TrainingOptions(**QUICK, resume=True)
    )
    assert again.card == ensemble.card
    with pytest.raises(TrainingError, match="started with another recipe"):
        other = Calm(weight=0.1) + Decorrelation(projected=4)
        train(OwnNet, tiny_cohort, strategy=other, members=2, out=out, options=TrainingOptions(**QUICK, resume=True))


def test_a_custom_strategy_and_network_are_named_in_a_recipe(tiny_cohort, tmp_path):
    text = f"""
name = "mine"
members = 2
strategy = "{__name__}:Calm+dec"
[input]
window_s = 5.0
[member]
kind = "{__name__}:OwnNet"
channels = 6
[training]
epochs = 1
batch_size = 24
[strategies.dec]
projected = 4
[strategies."{__name__}:Calm"]
weight = 0.25
"""
    ensemble = train_ensemble(parse_recipe(text), tiny_cohort, tmp_path / "run", device="cpu")
    assert ensemble.members[0].network.conv.out_channels == 6
    as_objects = train(
        partial(OwnNet, channels=6),
        tiny_cohort,
        strategy=Decorrelation(projected=4) + Calm(weight=0.25),
        members=2,
        options=TrainingOptions(**QUICK, window_s=5.0),
    )
    for one, other in zip(ensemble.parameters(), as_objects.parameters(), strict=True):
        assert torch.equal(one, other)
    with pytest.raises(RecipeError, match="unknown key wieght; did you mean weight"):
        train_ensemble(parse_recipe(text.replace("weight =", "wieght =")), tiny_cohort, tmp_path / "x")


def test_the_loss_term_of_a_custom_strategy_has_an_effect(tiny_cohort):
    sizes = {}
    for weight in (0.0, 100.0):
        options = TrainingOptions(**(QUICK | {"epochs": 3}))
        ensemble = train(OwnNet, tiny_cohort, strategy=Calm(weight=weight), members=1, options=options)
        x = tiny_cohort.batch(tiny_cohort.part("tune"), ensemble.input).signal
        sizes[weight] = ensemble.members[0](x).abs().mean().item()
    assert sizes[100.0] < sizes[0.0]


class Featureless(nn.Module):
    """A network from which no features can be read."""

    def __init__(self, n_leads, n_classes):
        super().__init__()
        self.conv = nn.Conv1d(n_leads, n_classes, 15, stride=8)
        self.norm = nn.BatchNorm1d(n_classes)

    def forward(self, x):
        return self.norm(self.conv(x / 1000)).mean(dim=2)


def test_a_network_without_features_is_trained_by_strategies_that_need_none(tiny_cohort, tmp_path):
    strategy = FourierPartition() + Harden() + Dverge(epochs=1, steps=1) + Calm() + Decorrelation()
    options = TrainingOptions(**QUICK)
    ensemble = train(Featureless, tiny_cohort, strategy=strategy, members=2, options=options)
    (pair,) = ensemble.card["diversity"]["pairs"]
    assert pair["linear_cka"] is None and pair["disagreement"] >= 0
    with pytest.raises(TrainingError, match="dec needs the members' features: give their class a method embed"):
        train(Featureless, tiny_cohort, strategy=Decorrelation("paper"), options=options)


def test_two_phases_of_one_name_are_refused(tiny_cohort):
    @dataclass(frozen=True)
    class Twin(Strategy):
        def after_training(self):
            return [Phase("adv", 1)]

    with pytest.raises(TrainingError, match="two phases are called 'adv'"):
        train(OwnNet, tiny_cohort, strategy=Twin() + AdversarialTraining(), options=TrainingOptions(**QUICK))


def test_jobs_of_objects_are_shared_through_a_store(tiny_cohort, tmp_path):
    lines = {}
    for strategy in (Baseline(), Decorrelation(projected=4)):
        recorder = Recorder()
        options = TrainingOptions(**QUICK, store=tmp_path / "store", progress=recorder)
        train(OwnNet, tiny_cohort, strategy=strategy, members=2, options=options)
        lines[strategy.name] = recorder.lines
    assert not any("found in the store" in line for line in lines["baseline"])
    assert lines["dec"][0] == "member 0: found in the store, not trained again"
    assert "found" not in lines["dec"][1]


def test_a_registered_name_is_a_member_too(tiny_cohort):
    ensemble = train(
        "compact", tiny_cohort, strategy=FourierPartition(), members=2, options=TrainingOptions(**QUICK, crop_s=2.0)
    )
    assert ensemble.card["members"][0]["kind"] == "compact"


def test_mistakes_are_named(tiny_cohort, tmp_path):
    class NeedsMore(nn.Module):
        def __init__(self, n_classes, depth):
            super().__init__()

    with pytest.raises(MemberError, match="parameter depth has no value"):
        train(NeedsMore, tiny_cohort)
    with pytest.raises(EcgQuorumError, match="no member is called 'huge'"):
        train("huge", tiny_cohort)
    with pytest.raises(MemberError, match="keyword arguments only"):
        train(partial(OwnNet, 1), tiny_cohort)
    with pytest.raises(ValueError, match="epochs"):
        TrainingOptions(epochs=0)
    with pytest.raises(RecipeError, match="members"):
        train(OwnNet, tiny_cohort, members=0)
    with pytest.raises(TrainingError, match="compares outputs of batch-norm layers"):
        train(lambda n_classes: nn.Sequential(nn.Flatten(), nn.LazyLinear(n_classes)), tiny_cohort, strategy=Dverge())


def test_the_strategy_of_the_strategies_page_trains_in_two_phases(tiny_cohort):
    *_, own = (REPOSITORY / "docs/reference/strategies.md").read_text().split("```python\n")
    names = {"__name__": "docs.strategies"}
    exec(own.partition("```")[0], names)  # noqa: S102
    recorder = Recorder()
    options = TrainingOptions(**QUICK, progress=recorder)
    train(OwnNet, tiny_cohort, strategy=names["SmallLogits"](), members=1, options=options)
    assert [line.partition("  epoch")[0] for line in recorder.lines] == ["member 0", "member 0 (flipped)"]
