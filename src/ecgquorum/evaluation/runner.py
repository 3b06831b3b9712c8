"""The bench: every ensemble's answers under every condition, on the same recordings."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ecgquorum.cohorts import Batch, Cohort
from ecgquorum.ensemble import Ensemble, Prediction
from ecgquorum.ensemble.prediction import information_range
from ecgquorum.errors import CohortError, ScorecardError
from ecgquorum.evaluation.attack_cache import Crafting
from ecgquorum.evaluation.conditions import choose_records, plan_conditions
from ecgquorum.evaluation.examples import Example, choose_examples, draw_attacked
from ecgquorum.evaluation.metric_rows import Answers
from ecgquorum.evaluation.shards import EvaluationContext, Shard, plan_shards, predict_shards
from ecgquorum.parallel import Executor
from ecgquorum.recipes import EvaluationRecipe

Told = Callable[[str, int, int], None]
"""What is being done, how many recordings are behind us, and of how many."""


class Bench:
    """One evaluation while it runs.

    ensembles: by name, in the order that everything numbers them by
    records:   for each condition the places in the part that it covers
    answers:   (ensemble, condition), by number -> what was said of those recordings
    ranges:    for each ensemble the range of information that its uncertainty is normalised by
    """

    def __init__(
        self,
        ensembles: Mapping[str, Ensemble],
        cohort: Cohort,
        evaluation: EvaluationRecipe,
        store: Path | None = None,
        told: Told | None = None,
        executor: Executor | None = None,
        device: str = "auto",
    ) -> None:
        self.names, self.ensembles = list(ensembles), list(ensembles.values())
        self.cohort, self.evaluation = cohort, evaluation
        self.indices = cohort.part(evaluation.part)
        self._check()
        self.truth = cohort.labels[self.indices]
        self._plan = plan_conditions(evaluation)
        self.conditions = [condition for condition, _ in self._plan]
        self.records = [self.chosen(condition.records) for condition in self.conditions]
        self.ranges = [ensemble.information_range for ensemble in self.ensembles]
        self.answers: dict[tuple[int, int], Answers] = {}
        self.examples: list[Example] = []
        self._told, self._executor = told, executor
        place = store.resolve() if store else None
        self._sitting = EvaluationContext(
            self.ensembles, cohort, self.indices, self._plan, self.records, evaluation.seed, place, device
        )
        self._done, self._total = 0, len(self.ensembles) * sum(map(len, self.records))

    def chosen(self, records: int | None) -> NDArray[np.int64]:
        """Places in the part of so many recordings."""
        return choose_records(len(self.indices), records, self.evaluation.seed)

    def run(self) -> None:
        """Natural recordings first, then attack by attack."""
        self._answer([0])
        self._after_natural()
        self._answer(range(1, len(self._plan)))

    def tell(self, what: str, done: int = 0) -> None:
        """Say what is being done."""
        self._done += done
        if self._told:
            self._told(what, self._done, self._total)

    def _answer(self, numbers: Sequence[int]) -> None:
        """Every ensemble's answers under these conditions."""
        wanted = [example.place for example in self.examples]
        drawn: list[tuple[Shard, dict[int, Batch]]] = []
        shards = (shard for number in numbers for shard in plan_shards(self._sitting, number, wanted))
        probs: dict[tuple[int, int], NDArray[np.float64]] = {}
        for shard, answered in predict_shards(self._sitting, self._telling(shards), self._executor):
            n_records = len(self.records[shard.number])
            for e, found in answered.probs.items():
                whole = probs.setdefault((e, shard.number), np.empty((n_records, *found.shape[1:])))
                whole[list(shard.places)] = found
            drawn.append((shard, answered.drawn))
            self.tell(str(self.conditions[shard.number]), len(shard.group) * len(shard.places))
        for shard, batches in sorted(drawn, key=lambda one: one[0].number):  # in whatever order they came
            self._draw_examples(shard, batches)
        for e, number in sorted(probs):
            self.answers[e, number] = self._said(e, number, probs[e, number])

    def _telling(self, shards: Iterable[Shard]) -> Iterator[Shard]:
        """Say what is begun, when it is begun."""
        for shard in shards:
            self.tell(str(self.conditions[shard.number]))
            yield shard

    def _said(self, e: int, number: int, probs: NDArray[np.float64]) -> Answers:
        """Probabilities as they will be stored, so that what is measured can be measured again."""
        rounded = probs.astype(np.float32).astype(np.float64)
        lost = np.flatnonzero(~np.isfinite(rounded).all(axis=(1, 2)))
        if len(lost):
            record = self.cohort.rows[self.indices[self.records[number][lost[0]]]].id
            raise ScorecardError(
                f"{self.names[e]}: expected finite probabilities, found none for {record} ({self.conditions[number]})"
            )
        truth = self.truth[self.records[number]]
        uncertainty = self._prediction(rounded, self.ranges[e]).uncertainty
        return Answers(truth, rounded, uncertainty, self.ensembles[e].temperature)

    def _prediction(self, probs: NDArray[np.float64], between: tuple[float, float]) -> Prediction:
        return Prediction(("",) * len(probs), self.cohort.classes, probs, between)

    def _after_natural(self) -> None:
        """Normalise by this part, if asked to, and choose the examples, before anything is attacked."""
        if self.evaluation.normalise == "evaluated":
            for e in range(len(self.ensembles)):
                said = self.answers[e, 0]
                self.ranges[e] = information_range(self._prediction(said.member_probs, self.ranges[e]))
                self.answers[e, 0] = self._said(e, 0, said.member_probs)
        everywhere = np.all([np.isin(self.records[0], places) for places in self.records], axis=0)
        all_right = np.all([self.answers[e, 0].right for e in range(len(self.ensembles))], axis=0)
        self.examples = choose_examples(self.cohort, self.indices, everywhere, all_right)

    def _draw_examples(self, shard: Shard, drawn: dict[int, Batch]) -> None:
        """Keep what the examples look like when attacked as the first ensemble is."""
        for row, batch in drawn.items():
            place = int(self.records[shard.number][row])
            example = next(one for one in self.examples if one.place == place)
            draw_attacked(example, shard.number, batch, self.cohort, int(self.indices[place]), self.ensembles[0].input)
            example.drawn_of[shard.number] = tuple(self.names[e] for e in shard.group)

    def _check(self) -> None:
        """Refuse what cannot be done before anything is."""
        cohort = self.cohort
        if not self.ensembles:
            raise ScorecardError("expected an ensemble to put to the test, found none")
        if len(self.indices) == 0:
            raise CohortError(f"{cohort.path}: expected recordings in the {self.evaluation.part} part, found none")
        for name, ensemble in zip(self.names, self.ensembles, strict=True):
            spec = ensemble.input
            if (cohort.classes, cohort.leads, cohort.rate_hz) != (ensemble.classes, spec.leads, spec.rate_hz):
                raise CohortError(
                    f"{cohort.path}: expected the classes, leads and rate of {name} ({', '.join(ensemble.classes)}; "
                    f"{', '.join(spec.leads)}; {spec.rate_hz:g} Hz), found others"
                )
            if spec.scaling != self.ensembles[0].input.scaling:
                raise ScorecardError(
                    f"{name}: expected inputs scaled as those of {self.names[0]}, found {spec.scaling}; the "
                    "strength of an attack would mean something else"
                )
            for condition, recipe in plan_conditions(self.evaluation):
                if recipe:
                    Crafting(recipe, condition.epsilon, ensemble, self.evaluation.seed).check()
