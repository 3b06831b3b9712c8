"""Evaluate ensembles on natural and attacked recordings, and build the scorecard."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from ecgquorum.attacks import Attack
from ecgquorum.corruptions import Corruption
from ecgquorum.ensemble import Ensemble
from ecgquorum.ensemble.bundle import software_versions
from ecgquorum.errors import MemberError, ScorecardError
from ecgquorum.evaluation.attack_conditions import AttackCondition, describe_evaluation, make_conditions
from ecgquorum.evaluation.comparisons import compare_ensembles
from ecgquorum.evaluation.conditions import (
    CORRUPTION,
    ENSEMBLE,
    MASKING,
    MEMBERS,
    MIXED,
    NATURAL,
    OOD,
    WORST,
    Condition,
    choose_records,
    find_mixtures,
)
from ecgquorum.evaluation.corruption_summary import check_reference, choose_reference, summary_rows
from ecgquorum.evaluation.data import EvaluationInput, open_data
from ecgquorum.evaluation.diversity import diversity_values
from ecgquorum.evaluation.ensemble_names import hash_score_models, name_ensembles, read_training_facts
from ecgquorum.evaluation.fingerprint import hash_module
from ecgquorum.evaluation.gradient_masking import check_gradient_masking
from ecgquorum.evaluation.metric_rows import EnsembleFacts, MetricRow, make_row
from ecgquorum.evaluation.metric_values import ONE_MEMBER, MetricValue, is_silent, metric_values
from ecgquorum.evaluation.mixed_conditions import draw_assignments, mixed_accuracy, mixed_augrc
from ecgquorum.evaluation.options import EvaluationOptions
from ecgquorum.evaluation.predictions import LabelledPredictions
from ecgquorum.evaluation.runner import EvaluationRun
from ecgquorum.evaluation.scorecard import DataFacts, Scorecard
from ecgquorum.evaluation.shift_metrics import draw_halves, ood_values, shift_values
from ecgquorum.evaluation.transform_conditions import corruption_conditions, describe_shift, ood_conditions
from ecgquorum.evaluation.worst_case import worst_of_all
from ecgquorum.members import embed, freeze
from ecgquorum.metrics import UNDEFINED, Array
from ecgquorum.parallel import Executor
from ecgquorum.progress import NO_PROGRESS, Progress

_UNITS = {"microvolt": "µV", "unit": "of the lead's peak", "none": "input units"}
_FEATURE_BATCH = 64


def evaluate(
    ensembles: Ensemble | Mapping[str, Ensemble],
    data: EvaluationInput,
    attacks: Iterable[Attack | AttackCondition | str] | None = None,
    corruptions: Iterable[Corruption | str] | None = None,
    *,
    options: EvaluationOptions = EvaluationOptions(),  # noqa: B008 (frozen)
    cache: str | Path | None = None,
    executor: Executor | None = None,
    progress: Progress = NO_PROGRESS,
) -> Scorecard:
    """Classify recordings with every ensemble, natural and under every attack and corruption; compute all metrics.

    ensembles: one, or several by their names in tables; members may be any `nn.Module`
    data:      a cohort, of which `options.part` is taken, or arrays (x, y): x (record, lead, time) in the units of the
               model's input, zero where it is padded, and y (record,) the numbers of the classes
    attacks:   `[PGD(10.0), PGD(50.0)]` are crafted on member 0; `AttackCondition(PGD(10.0), "ensemble", records=100)`
               says otherwise; a name such as "pgd" stands for the paper's strengths; None: natural recordings only
    corruptions: `[Muscle(severity=3)]`, or names such as "muscle" or "all" for `options.severities`; sets of recordings
               out of distribution are in `options.ood`
    cache:     folder or URL where attacked recordings are kept, so that an interrupted evaluation can continue
    executor:  classifies in other processes; None: in this one
    """
    if isinstance(ensembles, Ensemble):
        ensembles = name_ensembles([ensembles])
    if not ensembles:
        raise ScorecardError("there is no ensemble to evaluate; pass at least one")
    check_reference(ensembles, options.reference)
    first = next(iter(ensembles.values()))
    opened = open_data(data, options.part, first)
    conditions = make_conditions(attacks or (), first.input)
    if options.masking_epsilon is None:
        options = replace(options, masking_epsilon=_choose_masking_epsilon(conditions))
    records = options.shift_records
    shifted = corruption_conditions(corruptions or (), options.severities, opened.leads, records)
    shifted += ood_conditions(options.ood, opened.leads, opened.unseen_classes, records)
    run = EvaluationRun(ensembles, opened, [*conditions, *shifted], options, cache, progress)
    described = describe_evaluation(conditions, options, first.input) | describe_shift(shifted)
    run.run(executor)
    facts = [_describe_facts(run, e) for e in range(len(run.ensembles))]
    described["reference"] = facts[choose_reference(facts, options.reference)].name
    counts = {name: int((opened.labels == i).sum()) for i, name in enumerate(opened.classes)}
    return Scorecard(
        data=DataFacts(
            source=opened.source,
            part=opened.part,
            classes=opened.classes,
            class_names=opened.class_names,
            n_recordings=counts,
            unit=_UNITS[first.input.scaling],
            data=opened.data_hash,
            rate_hz=opened.rate_hz,
            n_train=opened.n_train,
        ),
        ensembles=tuple(facts),
        conditions=tuple(run.conditions),
        rows=tuple(
            row for e in range(len(facts)) for row in (*_make_rows(run, e, facts[e]), *_shift_rows(run, e, facts))
        ),
        ids=opened.ids,
        labels=opened.labels,
        records=tuple(run.records),
        predictions=run.predictions,
        examples=tuple(run.examples),
        evaluation=described,
        versions=software_versions(),
        comparisons=tuple(compare_ensembles(facts, run.conditions, run.records, run.predictions)),
    )


def _describe_facts(run: EvaluationRun, e: int) -> EnsembleFacts:
    ensemble = run.ensembles[e]
    training = read_training_facts(ensemble)
    weights = "".join(hash_module(member) for member in ensemble.members)
    return EnsembleFacts(
        name=run.names[e],
        strategy=training.strategy,
        seed=training.seed,
        members=len(ensemble.members),
        model=str(ensemble.card.get("weights_sha256") or hashlib.sha256(weights.encode()).hexdigest()),
        information_range=run.ranges[e],
        temperature=ensemble.temperature,
        same_cohort=run.data.is_training_cohort(ensemble.card),
        network=training.network,
        deviations=training.deviations,
        recipe_hashes=training.recipe_hashes,
        fitted=hash_score_models(ensemble),
    )


def _make_rows(run: EvaluationRun, e: int, facts: EnsembleFacts) -> Iterator[MetricRow]:
    """All metrics of one ensemble."""
    run.report_progress(f"metrics of {facts.name}")

    def rows(condition: Condition, n_records: int, values: Iterable[MetricValue]) -> Iterator[MetricRow]:
        return (make_row(facts, run.data.data_hash, condition, n_records, value) for value in values)

    values = partial(metric_values, classes=run.data.classes, normalise=run.options.normalise)
    predictions = {number: run.predictions[e, number] for number in range(len(run.conditions))}
    for number, condition in enumerate(run.conditions):
        if condition.target != OOD:
            yield from rows(condition, len(run.records[number]), values(predictions[number]))
    for epsilon, worst in worst_of_all(run.conditions, run.records, predictions):
        yield from rows(Condition(WORST, ENSEMBLE, epsilon), len(worst.labels), values(worst))
    for attack, target, numbers in find_mixtures(run.conditions):
        condition = Condition(f"{MIXED} {attack}", target, run.conditions[numbers[-1]].epsilon)
        yield from rows(condition, len(run.data), _mixed_values(run, e, numbers))
    yield from rows(Condition(NATURAL, MEMBERS), len(run.data), _member_values(run, e))
    strength = run.options.masking_epsilon
    positions = choose_records(len(run.data), min(run.options.masking_records, run.n_attacked), run.options.seed)
    if strength is not None and len(positions):
        run.report_progress(f"masking checks of {facts.name}")
        ensemble = run.ensembles[e]
        batch = run.data.batch(positions, ensemble.input).to(ensemble.device)
        checks = check_gradient_masking(ensemble, batch, strength, run.options.seed)
        yield from rows(Condition(MASKING, ENSEMBLE, strength), len(positions), checks)


def _shift_rows(run: EvaluationRun, e: int, facts: list[EnsembleFacts]) -> Iterator[MetricRow]:
    """Metrics under corruptions and of recordings out of distribution, and of all corruptions together."""
    if not any(condition.target in (CORRUPTION, OOD) for condition in run.conditions):
        return
    run.report_progress(f"shift of {facts[e].name}")
    natural, halves = run.predictions[e, 0], draw_halves(len(run.data), run.options.seed)
    for number, condition in enumerate(run.conditions):
        found, positions = run.predictions[e, number], run.records[number]
        if condition.target == OOD:
            values = ood_values(found, natural.at(positions))
        elif condition.is_attack:
            continue
        else:
            values = shift_values(found, natural, positions, halves, run.data.classes)
        for value in values:
            yield make_row(facts[e], run.data.data_hash, condition, len(positions), value)
    reference = choose_reference(facts, run.options.reference)
    yield from summary_rows(facts, run.data.data_hash, run.conditions, run.records, run.predictions, (e, reference))


def _choose_masking_epsilon(conditions: list[AttackCondition]) -> float | None:
    """The second of the strengths of attacks in the maximum norm, in which the checks attack."""
    strengths = sorted({one.epsilon for one in conditions if one.attack.norm == "linf"})
    return strengths[min(1, len(strengths) - 1)] if strengths else None


def _mixed_values(run: EvaluationRun, e: int, numbers: tuple[int, ...]) -> Iterator[MetricValue]:
    """Metrics where some recordings are attacked: the same ones, as strongly, for every ensemble."""
    strengths = [run.predictions[e, i] for i in (0, *numbers)]
    errors = [~predictions.correct for predictions in strengths]
    scores = [{"": predictions.uncertainty} | predictions.scores() for predictions in strengths]
    assignments = draw_assignments(len(run.data), run.options.seed)
    yield MetricValue("accuracy", "", mixed_accuracy(errors, assignments))
    for name in scores[0]:
        if is_silent(strengths[0], name):
            yield MetricValue("augrc", name, UNDEFINED, ONE_MEMBER)
        else:
            yield MetricValue("augrc", name, mixed_augrc(errors, [one[name] for one in scores], assignments))


def _member_values(run: EvaluationRun, e: int) -> Iterator[MetricValue]:
    """Accuracy of each member, and how different members are on recordings that none was trained on."""
    natural, classes = run.predictions[e, 0], run.data.classes
    for k in range(natural.raw_member_probs.shape[1]):
        alone = LabelledPredictions(natural.labels, natural.raw_member_probs[:, k : k + 1], natural.uncertainty)
        yield replace(next(metric_values(alone, classes, only="accuracy")), detail=str(k))
    if not natural.single_member:
        yield from diversity_values(_extract_features(run, e), natural)


def _extract_features(run: EvaluationRun, e: int) -> list[Array | None]:
    """(record, feature) of each member; None for a member without features."""
    ensemble = run.ensembles[e]
    found: list[list[Tensor] | None] = [[] for _ in ensemble.members]
    for batch in run.data.unseen_batches(ensemble.input, _FEATURE_BATCH):
        for k, member in enumerate(ensemble.members):
            features = found[k]
            if features is not None:
                try:
                    with freeze(member), torch.no_grad():
                        features.append(embed(member, batch.signal.to(ensemble.device)).flatten(1).cpu())
                except MemberError:
                    found[k] = None
    return [None if features is None else torch.cat(features).double().numpy() for features in found]
