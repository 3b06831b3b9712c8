"""Attacks of an evaluation: names, targets, strengths, and errors for impossible ones."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch

from ecgquorum import Cohort, load_ensemble
from ecgquorum.attacks import PGD, SAP, Attack, ConfidentPGD, WorstCase
from ecgquorum.errors import AttackError, RegistryError
from ecgquorum.evaluation import (
    AttackCondition,
    EvaluationOptions,
    conditions_from_recipe,
    evaluate,
    evaluate_recipe,
)
from ecgquorum.evaluation.attack_conditions import describe_evaluation, make_conditions
from ecgquorum.evaluation.conditions import Condition
from ecgquorum.preprocessing import InputSpec
from ecgquorum.recipes import AttackRecipe, EvaluationRecipe

SPEC = InputSpec(("ECG",), 300.0)
UNIT = InputSpec(("ECG",), 500.0, "unit")


def test_plain_attacks_are_crafted_on_member_0_unless_they_need_all_members():
    made = make_conditions([PGD(10.0), ConfidentPGD(10.0), WorstCase(10.0)], SPEC)
    assert [one.condition for one in made] == [
        Condition("pgd", "member 0", 10.0),
        Condition("confident", "ensemble", 10.0),
        Condition("worst", "ensemble", 10.0),
    ]
    assert AttackCondition(PGD(10.0), "ensemble", 5).condition == Condition("pgd", "ensemble", 10.0, 5)
    assert AttackCondition(PGD(10.0), "member 2").member == 2


def test_conditions_go_from_weak_to_strong_within_an_attack():
    made = make_conditions([PGD(50.0), SAP(50.0), PGD(10.0), AttackCondition(PGD(1.0), "ensemble")], SPEC)
    assert [str(one.condition) for one in made] == [
        "pgd on member 0, 10",
        "pgd on member 0, 50",
        "sap on member 0, 50",
        "pgd on ensemble, 1",
    ]


def test_a_name_stands_for_the_papers_strengths_and_kernels():
    made = make_conditions(["pgd@1", "sap", "confident"], SPEC)
    assert [one.epsilon for one in made[:4]] == [10.0, 50.0, 75.0, 100.0]
    assert {one.target for one in made} == {"member 1", "member 0", "ensemble"}
    kernels = {one.attack.sizes for one in make_conditions(["sap"], UNIT)}
    assert kernels == {(9, 11, 15, 19, 21)}
    with pytest.raises(RegistryError, match="no attack is called 'nothing'"):
        make_conditions(["nothing"], SPEC)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: AttackCondition(PGD(1.0), "all"), 'must be "ensemble" or "member 0", not \'all\''),
        (lambda: AttackCondition(PGD(1.0), name="natural"), "cannot be called 'natural'"),
        (lambda: AttackCondition(PGD(1.0), name="mixed up"), "cannot be called"),
        (lambda: AttackCondition(PGD(torch.ones(3))), "one epsilon for all recordings"),
        (lambda: AttackCondition(PGD(1.0), records=0), "at least 1, not 0"),
        (lambda: make_conditions([PGD(1.0), PGD(1.0)], SPEC), "two attacks are called pgd on member 0, 1"),
        (lambda: make_conditions([PGD(1.0), PGD(1.0, n_steps=3)], SPEC), "AttackCondition"),
    ],
)
def test_impossible_conditions_give_a_reason(make, reason):
    with pytest.raises(AttackError, match=reason):
        make()


def test_an_evaluation_is_described_as_a_recipe_describes_it():
    made = make_conditions([PGD(10.0), PGD(50.0), SAP(50.0, n_steps=4)], SPEC)
    described = describe_evaluation(made, EvaluationOptions(seed=3), SPEC)
    recipe = EvaluationRecipe.model_validate(
        {**described, "epsilons": (10.0, 50.0), "attacks": tuple(_as_tuples(one) for one in described["attacks"])}
    )
    assert recipe.seed == 3
    assert [one.condition for one in conditions_from_recipe(recipe, SPEC)] == [one.condition for one in made]
    assert [one["options"] for one in described["attacks"]] == [{}, {"n_steps": 4}]
    with pytest.raises(AttackError, match="different options are called pgd on member 0"):
        describe_evaluation(make_conditions([PGD(1.0), PGD(2.0, n_steps=3)], SPEC), EvaluationOptions(), SPEC)


def _as_tuples(attack):
    return {**attack, "epsilons": tuple(attack["epsilons"])}


def test_the_papers_attack_has_no_options_whatever_the_scaling():
    for spec in (SPEC, UNIT):
        described = describe_evaluation(make_conditions(["sap", "pgd"], spec), EvaluationOptions(), spec)
        assert [one["options"] for one in described["attacks"]] == [{}, {}]


def test_a_recipe_gives_the_same_scorecard_as_objects(tiny_study):
    ensemble, cohort = load_ensemble(tiny_study / "runs/baseline"), Cohort(tiny_study / "cohort")
    recipe = EvaluationRecipe(
        epsilons=(20.0, 50.0),
        attacks=(AttackRecipe(kind="pgd", options={"n_steps": 2}, records=20),),
        masking_records=0,
    )
    attacks = [AttackCondition(PGD(e, n_steps=2), records=20) for e in (50.0, 20.0)]
    by_recipe = evaluate_recipe(ensemble, cohort, recipe)
    by_objects = evaluate(ensemble, cohort, attacks, options=EvaluationOptions(masking_records=0))
    assert by_recipe.rows == by_objects.rows
    assert by_recipe.evaluation == recipe.model_dump(mode="json")
    np.testing.assert_array_equal(by_recipe.records[1], by_objects.records[1])


@pytest.mark.parametrize(
    ("recipe", "reason"),
    [
        (AttackRecipe(kind="pgd", target="member 5"), "there is no member 5 in an ensemble of 2"),
        (AttackRecipe(kind="pgd", options={"stepz": 1}), "unknown option stepz; known: norm, n_steps"),
        (AttackRecipe(kind="pgd", options={"n_steps": "many"}), "n_steps: expected a value such as 20, found 'many'"),
        (AttackRecipe(kind="pgd", options={"n_steps": 0}), "n_steps: expected a value such as 20, found 0"),
        (AttackRecipe(kind="pgd", options={"n_steps": True}), "found True"),
        (AttackRecipe(kind="pgd", options={"random_start": 1}), "random_start"),
        (AttackRecipe(kind="apgd", options={"objective": "mse"}), "objective: expected 'ce' or 'dlr', found 'mse'"),
        (AttackRecipe(kind="sap", options={"norm": "l2"}), "norm"),
        (AttackRecipe(kind="pgd", options={"step": float("inf")}), "step: expected a value such as 0.1, found inf"),
        (AttackRecipe(kind="sap", options={"sizes": (4, 6)}), "sizes: expected odd numbers of samples"),
        (AttackRecipe(kind="sap", options={"sizes": ()}), "sizes: expected odd"),
        (AttackRecipe(kind="sap", options={"widths": ("a",)}), "widths: expected numbers above 0"),
        (
            AttackRecipe(kind="sap", options={"sizes": (5, 7), "widths": (1.0,), "pairs": True}),
            "as many sizes as widths",
        ),
        (AttackRecipe(kind="worst", target="ensemble", options={"attacks": 1}), "unknown option attacks"),
    ],
)
def test_impossible_attacks_of_a_recipe_give_a_reason(tiny_study, recipe, reason):
    ensemble, cohort = load_ensemble(tiny_study / "runs/baseline"), Cohort(tiny_study / "cohort")
    with pytest.raises(AttackError, match=reason):
        evaluate_recipe(ensemble, cohort, EvaluationRecipe(epsilons=(20.0,), attacks=(recipe,), masking_records=0))


def test_attacks_with_arrays_as_parameters_are_told_apart_by_name():
    @dataclass(frozen=True, kw_only=True)
    class Template(Attack):
        shape: object = None

        def perturb(self, model, x, y, valid, generator):
            return x + self.epsilon * torch.as_tensor(self.shape)

    made = make_conditions(
        [Template(1.0, shape=np.ones(3)), AttackCondition(Template(1.0, shape=np.zeros(3)), name="flat")], SPEC
    )
    described = describe_evaluation(made, EvaluationOptions(), SPEC)
    assert [one["name"] for one in described["attacks"]] == ["Template", "flat"]


def test_masking_is_checked_at_a_strength_of_the_maximum_norm(tiny_study):
    ensemble, cohort = load_ensemble(tiny_study / "runs/baseline"), Cohort(tiny_study / "cohort")
    attacks = [
        AttackCondition(PGD(e, norm=norm, n_steps=1), records=2, name=norm) for e, norm in ((9.0, "l2"), (3.0, "linf"))
    ]
    card = evaluate(ensemble, cohort, attacks, options=EvaluationOptions(masking_records=32))
    assert {row.epsilon for row in card.find(attack="masking")} == {3.0}
    assert {row.n_records for row in card.find(attack="masking")} == {2}  # no more than are attacked
