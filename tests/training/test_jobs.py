"""Jobs: what a strategy trains and in which order, what strategies share, and what makes a job another one."""

import itertools

import pytest

from ecgquorum.recipes import parse_recipe
from ecgquorum.recipes.training import STRATEGY_ORDER
from ecgquorum.training import plan_jobs

from .conftest import TOY

SUMS = ["+".join(parts) for n in range(1, 6) for parts in itertools.combinations(STRATEGY_ORDER, n)]


def identities(plan, phase="base", data="data"):
    return [job.identity for job in plan_jobs(plan, data) if job.phase == phase]


def test_strategies_share_the_members_they_have_in_common(plan_of):
    baseline, dec, part, both = (identities(plan_of(s)) for s in ("baseline", "dec", "part", "dec+part"))
    assert baseline[0] == dec[0] == part[0] == both[0]
    for index in (1, 2):
        assert len({ids[index] for ids in (baseline, dec, part, both)}) == 4
    assert identities(plan_of("adv")) == baseline
    assert identities(plan_of("dec+adv")) == dec
    assert identities(plan_of("dverge")) == baseline
    hardened = identities(plan_of("harden"))
    assert not set(hardened) & {*baseline, *dec, *part}
    assert identities(plan_of("dec+harden"))[0] == hardened[0]

    def continued(strategy, phase):
        return [job.continues for job in plan_jobs(plan_of(strategy), "data") if job.phase == phase]

    assert continued("adv", "adv") == [(identity,) for identity in baseline]
    assert continued("dverge", "dverge") == [tuple(baseline)]
    assert continued("adv+dverge", "dverge") == [tuple(identities(plan_of("adv"), "adv"))]


def test_a_job_is_identified_by_everything_that_determines_it(plan_of):
    reference = identities(plan_of("dec+part"))
    same = TOY.replace('name = "toy"', 'name = "other"').replace("members = 3", "members = 5")
    assert identities(plan_of("dec+part", same))[:3] == reference
    assert identities(plan_of("dec+part"), data="other data") != reference
    for old, new, changed in (
        ("projected = 4", "projected = 5", [False, True, True]),
        ("projected = 4", "projected = 4\nform = 'paper'", [False, True, True]),
        ("projected = 4", "projected = 4\nweight = 0.05", [False, False, False]),  # a default, written out
        ("epochs = 2\nbatch_size", "epochs = 3\nbatch_size", [True, True, True]),
        ("width = 0.125", "width = 0.25", [True, True, True]),
        ("[input]", "[input]\nleads = 1", [False, False, False]),
        ("steps = 2\nepochs = 2\n[strategies.dverge]", "steps = 3\nepochs = 2\n[strategies.dverge]", [False] * 3),
        (
            "[strategies.dec]",
            '[strategies.part]\nbands = ["all", "rings:odd", "rings:odd"]\n[strategies.dec]',
            [False, True, True],
        ),
    ):
        assert old in TOY
        other = identities(plan_of("dec+part", TOY.replace(old, new, 1)))
        assert [a != b for a, b in zip(reference, other, strict=True)] == changed, new
    assert identities(plan_of("adv"), "adv") != identities(
        plan_of("adv", TOY.replace("steps = 2", "steps = 3", 1)), "adv"
    )


def test_a_hardened_job_is_identified_by_its_epsilon(plan_of):
    texts = [TOY, *(TOY.replace("epsilon = 50.0", new) for new in ("epsilon = 60.0", "epsilon = 50.0\nshare = 0.25"))]
    found = [identities(plan_of("harden", text))[0] for text in texts]
    assert len({*found, identities(plan_of("baseline"))[0]}) == 4


def test_decorrelation_uses_the_features_of_all_earlier_members(plan_of):
    found = plan_jobs(plan_of("dec"), "data")
    assert [job.earlier[0] for job in found] == [(), (found[0].identity,), (found[0].identity, found[1].identity)]
    later = [job.earlier for job in plan_jobs(plan_of("dec+adv"), "data") if job.phase == "adv"]
    assert later == [job.earlier for job in found]
    for strategy in ("baseline", "part", "adv"):
        assert not any(any(job.earlier) for job in plan_jobs(plan_of(strategy), "data"))


@pytest.mark.parametrize("strategy", SUMS)
@pytest.mark.parametrize("members", [2, 8])
def test_jobs_of_every_sum_come_after_their_dependencies(strategy, members, plan_of):
    plan = plan_of(strategy, TOY.replace("members = 3", f"members = {members}"))
    done = set()
    for job in plan_jobs(plan, "data"):
        assert job.needs <= done
        done.add(job.identity)
    parts = plan.recipe.parts
    assert len(done) == members * (1 + ("adv" in parts)) + ("dverge" in parts)


def test_a_recipe_and_its_written_form_have_the_same_jobs(plan_of):
    plan = plan_of("dec+part+adv+dverge+harden")
    again = plan_of(plan.recipe.strategy, plan.recipe.toml())
    assert plan_jobs(again, "data") == plan_jobs(plan, "data")
    assert parse_recipe(plan.recipe.toml()) == again.recipe
