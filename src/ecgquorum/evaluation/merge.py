"""Scorecards of the same recordings put together."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ecgquorum.errors import ScorecardError
from ecgquorum.evaluation.conditions import WORST, Condition
from ecgquorum.evaluation.metric_rows import Answers, measured
from ecgquorum.evaluation.scorecard import EnsembleFacts, Row, Scorecard, row_of
from ecgquorum.evaluation.worst_case import worst_of_all
from ecgquorum.recipes.study import WHOLE


def merged(cards: Sequence[Scorecard]) -> list[Scorecard]:
    """One scorecard for each part of each cohort, in the order of their first ones; an ensemble counts once."""
    groups: dict[tuple[str, str], list[Scorecard]] = {}
    for card in cards:
        groups.setdefault((card.data.data, card.data.part), []).append(card)
    return [group[0] if len(group) == 1 else _together(group) for group in groups.values()]


def _together(cards: list[Scorecard]) -> Scorecard:
    first = cards[0]
    evaluation = first.evaluation | {"attacks": _attacks(cards)}
    conditions = list(dict.fromkeys(condition for card in cards for condition in card.conditions))
    records = tuple(_records_under(condition, cards) for condition in conditions)
    ensembles: list[EnsembleFacts] = []
    rows: list[list[Row]] = []
    answers: dict[tuple[int, int], Answers] = {}
    for card in cards:
        for e, facts in enumerate(card.ensembles):
            number = next((i for i, one in enumerate(ensembles) if _same(one, facts)), len(ensembles))
            if number == len(ensembles):
                ensembles.append(replace(facts, name=_free_name(facts, [one.name for one in ensembles])))
                rows.append([])
            for c, condition in enumerate(card.conditions):
                answers[number, conditions.index(condition)] = card.answers[e, c]
            known = {_place(row) for row in rows[number]}
            named = (replace(row, ensemble=ensembles[number].name) for row in card.find(ensemble=facts.name))
            rows[number] += [row for row in named if row.attack != WORST and _place(row) not in known]
    places = {number: conditions.index(condition) for number, condition in enumerate(first.conditions)}
    whole = replace(
        first,
        ensembles=tuple(ensembles),
        conditions=tuple(conditions),
        records=records,
        answers=answers,
        evaluation=evaluation,
        examples=tuple(
            replace(
                example,
                crafted={places[c]: signal for c, signal in example.crafted.items()},
                drawn_of={places[c]: names for c, names in example.drawn_of.items()},
            )
            for example in first.examples
        ),
    )
    return replace(whole, rows=tuple(row for e in range(len(ensembles)) for row in (*rows[e], *_worst(whole, e))))


def _worst(card: Scorecard, e: int) -> Iterator[Row]:
    """The worst of the conditions that every ensemble was put to: of others it would not be the same question."""
    shared = [c for c in range(len(card.conditions)) if all((i, c) in card.answers for i in range(len(card.ensembles)))]
    conditions, records = [card.conditions[c] for c in shared], [card.records[c] for c in shared]
    answers = {i: card.answers[e, c] for i, c in enumerate(shared)}
    for epsilon, worst in worst_of_all(conditions, records, answers):
        condition, n_records = Condition(WORST, WHOLE, epsilon), len(worst.truth)
        for one in measured(worst, card.data.classes):
            yield row_of(card.ensembles[e], card.data.data, condition, n_records, one)


def _attacks(cards: list[Scorecard]) -> list[dict[str, object]]:
    """The attacks of all; what has one name must be one attack, and all else must be as in the first scorecard."""
    known: dict[tuple[object, object], dict[str, object]] = {}
    for card in cards:
        for key in ("seed", "normalise"):
            if card.evaluation[key] != cards[0].evaluation[key]:
                raise ScorecardError(f"expected scorecards with the same evaluation.{key}, found different ones")
        for attack in card.evaluation["attacks"]:
            name = (attack["name"], attack["target"])
            if {**known.setdefault(name, attack), "epsilons": None} != {**attack, "epsilons": None}:
                raise ScorecardError(
                    f"expected one attack called {name[0]} on {name[1]}, found two that differ; report them apart, or "
                    "give one another name"
                )
    return list(known.values())


def _same(one: EnsembleFacts, other: EnsembleFacts) -> bool:
    return (one.model, one.information_range) == (other.model, other.information_range)


def _place(row: Row) -> tuple[object, ...]:
    return (row.attack, row.target, row.epsilon, row.measure, row.detail)


def _records_under(condition: Condition, cards: list[Scorecard]) -> np.ndarray:
    """The recordings that the condition covers, which are the same in every scorecard that has it."""
    return next(card.records[card.conditions.index(condition)] for card in cards if condition in card.conditions)


def _free_name(facts: EnsembleFacts, taken: list[str]) -> str:
    """The ensemble's name, with its seed or its model behind it where another one has it already."""
    names = (facts.name, f"{facts.name} seed {facts.seed}", f"{facts.name} {facts.model[:8]}")
    return next((name for name in names if name not in taken), f"{facts.name} {len(taken)}")
