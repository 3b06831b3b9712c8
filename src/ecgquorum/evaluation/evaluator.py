"""Putting ensembles to the test, and writing down all that follows from their answers."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from ecgquorum.cohorts import Cohort
from ecgquorum.ensemble import Ensemble
from ecgquorum.ensemble.bundle import software_versions
from ecgquorum.evaluation.conditions import MASKING, MEMBERS, MIXED, NATURAL, WORST, Condition, mixtures
from ecgquorum.evaluation.diversity import diversity_rows
from ecgquorum.evaluation.gradient_masking import check_gradient_masking
from ecgquorum.evaluation.metric_rows import ONE_MEMBER, UNDEFINED, Answers, Measured, measured
from ecgquorum.evaluation.mixed_conditions import assignments, mixed_accuracy, mixed_deferral_auc
from ecgquorum.evaluation.runner import Bench, Told
from ecgquorum.evaluation.scorecard import DataFacts, EnsembleFacts, Row, Scorecard, row_of
from ecgquorum.evaluation.worst_case import worst_of_all
from ecgquorum.parallel import Executor
from ecgquorum.recipes import EvaluationRecipe, PartitionRecipe, Recipe, parse_recipe
from ecgquorum.recipes.study import EPSILONS
from ecgquorum.recipes.training import Bands
from ecgquorum.training.checkpoint_store import extract_features

_UNITS = {"microvolt": "µV", "unit": "of the lead's peak"}


def evaluate(
    ensembles: Ensemble | Mapping[str, Ensemble],
    cohort: Cohort,
    evaluation: EvaluationRecipe | None = None,
    *,
    store: str | Path | None = None,
    told: Told | None = None,
    executor: Executor | None = None,
    device: str = "auto",
) -> Scorecard:
    """Classify a part of the cohort under every condition by every ensemble, measure the answers, look for masking.

    ensembles: one, or several by the names that tables call them by
    store:     where crafted recordings are kept and looked for; without one they are crafted anew
    told:      is told how far it is
    executor:  who attacks and answers; None: this process
    device:    where an executor's processes compute; here it is where the ensembles are
    """
    if isinstance(ensembles, Ensemble):
        ensembles = name_ensembles([ensembles])
    evaluation = evaluation or EvaluationRecipe()
    if evaluation.epsilons is None and ensembles:
        scaling = next(iter(ensembles.values())).input.scaling
        evaluation = evaluation.model_copy(update={"epsilons": EPSILONS[scaling]})
    bench = Bench(ensembles, cohort, evaluation, Path(store) if store else None, told, executor, device)
    bench.run()
    facts = [_facts(bench, e) for e in range(len(bench.ensembles))]
    counts = {name: int((bench.truth == i).sum()) for i, name in enumerate(cohort.classes)}
    return Scorecard(
        data=DataFacts(
            source=str(cohort.card["source"]),
            part=evaluation.part,
            classes=cohort.classes,
            class_names=cohort.class_names,
            n_recordings=counts,
            unit=_UNITS[bench.ensembles[0].input.scaling],
            data=cohort.data_hash,
            rate_hz=cohort.rate_hz,
            n_train=len(cohort.part("train")),
        ),
        ensembles=tuple(facts),
        conditions=tuple(bench.conditions),
        rows=tuple(row for e in range(len(facts)) for row in _rows(bench, e, facts[e])),
        ids=tuple(cohort.rows[i].id for i in bench.indices),
        truth=bench.truth,
        records=tuple(bench.records),
        answers=bench.answers,
        examples=tuple(bench.examples),
        evaluation=evaluation.model_dump(mode="json"),
        versions=software_versions(),
    )


def name_ensembles(ensembles: Iterable[Ensemble]) -> dict[str, Ensemble]:
    """Each by its strategy; by recipe, seed and number as well where that is not enough to tell them apart."""
    ensembles = list(ensembles)
    for parts in (("strategy",), ("strategy", "seed"), ("strategy", "seed", "recipe")):
        names = [_called(ensemble, parts) for ensemble in ensembles]
        if len(set(names)) == len(names):
            return dict(zip(names, ensembles, strict=True))
    return {f"{name} #{number}": ensemble for number, (name, ensemble) in enumerate(zip(names, ensembles, strict=True))}


def _called(ensemble: Ensemble, parts: tuple[str, ...]) -> str:
    if "recipe" not in ensemble.card:
        return "ensemble"
    recipe = parse_recipe(ensemble.card["recipe"])
    beyond = {"strategy": "", "seed": f" seed {recipe.seed}", "recipe": f" {recipe.name}"}
    return recipe.strategy + "".join(beyond[part] for part in parts)


def _facts(bench: Bench, e: int) -> EnsembleFacts:
    ensemble = bench.ensembles[e]
    recipe = parse_recipe(ensemble.card["recipe"]) if "recipe" in ensemble.card else None
    return EnsembleFacts(
        name=bench.names[e],
        strategy=recipe.strategy if recipe else "",
        seed=recipe.seed if recipe else 0,
        members=len(ensemble.members),
        model=str(ensemble.card.get("weights_sha256", "")),
        information_range=bench.ranges[e],
        temperature=ensemble.temperature,
        same_cohort=ensemble.card.get("data_hash") == bench.cohort.data_hash,
        network=_described(recipe) if recipe else "",
    )


def _described(recipe: Recipe) -> str:
    """The network, and what was done to its training that a reader must know to compare it with others'."""
    told = f"{recipe.member.kind}, width {recipe.member.width:g}"
    plan = recipe.training
    if plan.attack_epsilon is not None:
        told += f", hardened ({plan.attacked:.0%} of each batch attacked by one step of up to {plan.attack_epsilon:g})"
    if "part" in recipe.parts and recipe.partition != PartitionRecipe():
        told += f", in other bands than the paper's ({', '.join(map(_heard, recipe.partition.bands))})"
    return told


def _heard(bands: Bands) -> str:
    return bands if isinstance(bands, str) else " and ".join(f"{low:g} to {high:g} Hz" for low, high in bands)


def _rows(bench: Bench, e: int, facts: EnsembleFacts) -> Iterator[Row]:
    """All that is measured of one ensemble."""
    bench.tell(f"measuring {facts.name}")

    def rows(condition: Condition, n_records: int, found: Iterable[Measured]) -> Iterator[Row]:
        return (row_of(facts, bench.cohort.data_hash, condition, n_records, one) for one in found)

    classes = bench.cohort.classes
    said = {number: bench.answers[e, number] for number in range(len(bench.conditions))}
    for number, condition in enumerate(bench.conditions):
        yield from rows(condition, len(bench.records[number]), measured(said[number], classes))
    for epsilon, worst in worst_of_all(bench.conditions, bench.records, said):
        yield from rows(Condition(WORST, "ensemble", epsilon), len(worst.truth), measured(worst, classes))
    for attack, target, numbers in mixtures(bench.conditions):
        condition = Condition(f"{MIXED} {attack}", target, bench.conditions[numbers[-1]].epsilon)
        yield from rows(condition, len(bench.indices), _mixed(bench, e, numbers))
    yield from rows(Condition(NATURAL, MEMBERS), len(bench.indices), _members(bench, e))
    places = bench.chosen(bench.evaluation.masking_records)
    if len(places):
        bench.tell(f"looking for hidden gradients of {facts.name}")
        epsilons = sorted(bench.evaluation.epsilons or ())
        epsilon = epsilons[min(1, len(epsilons) - 1)]
        ensemble = bench.ensembles[e]
        batch = bench.cohort.batch(bench.indices[places], ensemble.input).to(next(ensemble.parameters()).device)
        checks = check_gradient_masking(ensemble, batch, epsilon, bench.evaluation.seed)
        yield from rows(Condition(MASKING, "ensemble", epsilon), len(places), checks)


def _mixed(bench: Bench, e: int, numbers: tuple[int, ...]) -> Iterator[Measured]:
    """On recordings of which some are attacked: the same ones, as strongly, for every ensemble."""
    strengths = [bench.answers[e, i] for i in (0, *numbers)]
    assigned = assignments(len(bench.indices), bench.evaluation.seed)
    yield Measured("accuracy", "", mixed_accuracy(strengths, assigned))
    if strengths[0].alone:
        yield Measured("deferral_auc", "", UNDEFINED, ONE_MEMBER)
    else:
        yield Measured("deferral_auc", "", mixed_deferral_auc(strengths, assigned))


def _members(bench: Bench, e: int) -> Iterator[Measured]:
    """Each member by itself, and how different they are on recordings that none was trained on."""
    ensemble, natural, cohort = bench.ensembles[e], bench.answers[e, 0], bench.cohort
    for k in range(natural.member_probs.shape[1]):
        alone = Answers(natural.truth, natural.member_probs[:, k : k + 1], natural.uncertainty)
        yield replace(next(measured(alone, cohort.classes)), detail=str(k))
    if natural.alone:
        return
    unseen = np.concatenate([cohort.part("tune"), bench.indices]) if bench.evaluation.part == "test" else bench.indices
    features = [
        extract_features(member, cohort, unseen, ensemble.input).double().numpy() for member in ensemble.members
    ]
    yield from diversity_rows(features, natural)
