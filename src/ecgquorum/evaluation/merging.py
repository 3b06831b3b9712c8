"""Scorecards of the same recordings put together."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ecgquorum.errors import ScorecardError
from ecgquorum.evaluation.conditions import Condition
from ecgquorum.evaluation.measuring import Answers
from ecgquorum.evaluation.scorecard import EnsembleFacts, Row, Scorecard


def merged(cards: Sequence[Scorecard]) -> list[Scorecard]:
    """One scorecard for each part of each cohort, in the order of their first ones; an ensemble counts once."""
    groups: dict[tuple[str, str], list[Scorecard]] = {}
    for card in cards:
        groups.setdefault((card.data.data, card.data.part), []).append(card)
    return [group[0] if len(group) == 1 else _together(group) for group in groups.values()]


def _together(cards: list[Scorecard]) -> Scorecard:
    first = cards[0]
    conditions = list(dict.fromkeys(condition for card in cards for condition in card.conditions))
    records = {condition: _records_under(condition, cards) for condition in conditions}
    ensembles: list[EnsembleFacts] = []
    rows: list[Row] = []
    answers: dict[tuple[int, int], Answers] = {}
    for card in cards:
        for e, facts in enumerate(card.ensembles):
            if any((one.model, one.information_range) == (facts.model, facts.information_range) for one in ensembles):
                continue
            name = _free_name(facts, [one.name for one in ensembles])
            for c, condition in enumerate(card.conditions):
                answers[len(ensembles), conditions.index(condition)] = card.answers[e, c]
            rows += [replace(row, ensemble=name) for row in card.find(ensemble=facts.name)]
            ensembles.append(replace(facts, name=name))
    places = {number: conditions.index(condition) for number, condition in enumerate(first.conditions)}
    examples = tuple(
        replace(
            example,
            crafted={places[c]: signal for c, signal in example.crafted.items()},
            drawn_of={places[c]: names for c, names in example.drawn_of.items()},
        )
        for example in first.examples
    )
    return replace(
        first,
        ensembles=tuple(ensembles),
        conditions=tuple(conditions),
        rows=tuple(rows),
        records=tuple(records[condition] for condition in conditions),
        answers=answers,
        examples=examples,
    )


def _records_under(condition: Condition, cards: list[Scorecard]) -> np.ndarray:
    """The recordings that the condition covers, which must be the same in every scorecard that has it."""
    found = [card.records[card.conditions.index(condition)] for card in cards if condition in card.conditions]
    if any(not np.array_equal(found[0], other) for other in found[1:]):
        raise ScorecardError(
            f"expected scorecards of the same recordings, found {condition} on different ones; "
            "evaluate with the same evaluation.seed"
        )
    return found[0]


def _free_name(facts: EnsembleFacts, taken: list[str]) -> str:
    """The ensemble's name, with its seed or its model behind it where another one has it already."""
    names = (facts.name, f"{facts.name} seed {facts.seed}", f"{facts.name} {facts.model[:8]}")
    return next((name for name in names if name not in taken), f"{facts.name} {len(taken)}")
