"""The contract of attacks: bounds, padding, determinism, and a model that is left as it was."""

import functools
import math

import pytest
import torch
from torch.nn import functional as F

from ecgquorum import attacks
from ecgquorum.attacks import APGD, PGD, SAP, Attack, ConfidentPGD, Square, WorstCase
from ecgquorum.cohorts import Batch
from ecgquorum.ensemble import Ensemble
from ecgquorum.errors import AttackError
from ecgquorum.members import BandFilter, CompactMember, rings
from ecgquorum.preprocessing import InputSpec

N_SAMPLES = 600
EPSILON = 20.0
ATTACKS = {
    "pgd": PGD,
    "pgd restarted": lambda epsilon, **options: PGD(epsilon, random_start=True, restarts=2, best=True, **options),
    "pgd l2": lambda epsilon: PGD(_length(epsilon), norm="l2"),
    "sap": lambda epsilon: SAP(epsilon, n_steps=10),
    "sap alone": lambda epsilon: SAP(epsilon, pairs=True, from_pgd=False, n_steps=15),
    "apgd": lambda epsilon: APGD(epsilon, n_steps=25),
    "apgd dlr": lambda epsilon: APGD(epsilon, n_steps=25, objective="dlr"),
    "apgd l2": lambda epsilon: APGD(_length(epsilon), n_steps=25, norm="l2"),
    "square": lambda epsilon: Square(epsilon, n_queries=100),
    "confident": lambda epsilon: ConfidentPGD(epsilon, n_steps=20),
    "worst": lambda epsilon: WorstCase(epsilon, attacks=(PGD(epsilon), Square(epsilon, n_queries=20))),
}
"""Every attack, made for a bound on each sample; those in l2 get a ball of the same size."""


def _length(epsilon):
    return epsilon * math.sqrt(N_SAMPLES / 4)


@pytest.fixture(scope="module")
def ensemble():
    torch.manual_seed(0)
    members = [CompactMember(2, 3, 300.0, width=0.125) for _ in range(2)]
    members[1] = BandFilter(rings(300.0, 0), 300.0).then(members[1])
    for member in members:
        member.train()
        with torch.no_grad():  # batch-norm statistics of some real size
            for _ in range(20):
                member(torch.randn(8, 2, N_SAMPLES) * 200)
    return Ensemble(members, "abc", InputSpec(("I", "II"), 300.0, "microvolt", 2.0)).eval()


@pytest.fixture(scope="module")
def batch(ensemble):
    """Recordings of several lengths, labelled by what the ensemble says of them: it is always right."""
    generator = torch.Generator().manual_seed(1)
    signal, valid = (
        torch.randn(8, 2, N_SAMPLES, generator=generator) * 200,
        torch.zeros(8, 1, N_SAMPLES, dtype=torch.bool),
    )
    for row, length in enumerate((600, 600, 599, 450, 451, 300, 167, 75)):
        start = (N_SAMPLES - length) // 2
        valid[row, :, start : start + length] = True
    signal = signal * valid
    with torch.no_grad():
        return Batch(signal, valid, ensemble(signal).argmax(dim=1))


@pytest.fixture(scope="module")
def attack_once(ensemble, batch):
    """What an attack by this name with EPSILON gives, computed for the first test that asks for it."""

    @functools.cache
    def attack(name):
        return ATTACKS[name](EPSILON)(ensemble, *inputs(batch), generator=generator())

    return attack


def inputs(batch):
    return batch.signal, batch.label, batch.valid


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_the_table_is_complete():
    concrete = {
        cls for name in attacks.__all__ if isinstance(cls := getattr(attacks, name), type) and issubclass(cls, Attack)
    }
    covered = {type(make(1.0)) for make in ATTACKS.values()}
    assert covered == concrete - {Attack}


@pytest.mark.parametrize("name", ATTACKS)
class TestEveryAttack:
    def test_changes_stay_inside_epsilon_and_off_the_padding(self, name, attack_once, batch):
        attack, attacked = ATTACKS[name](EPSILON), attack_once(name)
        change = attacked - batch.signal
        size = change.abs().amax(dim=(1, 2)) if attack.norm == "linf" else change.square().sum(dim=(1, 2)).sqrt()
        assert (size <= attack.epsilon * (1 + 1e-5) + 1e-4).all()
        assert (size > 0.2 * attack.epsilon).all()
        assert not attacked[~batch.valid.expand_as(change)].any()

    def test_the_model_is_left_as_it_was_and_the_same_generator_gives_the_same_result(
        self, name, attack_once, ensemble, batch
    ):
        ensemble.train()  # unlike the first time: attacks evaluate the model, in whatever mode it is
        before = {key: value.clone() for key, value in ensemble.state_dict().items()}
        random_state = torch.random.get_rng_state()
        again = ATTACKS[name](EPSILON)(ensemble, *inputs(batch), generator=generator())
        assert all(torch.equal(before[key], value) for key, value in ensemble.state_dict().items())
        assert all(module.training for module in ensemble.modules())
        assert all(p.requires_grad and p.grad is None for p in ensemble.parameters())
        assert torch.equal(random_state, torch.random.get_rng_state())
        ensemble.eval()
        assert torch.equal(attack_once(name), again)

    def test_it_is_never_weaker_than_noise(self, name, attack_once, ensemble, batch):
        noise = (torch.randint(2, batch.signal.shape, generator=generator()) * 2 - 1) * EPSILON * batch.valid
        with torch.no_grad():
            signals = (batch.signal + noise, attack_once(name))
            by_noise, by_attack = (F.nll_loss(ensemble(x), batch.label) for x in signals)
        assert by_attack > by_noise

    def test_accuracy_falls_to_zero_as_epsilon_grows(self, name, ensemble, batch):
        attacked = ATTACKS[name](2000.0)(ensemble, *inputs(batch), generator=generator())
        with torch.no_grad():
            assert (ensemble(attacked).argmax(dim=1) == batch.label).float().mean() <= 0.25

    def test_an_epsilon_of_zero_changes_nothing(self, name, ensemble, batch):
        two = Batch(*(part[-2:] for part in batch))
        attacked = ATTACKS[name](0.0)(ensemble, *inputs(two), generator=generator())
        torch.testing.assert_close(attacked, two.signal)

    def test_each_recording_may_have_its_own_epsilon(self, name, ensemble, batch):
        epsilon = torch.tensor([0.0, 5.0] * 4)
        attack = ATTACKS[name](epsilon)
        change = attack(ensemble, *inputs(batch), generator=generator()) - batch.signal
        assert not change[::2].abs().max() > 1e-4
        assert (change[1::2].abs().amax(dim=(1, 2)) > 0.5).all()


@pytest.mark.parametrize("name", [name for name in ATTACKS if name != "confident"])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_any_classifier_can_be_attacked(name, n_classes, batch):
    weight = torch.randn(n_classes, 2, N_SAMPLES, generator=generator(5))

    def own_model(x):
        return torch.einsum("blt,clt->bc", x, weight) * 1e-3

    own = batch._replace(label=own_model(batch.signal).argmax(dim=1))
    attacked = ATTACKS[name](400.0)(own_model, own.signal, own.label, own.valid, generator=generator())
    assert (own_model(attacked).argmax(dim=1) == own.label).float().mean() <= 0.5


def test_models_that_cannot_be_attacked_are_refused_with_a_reason(ensemble, batch):
    for attack_type in (SAP, Square):
        with pytest.raises(AttackError, match="expected the norm linf, found 'l2'"):
            attack_type(1.0, norm="l2")
    with pytest.raises(AttackError, match="epsilon of 0 or more, found -1"):
        PGD(-1.0)
    with pytest.raises(AttackError, match="epsilon of 0 or more"):
        PGD(float("nan"))
    with pytest.raises(AttackError, match="expected an Ensemble"):
        ConfidentPGD(1.0)(ensemble.members[0], batch.signal, batch.label, batch.valid)
    for attack in (PGD(1.0), SAP(1.0), APGD(1.0)):
        with pytest.raises(AttackError, match="Square"):
            attack(lambda x: torch.zeros(len(x), 3), batch.signal, batch.label, batch.valid)
    Square(1.0, n_queries=2)(lambda x: torch.zeros(len(x), 3), batch.signal, batch.label, batch.valid)


def test_the_worst_case_is_at_least_as_bad_as_each_of_its_parts(ensemble, batch):
    parts = (PGD(EPSILON), APGD(EPSILON, n_steps=15), Square(EPSILON, n_queries=50))
    targets = tuple(ensemble.members)
    worst = WorstCase(EPSILON, attacks=parts, targets=targets)(ensemble, *inputs(batch), generator=generator())
    margin = attacks.dlr_loss(ensemble, batch.label)
    with torch.no_grad():
        bottom = margin(worst)
        for target in (ensemble, *targets):
            assert (bottom >= margin(parts[0](target, batch.signal, batch.label, batch.valid)) - 1e-4).all()


def test_confident_pgd_leaves_less_mutual_information_than_pgd(ensemble, batch):
    def information(signal):
        with torch.no_grad():
            members = ensemble.member_log_probs(signal)
        mean = members.exp().mean(dim=1)
        entropies = -(members.exp() * members).sum(dim=2).mean(dim=1)
        return (-(mean * mean.log()).sum(dim=1) - entropies).mean()

    loud = PGD(EPSILON, n_steps=40)(ensemble, *inputs(batch))
    quiet = ConfidentPGD(EPSILON)(ensemble, *inputs(batch))
    assert information(quiet) < information(loud)


def test_options_are_named():
    """`PGD(1.0, 40)` would be a guess: which of the numbers is the 40?"""
    for make in ATTACKS.values():
        with pytest.raises(TypeError):
            type(make(1.0))(1.0, 40)
