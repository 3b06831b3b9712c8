"""Merge scorecards of the same recordings."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ecgquorum.errors import ScorecardError
from ecgquorum.evaluation.comparisons import compare_ensembles
from ecgquorum.evaluation.conditions import ALL_CORRUPTIONS, ENSEMBLE, SHARED_WORST, WORST, WORST_KINDS, Condition
from ecgquorum.evaluation.corruption_summary import choose_reference, summary_rows
from ecgquorum.evaluation.examples import Example
from ecgquorum.evaluation.metric_rows import EnsembleFacts, MetricRow, make_row
from ecgquorum.evaluation.metric_values import metric_values
from ecgquorum.evaluation.predictions import LabelledPredictions
from ecgquorum.evaluation.scorecard import Scorecard
from ecgquorum.evaluation.worst_case import worst_of_all

_ANEW = (*WORST_KINDS, ALL_CORRUPTIONS)
"""Rows that depend on several conditions or ensembles, and are computed anew."""


def merge_scorecards(cards: Sequence[Scorecard]) -> list[Scorecard]:
    """One scorecard for each part of each cohort, in the order of the first ones; an ensemble counts once."""
    groups: dict[tuple[str, str], list[Scorecard]] = {}
    for card in cards:
        groups.setdefault((card.data.data, card.data.part), []).append(card)
    return [group[0] if len(group) == 1 else _merge_group(group) for group in groups.values()]


def _merge_group(cards: list[Scorecard]) -> Scorecard:
    first = cards[0]
    evaluation = first.evaluation | {"attacks": _merge_attacks(cards)} | _merge_shift(cards)
    conditions = list(dict.fromkeys(condition for card in cards for condition in card.conditions))
    ensembles: list[EnsembleFacts] = []
    rows: list[list[MetricRow]] = []
    predictions: dict[tuple[int, int], LabelledPredictions] = {}
    for card in cards:
        for e, facts in enumerate(card.ensembles):
            number = next((i for i, one in enumerate(ensembles) if _is_same_model(one, facts)), len(ensembles))
            if number == len(ensembles):
                ensembles.append(replace(facts, name=_free_name(facts, [one.name for one in ensembles])))
                rows.append([])
            _check_score_models(ensembles[number], facts)
            for c, condition in enumerate(card.conditions):
                if (e, c) in card.predictions:
                    predictions.setdefault((number, conditions.index(condition)), card.predictions[e, c])
            known = {_row_key(row) for row in rows[number]}
            named = (replace(row, ensemble=ensembles[number].name) for row in card.find(ensemble=facts.name))
            rows[number] += [row for row in named if row.attack not in _ANEW and _row_key(row) not in known]
    whole = replace(
        first,
        ensembles=tuple(ensembles),
        conditions=tuple(conditions),
        records=tuple(_find_records(condition, cards) for condition in conditions),
        predictions=predictions,
        evaluation=evaluation,
        examples=_merge_examples(cards, conditions),
    )
    return replace(
        whole,
        rows=tuple(
            row for e in range(len(ensembles)) for row in (*rows[e], *_worst_rows(whole, e), *_summary_rows(whole, e))
        ),
        comparisons=tuple(compare_ensembles(ensembles, conditions, whole.records, predictions)),
    )


def _merge_examples(cards: list[Scorecard], conditions: list[Condition]) -> tuple[Example, ...]:
    """The examples of all cards; a recording that several have is one example under the conditions of all."""
    merged: dict[int, Example] = {}
    for card in cards:
        for example in card.examples:
            known = merged.setdefault(example.position, replace(example, attacked={}, ensembles={}))
            for c, signal in example.attacked.items():
                known.attacked.setdefault(conditions.index(card.conditions[c]), signal)
                known.ensembles.setdefault(conditions.index(card.conditions[c]), example.ensembles[c])
    return tuple(merged.values())


def _summary_rows(card: Scorecard, e: int) -> Iterator[MetricRow]:
    """All corruptions together, relative to the reference of the first scorecard."""
    name = card.evaluation.get("reference", "")
    reference = choose_reference(card.ensembles, name if name in [one.name for one in card.ensembles] else "")
    return summary_rows(card.ensembles, card.data.data, card.conditions, card.records, card.predictions, (e, reference))


def _worst_rows(card: Scorecard, e: int) -> Iterator[MetricRow]:
    """The worst of the ensemble's own attacks, and where ensembles had different ones, of those that all had."""
    attacks = [c for c, condition in enumerate(card.conditions) if c == 0 or condition.is_attack]
    by_ensemble = [[c for c in attacks if (i, c) in card.predictions] for i in range(len(card.ensembles))]
    shared = [c for c in by_ensemble[0] if all(c in numbers for numbers in by_ensemble)]
    kinds = {WORST: by_ensemble[e]}
    if any(numbers != shared for numbers in by_ensemble):
        kinds[SHARED_WORST] = shared
    for name, numbers in kinds.items():
        conditions, records = [card.conditions[c] for c in numbers], [card.records[c] for c in numbers]
        predictions = {i: card.predictions[e, c] for i, c in enumerate(numbers)}
        for epsilon, worst in worst_of_all(conditions, records, predictions):
            condition, n_records = Condition(name, ENSEMBLE, epsilon), len(worst.labels)
            for value in metric_values(worst, card.data.classes, normalise=card.evaluation["normalise"]):
                yield make_row(card.ensembles[e], card.data.data, condition, n_records, value)


def _merge_attacks(cards: list[Scorecard]) -> list[dict[str, object]]:
    """The attacks of all cards; raise an error where one name stands for two attacks, or other settings differ."""
    known: dict[tuple[object, object], dict[str, object]] = {}
    for card in cards:
        for key in ("seed", "normalise"):
            if card.evaluation[key] != cards[0].evaluation[key]:
                raise ScorecardError(
                    f"scorecards with different evaluation.{key} cannot be merged; report them separately"
                )
        for attack in card.evaluation["attacks"]:
            name = (attack["name"], attack["target"])
            if {**known.setdefault(name, attack), "epsilons": None} != {**attack, "epsilons": None}:
                raise ScorecardError(
                    f"two different attacks are called {name[0]} on {name[1]}; write two reports, or give one "
                    "attack another name"
                )
    return list(known.values())


def _merge_shift(cards: list[Scorecard]) -> dict[str, list[object]]:
    """The corruptions, severities and sets of all cards."""
    return {
        key: list(dict.fromkeys(value for card in cards for value in card.evaluation.get(key, ())))
        for key in ("corruptions", "severities", "ood")
    }


def _is_same_model(one: EnsembleFacts, other: EnsembleFacts) -> bool:
    return (one.model, one.information_range) == (other.model, other.information_range)


def _check_score_models(one: EnsembleFacts, other: EnsembleFacts) -> None:
    """Raise an error where one model was evaluated with two risks: its conditions could not be compared."""
    if (one.temperature, one.fitted) != (other.temperature, other.fitted):
        raise ScorecardError(
            f"{one.name} was evaluated with two different fits of its risk or temperature; evaluate it again, or "
            "report the scorecards separately"
        )


def _row_key(row: MetricRow) -> tuple[object, ...]:
    return (row.attack, row.target, row.epsilon, row.metric, row.detail)


def _find_records(condition: Condition, cards: list[Scorecard]) -> np.ndarray:
    """The recordings that the condition covers, which are the same in every scorecard that has it."""
    return next(card.records[card.conditions.index(condition)] for card in cards if condition in card.conditions)


def _free_name(facts: EnsembleFacts, taken: list[str]) -> str:
    """The ensemble's name, with its seed or its hash appended where another ensemble has it already."""
    names = (facts.name, f"{facts.name} seed {facts.seed}", f"{facts.name} {facts.model[:8]}")
    return next((name for name in names if name not in taken), f"{facts.name} {len(taken)}")
