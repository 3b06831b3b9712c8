"""Strategies: what each trains and shares, that parts add up, and that crafting leaves the crafter alone."""

import csv
import dataclasses
import itertools

import numpy as np
import pytest
import safetensors.torch
import torch
from torch.nn import functional as F

from ecgquorum import load_ensemble, load_recipe, train_ensemble
from ecgquorum.attacks import PGD
from ecgquorum.errors import BundleError, TrainingError
from ecgquorum.members import MEMBERS
from ecgquorum.recipes import PARTS, DvergeRecipe, MemberRecipe, TrainingRecipe, parse_recipe, recipe_names
from ecgquorum.training import plan_jobs
from ecgquorum.training.checkpoint import Checkpoint
from ecgquorum.training.checkpoint_store import MemberStore, extract_features
from ecgquorum.training.decorrelation import Decorrelation, decorrelation_loss
from ecgquorum.training.jobs import build_recipe_member
from ecgquorum.training.loop import SilentObserver, train_unit
from ecgquorum.training.phases import (
    AdversarialPhase,
    BasePhase,
    DvergePhase,
    Evaluation,
    PhaseContext,
    distilled,
)

from ..conftest import TINY_RECIPE

TOY = (
    TINY_RECIPE.replace("members = 2", "members = 3")
    .replace("batch_size = 16", "batch_size = 24")
    .replace('name = "tiny"', 'name = "toy"')
    + """
[decorrelation]
projected = 4
[adversarial]
steps = 2
epochs = 2
[dverge]
steps = 2
epochs = 2
"""
)
PAPER = ["baseline", "dec", "part", "dec+part", "adv", "dverge", "dec+adv"]
SUMS = ["+".join(parts) for n in (1, 2, 3, 4) for parts in itertools.combinations(PARTS, n)]


@pytest.fixture(scope="module")
def toy():
    return parse_recipe(TOY)


@pytest.fixture(scope="module")
def runs(toy, tiny_cohort, tmp_path_factory):
    """Every strategy of the paper and two further sums, trained with one store."""
    folder = tmp_path_factory.mktemp("strategies")
    seen = {}
    for strategy in [*PAPER, "dec+part+adv", "part+dverge"]:
        watcher = Watcher()
        options = {"device": "cpu", "observer": watcher, "store": folder / "store"}
        train_ensemble(toy.with_strategy(strategy), tiny_cohort, folder / strategy, **options)
        seen[strategy] = (folder / strategy, watcher.units)
    return seen


class Watcher:
    def __init__(self):
        self.units = []

    def on_unit(self, unit, epochs, found):
        self.units.append((unit.phase, unit.label, found))

    def on_batch(self, *arguments):
        pass

    def on_epoch(self, *arguments):
        pass


def units(toy, strategy):
    return plan_jobs(toy.with_strategy(strategy), "data")


def identities(toy, strategy, phase="base"):
    return [unit.identity for unit in units(toy, strategy) if unit.phase == phase]


def test_strategies_share_the_members_they_have_in_common(toy):
    baseline, dec, part, both = (identities(toy, s) for s in ("baseline", "dec", "part", "dec+part"))
    assert baseline[0] == dec[0] == part[0] == both[0]
    for index in (1, 2):
        assert len({ids[index] for ids in (baseline, dec, part, both)}) == 4
    assert identities(toy, "adv") == baseline
    assert identities(toy, "dec+adv") == dec
    assert identities(toy, "dverge") == baseline
    assert [u.continues for u in units(toy, "adv") if u.phase == "adv"] == [(i,) for i in baseline]
    assert [u.continues for u in units(toy, "dverge") if u.phase == "dverge"] == [tuple(baseline)]
    assert [u.continues for u in units(toy, "adv+dverge") if u.phase == "dverge"] == [
        tuple(identities(toy, "adv", "adv"))
    ]


def test_a_training_is_known_by_all_that_determines_it(toy):
    reference = identities(toy, "dec+part")
    same = parse_recipe(TOY.replace('name = "toy"', 'name = "other"').replace("members = 3", "members = 5"))
    assert identities(same, "dec+part")[:3] == reference
    assert [u.identity for u in plan_jobs(toy.with_strategy("dec+part"), "other data")] != reference
    for old, new, changed in (
        ("projected = 4", "projected = 5", [False, True, True]),
        ("projected = 4", "projected = 4\nwhiten = true", [False, True, True]),
        ("epochs = 2\nbatch_size", "epochs = 3\nbatch_size", [True, True, True]),
        ("width = 0.125", "width = 0.25", [True, True, True]),
        ("steps = 2\nepochs = 2\n[dverge]", "steps = 3\nepochs = 2\n[dverge]", [False, False, False]),
        (
            "[decorrelation]",
            '[partition]\nbands = ["all", "rings:odd", "rings:odd"]\n[decorrelation]',
            [False, True, True],
        ),
    ):
        assert old in TOY
        other = identities(parse_recipe(TOY.replace(old, new, 1)), "dec+part")
        assert [a != b for a, b in zip(reference, other, strict=True)] == changed, new
    assert identities(toy, "adv", "adv") != identities(
        parse_recipe(TOY.replace("steps = 2", "steps = 3", 1)), "adv", "adv"
    )


def test_decorrelation_is_against_all_earlier_members(toy):
    found = units(toy, "dec")
    assert [unit.against[0] for unit in found] == [(), (found[0].identity,), (found[0].identity, found[1].identity)]
    assert [u.against for u in units(toy, "dec+adv") if u.phase == "adv"] == [u.against for u in found]
    assert all(not any(unit.against) for strategy in ("baseline", "part", "adv") for unit in units(toy, strategy))


@pytest.mark.parametrize("strategy", SUMS)
@pytest.mark.parametrize("members", [2, 8])
def test_every_sum_has_a_plan_in_which_nothing_is_missing(strategy, members):
    recipe = parse_recipe(TOY.replace("members = 3", f"members = {members}")).with_strategy(strategy)
    done = set()
    for unit in plan_jobs(recipe, "data"):
        assert set(unit.continues) <= done
        assert {i for ids in unit.against for i in ids} <= done
        done.add(unit.identity)
    assert len(done) == members * (1 + ("adv" in recipe.parts)) + ("dverge" in recipe.parts)


def test_all_strategies_train_and_what_is_shared_is_trained_once(runs):
    trained = {strategy: [unit[:2] for unit in seen if not unit[2]] for strategy, (_, seen) in runs.items()}
    assert trained["baseline"] == [("base", "0"), ("base", "1"), ("base", "2")]
    assert trained["dec"] == trained["part"] == trained["dec+part"] == [("base", "1"), ("base", "2")]
    assert trained["adv"] == [("adv", "0"), ("adv", "1"), ("adv", "2")]
    assert trained["dec+adv"] == [("adv", "1"), ("adv", "2")]  # its first member has no predecessor: it is that of adv
    assert trained["dverge"] == trained["part+dverge"] == [("dverge", "all")]
    assert trained["dec+part+adv"] == [("adv", "1"), ("adv", "2")]
    for folder, _ in runs.values():
        ensemble = load_ensemble(folder)
        assert len(ensemble.members) == 3


def test_shared_members_have_the_same_bits(runs):
    first = {
        s: load_ensemble(runs[s][0]).members[0].state_dict() for s in ("baseline", "dec", "part", "dec+part", "adv")
    }
    for strategy in ("dec", "part", "dec+part"):
        assert all(torch.equal(first["baseline"][name], first[strategy][name]) for name in first["baseline"])
    assert not torch.equal(first["baseline"]["head.weight"], first["adv"]["head.weight"])


def test_bands_are_part_of_the_loaded_members(runs):
    bands = [getattr(member.bands, "edges_hz", None) for member in load_ensemble(runs["dec+part"][0]).members]
    assert bands[0] is None
    assert bands[1][0].tolist() == [0.0, 15.0] and bands[2][0].tolist() == [15.0, 30.0]
    assert all(not hasattr(m.bands, "edges_hz") for m in load_ensemble(runs["dec"][0]).members)


def test_the_history_keeps_the_time_of_decorrelation_apart(runs):
    def rows(strategy):
        with (runs[strategy][0] / "history.csv").open() as file:
            return list(csv.DictReader(file))

    assert [(r["phase"], r["member"]) for r in rows("dec+adv")] == [
        *(("base", str(k)) for k in (0, 0, 1, 1, 2, 2)),
        *(("adv", str(k)) for k in (0, 0, 1, 1, 2, 2)),
    ]
    for row in rows("dec+adv"):
        decorrelated = row["member"] != "0"
        assert (float(row["decorrelation_seconds"]) > 0) == decorrelated
        assert (float(row["decorrelation"]) > 0) == decorrelated
        assert float(row["decorrelation_seconds"]) < float(row["seconds"])
    assert all(float(row["decorrelation_seconds"]) == 0 for row in rows("baseline"))
    assert rows("dverge")[-1]["member"] == "all"


def test_the_card_reports_diversity(runs):
    report = load_ensemble(runs["dec+part"][0]).card["diversity"]
    assert [pair["members"] for pair in report["pairs"]] == [[0, 1], [0, 2], [1, 2]]
    assert len(report["member_accuracy"]) == 3
    assert all(0 <= pair["linear_cka"] <= 1 for pair in report["pairs"])


def test_stored_features_are_those_of_the_deployed_checkpoint(runs, toy, tiny_cohort):
    folder, _ = runs["dec"]
    store = MemberStore(folder.parent / "store")
    ensemble = load_ensemble(folder)
    for identity, member in list(zip(identities_on(toy, "dec", tiny_cohort), ensemble.members, strict=True))[:2]:
        kept = safetensors.torch.load_file(store.checkpoint_path(identity).with_name("features.safetensors"))
        deployed = extract_features(member, tiny_cohort, tiny_cohort.part("train"), ensemble.input)
        torch.testing.assert_close(kept["features"], deployed, atol=1e-3, rtol=1e-2)  # whose weights are rounded
        torch.nn.ModuleList([member]).load_state_dict(Checkpoint.load(store.checkpoint_path(identity), identity).best)
        chosen = extract_features(member, tiny_cohort, tiny_cohort.part("train"), ensemble.input)
        assert torch.equal(kept["features"], chosen)


def test_features_of_other_weights_or_damaged_ones_are_computed_anew(tiny_ensemble, tiny_cohort, tmp_path):
    store, (one, other) = MemberStore(tmp_path), tiny_ensemble.members
    first = store.features("a" * 64, one, tiny_cohort, tiny_ensemble.input)
    assert torch.equal(first, store.features("a" * 64, one, tiny_cohort, tiny_ensemble.input))
    second = store.features("a" * 64, other, tiny_cohort, tiny_ensemble.input)
    assert not torch.equal(first, second)
    (path,) = tmp_path.rglob("features.safetensors")
    path.write_bytes(path.read_bytes()[:100])
    assert torch.equal(second, store.features("a" * 64, other, tiny_cohort, tiny_ensemble.input))


def identities_on(toy, strategy, cohort):
    return [unit.identity for unit in plan_jobs(toy.with_strategy(strategy), cohort.data_hash)]


@pytest.fixture
def setting(toy, tiny_cohort, tiny_ensemble):
    return PhaseContext(tiny_cohort, tiny_ensemble.input, toy, toy.training, torch.device("cpu"), ("test",))


def backward(phase, batch, indices):
    for term in phase.losses(batch, indices):
        term.backward()


def none(setting):
    return Decorrelation(setting.recipe.decorrelation, [], setting.cohort)


@pytest.mark.parametrize("phase_type", [BasePhase, AdversarialPhase, DvergePhase])
def test_judging_and_crafting_leave_statistics_and_modes_alone(phase_type, setting, tiny_ensemble):
    members = list(tiny_ensemble.members)
    phase = phase_type(members if phase_type is DvergePhase else members[:1], setting, [none(setting) for _ in members])
    phase.network.train()
    before = {name: tensor.clone() for name, tensor in phase.network.state_dict().items()}
    first, second = phase.judged(), phase.judged()
    assert first == second
    assert all(torch.equal(before[name], tensor) for name, tensor in phase.network.state_dict().items())
    assert all(module.training for module in phase.network.modules())


def test_adversarial_training_moves_statistics_only_by_its_own_forward(setting, tiny_ensemble):
    """One loss moves each batch norm's count by one, however many steps the crafting took."""
    member = tiny_ensemble.members[0]
    phase = AdversarialPhase([member], setting, [none(setting)])
    phase.network.train()
    phase.begin_epoch(0)
    batch, indices = next(setting.batches(0))
    before = member.blocks[0].last.norm.num_batches_tracked.clone()
    backward(phase, batch, indices)
    assert member.blocks[0].last.norm.num_batches_tracked == before + 1
    assert all(parameter.grad is not None for parameter in member.parameters())


def test_adversarial_training_sees_attacked_recordings(setting, tiny_ensemble):
    member = tiny_ensemble.members[0]
    batch, indices = next(setting.batches(0))
    losses = []
    for phase_type in (BasePhase, AdversarialPhase):
        phase = phase_type([member], setting, [none(setting)])
        phase.network.eval()
        phase.begin_epoch(0)
        losses.append(sum(term.item() for term in phase.losses(batch, indices)))
    assert losses[1] > losses[0]


def test_distillation_draws_near_the_target_within_epsilon(setting, tiny_ensemble):
    member = tiny_ensemble.members[0].train()
    source, _ = next(setting.batches(0))
    target, _ = next(setting.batches(1))
    part = DvergeRecipe(epsilon=200.0, steps=20)
    before = {name: tensor.clone() for name, tensor in member.state_dict().items()}
    moved = distilled(member, source, target, 1, part)
    assert all(torch.equal(before[name], tensor) for name, tensor in member.state_dict().items())
    assert (moved.signal - source.signal).abs().max() <= 200 * (1 + 1e-5)
    assert not moved.signal[~source.valid].any()
    assert torch.equal(moved.label, source.label)
    member.eval()
    wanted = member.stage(target.signal, 1)
    gaps = [(member.stage(batch.signal, 1) - wanted).square().mean() for batch in (source, moved)]
    assert gaps[1] < 0.9 * gaps[0]


@pytest.mark.parametrize("kind", MEMBERS)
def test_sources_and_targets_may_be_of_different_lengths(setting, kind):
    """Each batch is padded to the window; a network that leaves padding out must leave out the same of both."""
    recipe = setting.recipe.model_copy(update={"member": MemberRecipe(kind=kind, width=0.05)})
    member = build_recipe_member(recipe, 0, n_leads=1, n_classes=4, rate_hz=300.0)
    (source, _), (target, _) = next(setting.batches(0)), next(setting.batches(1))
    n_samples = source.signal.shape[2]
    source, target = (
        batch._replace(signal=batch.signal * valid, valid=batch.valid & valid)
        for batch, valid in (
            (source, (torch.arange(n_samples) - n_samples // 2).abs() < n_samples // 8),
            (target, (torch.arange(n_samples) - n_samples // 2).abs() < n_samples // 4),
        )
    )
    part = DvergeRecipe(epsilon=200.0, steps=4)
    moved = distilled(member, source, target, 1, part)
    assert not moved.signal[~source.valid].any()
    wider = [
        batch._replace(signal=F.pad(batch.signal, (768, 768)), valid=F.pad(batch.valid, (768, 768)))
        for batch in (source, target)
    ]
    again = distilled(member, *wider, 1, part)
    if kind == "compact":  # whose answers do not depend on how much padding there is
        near = (again.signal[..., 768:-768] - moved.signal).abs() < 1e-2
        assert near.float().mean() > 0.999


def test_dverge_trains_each_member_on_what_was_distilled_from_the_others(setting, tiny_ensemble, monkeypatch):
    members = list(tiny_ensemble.members)
    phase = DvergePhase(members, setting, [none(setting) for _ in members])
    phase.network.train()
    made, used = [], []

    def remembered(member, source, target, block, part, span):
        made.append((members.index(member), distilled(member, source, target, block, part, span), source, block))
        return made[-1][1]

    def fitted(j, batch, indices):
        used.append((j, batch, indices))
        return fit(j, batch, indices)

    fit = phase._fitted
    monkeypatch.setattr("ecgquorum.training.phases.distilled", remembered)
    monkeypatch.setattr(phase, "_fitted", fitted)
    phase.begin_epoch(0)
    for batch, indices in setting.batches(0):
        made.clear()
        used.clear()
        backward(phase, batch, indices)
        by = {id(batch): i for i, batch, _, _ in made}
        assert [(j, by[id(batch)]) for j, batch, _ in used] == [(0, 1), (1, 0)]
        assert all(torch.equal(batch.label, made[0][2].label) for _, batch, _ in used)
        # sources are another draw than targets, and the indices handed on are theirs
        assert not np.array_equal(used[0][2], indices)
        assert setting.cohort.labels[used[0][2]].tolist() == used[0][1].label.tolist()
        assert len({block for *_, block in made}) == 1
    for member in members:
        assert all(parameter.grad is not None for parameter in member.parameters())
    generator = setting.generator("blocks")
    made.clear()
    for _ in range(12):
        phase._distilled(batch, batch, generator)
    assert len({block for *_, block in made}) > 2


def test_adversarial_members_are_judged_under_the_training_attack(setting, tiny_ensemble):
    member = tiny_ensemble.members[0]
    part = setting.recipe.adversarial
    found = AdversarialPhase([member], setting, [none(setting)]).judged()
    losses = []
    for batch in setting.tune_batches():
        attacked = PGD(part.epsilon, n_steps=part.steps)(member, batch)
        losses.append(F.cross_entropy(member.eval()(attacked.signal), attacked.label, reduction="sum").item())
    assert found.loss == pytest.approx(sum(losses) / len(setting.cohort.part("tune")), rel=1e-4)
    assert found.loss > BasePhase([member], setting, [none(setting)]).judged().loss


def test_dverge_is_judged_on_what_was_distilled_from_the_others(setting, tiny_ensemble):
    far = setting.recipe.dverge.model_copy(update={"epsilon": 1000.0})  # or these members would hardly notice
    setting = dataclasses.replace(setting, recipe=setting.recipe.model_copy(update={"dverge": far}))
    members = list(tiny_ensemble.members)
    phase = DvergePhase(members, setting, [none(setting) for _ in members])
    generator, losses = setting.generator("judge"), []
    (source,) = setting.tune_batches()
    order = torch.randperm(len(source.label), generator=generator)
    changed = phase._distilled(source, type(source)(*(part[order] for part in source)), generator)
    for member, batch in zip(members, changed[::-1], strict=True):
        losses.append(F.cross_entropy(member.eval()(batch.signal), batch.label).item())
    assert phase.judged().loss == pytest.approx(np.mean(losses), rel=1e-4)
    clean = np.mean([F.cross_entropy(m(source.signal), source.label).item() for m in members])
    assert phase.judged().loss != pytest.approx(clean, rel=1e-5)


def test_the_term_is_lambda_times_the_loss_of_the_right_rows(setting):
    stored = [torch.randn(48, 16), torch.randn(48, 16)]
    recipe = setting.recipe.decorrelation.model_copy(update={"weight": 0.7})
    train = setting.cohort.part("train")
    rows = [40, 3, 17, 22, 8, 30, 1, 12, 44, 9]
    features = torch.randn(10, 16, requires_grad=True)
    found = Decorrelation(recipe, stored, setting.cohort)(features, train[rows], torch.Generator().manual_seed(1))
    expected = 0.7 * decorrelation_loss(
        features, [z[rows] for z in stored], torch.Generator().manual_seed(1), n_projected=4
    )
    torch.testing.assert_close(found, expected)
    gradients = [torch.autograd.grad(value, features)[0] for value in (found, expected)]
    torch.testing.assert_close(*gradients)


def test_the_best_epoch_is_deployed_not_the_last(setting, tiny_ensemble, tmp_path):
    member = tiny_ensemble.members[0]
    scores = iter([Evaluation(1.0, 0.5), Evaluation(0.9, 0.8), Evaluation(0.8, 0.8), Evaluation(0.1, 0.6)])
    seen = []

    class Scripted(BasePhase.__mro__[1]):
        def losses(self, batch, indices):
            yield self._fitted(0, batch, indices)

        def judged(self):
            seen.append(member.head.weight.detach().clone())
            return next(scores)

    plan = setting.plan.model_copy(update={"epochs": 4})
    unit = plan_jobs(setting.recipe, "data")[0]
    phase = Scripted([member], dataclasses.replace(setting, plan=plan), [none(setting)])
    state = train_unit(phase, unit, tmp_path / "checkpoint.safetensors", SilentObserver(), lambda rows: None)
    assert torch.equal(member.head.weight, seen[2])
    assert not torch.equal(member.head.weight, seen[3])
    assert state.best_score == (0.8, -0.8)


def test_sources_of_other_classes_can_be_forced(setting, tiny_ensemble):
    from ecgquorum.training.phases import _paired

    (source, indices), (target, _) = next(setting.batches(0)), next(setting.batches(1))
    generator = torch.Generator().manual_seed(0)
    same, kept = _paired(source, indices, target, DvergeRecipe(), generator)
    assert same is source and kept is indices
    forced, order = _paired(source, indices, target, DvergeRecipe(epsilon=10.0, different_classes=True), generator)
    assert (forced.label != target.label).all()
    assert setting.cohort.labels[order].tolist() == forced.label.tolist()


def test_small_batches_are_counted_as_skipped(setting):
    term = Decorrelation(setting.recipe.decorrelation, [torch.randn(48, 16)], setting.cohort)
    indices = setting.cohort.part("train")[:5]
    assert term(torch.randn(5, 16), indices, torch.Generator()) == 0.0
    assert term(torch.randn(20, 16), setting.cohort.part("train")[:20], torch.Generator()) > 0
    assert term.taken()["decorrelation_skipped"] == 1
    assert term.taken()["decorrelation_skipped"] == 0


def test_a_killed_strategy_resumes_to_the_same_bits(toy, tiny_cohort, tmp_path, runs):
    """Stopped after each epoch in turn, by an observer that raises, a strategy ends as if nothing had happened."""

    class Stopper(Watcher):
        def on_epoch(self, *arguments):
            raise KeyboardInterrupt

    for strategy in ("dec+adv", "part+dverge"):
        out = tmp_path / strategy
        for attempt in range(20):
            try:
                train_ensemble(
                    toy.with_strategy(strategy), tiny_cohort, out, device="cpu", observer=Stopper(), resume=attempt > 0
                )
                break
            except KeyboardInterrupt:
                continue
        assert attempt > 5
        assert (out / "weights.safetensors").read_bytes() == (runs[strategy][0] / "weights.safetensors").read_bytes()


def test_decorrelation_that_could_never_act_is_refused(toy, tiny_cohort, tmp_path):
    for old, new, needed in (
        ("projected = 4", "projected = 23", 25),
        ("projected = 4", 'projection = "regressand"', 18),
    ):
        recipe = parse_recipe(TOY.replace(old, new).replace("batch_size = 24", "batch_size = 17")).with_strategy("dec")
        with pytest.raises(
            TrainingError, match=f"at least {needed} recordings for a fit, found training.batch_size = 17"
        ):
            train_ensemble(recipe, tiny_cohort, tmp_path / "run")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", recipe_names())
def test_every_shipped_recipe_decorrelates_and_attacks_at_the_papers_strength(name):
    recipe = load_recipe(name)
    expected = 0.025 if "cpsc" in name else 10.0
    assert recipe.adversarial.epsilon == recipe.dverge.epsilon == expected
    assert f"epsilon = {expected}" in recipe.toml()
    assert recipe.training.batch_size >= recipe.decorrelation.projected + 2


def test_a_run_remembers_its_store(toy, tiny_cohort, tmp_path, runs):
    class Stopper(Watcher):
        def on_epoch(self, *arguments):
            raise KeyboardInterrupt

    out, store = tmp_path / "run", tmp_path / "store"
    with pytest.raises(KeyboardInterrupt):
        train_ensemble(toy, tiny_cohort, out, device="cpu", observer=Stopper(), store=store)
    with pytest.raises(BundleError, match="has not finished"):
        load_ensemble(out)
    train_ensemble(toy, tiny_cohort, out, device="cpu", resume=True)
    assert not (out / "members").exists()
    assert (out / "weights.safetensors").read_bytes() == (runs["baseline"][0] / "weights.safetensors").read_bytes()


def test_the_command_line_takes_a_strategy(ecgquorum, tmp_path, tiny_cohort):
    (tmp_path / "r.toml").write_text(TOY)
    train = ["train", tmp_path / "r.toml", "--cohort", tiny_cohort.path]
    wrong = ecgquorum(*train, "--out", tmp_path / "x", "--strategy", "dec+magic", code=1)
    assert "sum of dec, part, adv, dverge such as dec+part, found 'magic'" in wrong.stderr
    train += ["--store", tmp_path / "store"]
    done = ecgquorum(*train, "--out", tmp_path / "run", "--strategy", "part")
    assert load_ensemble(tmp_path / "run").card["recipe"].count('strategy = "part"') == 1
    again = ecgquorum(*train, "--out", tmp_path / "again", "--strategy", "dec+part")
    assert "member 0: found in the store, not trained again" in again.stderr
    assert "found in the store" not in done.stderr


def test_hardened_training_attacks_a_share_of_each_batch_within_its_bound(setting, tiny_ensemble, monkeypatch):
    member = tiny_ensemble.members[0]
    plan = setting.plan.model_copy(update={"attacked": 0.5, "attack_epsilon": 80.0})
    phase = BasePhase([member], dataclasses.replace(setting, plan=plan), [none(setting)])
    phase.network.train()
    phase.begin_epoch(0)
    batch, indices = next(setting.batches(0))
    seen = []
    monkeypatch.setattr(member, "embed", lambda x, embed=member.embed: seen.append(x) or embed(x))
    before = member.blocks[0].last.norm.num_batches_tracked.clone()
    backward(phase, batch, indices)
    assert member.blocks[0].last.norm.num_batches_tracked == before + 1
    change = (seen[-1] - batch.signal).abs().amax(dim=(1, 2))
    n_attacked = len(batch.label) // 2
    assert (change[:n_attacked] > 0).all() and (change[n_attacked:] == 0).all()
    assert change.max() <= 80 * (1 + 1e-5) and change[:n_attacked].std() > 1, "each by a bound of its own"
    assert not seen[-1][~batch.valid.expand_as(batch.signal)].any()


def test_hardened_training_is_known_by_its_strength(tiny_recipe):
    def identity(**plan):
        training = TrainingRecipe.model_validate(tiny_recipe.training.model_dump() | plan)
        return plan_jobs(tiny_recipe.model_copy(update={"training": training}), "data")[0].identity

    some = {identity(), identity(attacked=0.5, attack_epsilon=50.0), identity(attacked=0.5, attack_epsilon=60.0)}
    assert len(some) == 3
    for alone in ({"attacked": 0.5}, {"attack_epsilon": 50.0}):
        with pytest.raises(ValueError, match="together or neither, found attacked = "):
            identity(**alone)


def test_steps_are_as_long_as_the_recipe_says(setting, tiny_ensemble, monkeypatch):
    """One step of a share s of epsilon moves every sample that counts by s · epsilon, in `adv` and in `dverge`."""
    member = tiny_ensemble.members[0].eval()
    source, indices = next(setting.batches(0))
    target, _ = next(setting.batches(1))
    moved = [distilled(member, source, target, 1, DvergeRecipe(epsilon=40.0, steps=1, step=s)) for s in (0.25, 0.5)]
    reach = [(one.signal - source.signal).abs().max().item() for one in moved]
    assert reach == pytest.approx([10.0, 20.0], rel=1e-4)
    for step, expected in ((0.25, 10.0), (0.5, 20.0)):
        part = setting.recipe.adversarial.model_copy(update={"epsilon": 40.0, "steps": 1, "step": step})
        recipe = setting.recipe.model_copy(update={"adversarial": part})
        phase = AdversarialPhase([member], dataclasses.replace(setting, recipe=recipe), [none(setting)])
        phase.begin_epoch(0)
        seen = []
        with monkeypatch.context() as patched:
            patched.setattr(member, "embed", lambda x, embed=member.embed, seen=seen: seen.append(x) or embed(x))
            list(phase.losses(source, indices))
        assert (seen[-1] - source.signal).abs().max().item() == pytest.approx(expected, rel=1e-4)


def test_hardened_training_resumes_to_the_same_bits(toy, tiny_cohort, tmp_path):
    training = toy.training.model_copy(update={"attacked": 0.5, "attack_epsilon": 50.0, "epochs": 3})
    recipe = toy.model_copy(update={"training": training, "members": 2})
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    train_ensemble(recipe, tiny_cohort, whole, device="cpu")

    class Stopper(Watcher):
        def on_epoch(self, *arguments):
            raise KeyboardInterrupt

    for attempt in range(20):
        try:
            train_ensemble(recipe, tiny_cohort, stopped, device="cpu", observer=Stopper(), resume=attempt > 0)
            break
        except KeyboardInterrupt:
            continue
    assert attempt >= 5
    assert (stopped / "weights.safetensors").read_bytes() == (whole / "weights.safetensors").read_bytes()
