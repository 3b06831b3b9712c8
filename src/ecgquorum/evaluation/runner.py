"""Run an evaluation: the predictions of every ensemble under every condition, on the same recordings."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ecgquorum.cohorts import Batch
from ecgquorum.ensemble import Ensemble, Prediction
from ecgquorum.ensemble.prediction import information_range, robust_information_range
from ecgquorum.errors import CohortError, ScorecardError
from ecgquorum.evaluation.attack_cache import AttackJob
from ecgquorum.evaluation.attack_conditions import AttackCondition
from ecgquorum.evaluation.conditions import Condition, choose_records
from ecgquorum.evaluation.data import EvaluationData
from ecgquorum.evaluation.examples import EXAMPLE_S, Example, choose_positions
from ecgquorum.evaluation.options import EvaluationOptions
from ecgquorum.evaluation.predictions import LabelledPredictions
from ecgquorum.evaluation.shards import EvaluationContext, Shard, plan_shards, predict_shards
from ecgquorum.evaluation.transform_conditions import TransformCondition
from ecgquorum.parallel import Executor
from ecgquorum.progress import NO_PROGRESS, Progress
from ecgquorum.storage import open_store


class EvaluationRun:
    """One evaluation while it runs; ensembles and conditions are numbered in their order.

    records:     for each condition the positions of the recordings that it covers
    predictions: (ensemble, condition) -> the predictions of those recordings
    ranges:      for each ensemble the range of mutual information by which its uncertainty is normalised
    """

    def __init__(
        self,
        ensembles: Mapping[str, Ensemble],
        data: EvaluationData,
        changes: Sequence[AttackCondition | TransformCondition],
        options: EvaluationOptions,
        cache: str | Path | None = None,
        progress: Progress = NO_PROGRESS,
    ) -> None:
        self.names, self.ensembles = list(ensembles), list(ensembles.values())
        self.data, self.options = data, options
        self.conditions = [Condition(), *(change.condition for change in changes)]
        self.records = [choose_records(len(data), c.records, options.seed) for c in self.conditions]
        self.ranges = [ensemble.information_range for ensemble in self.ensembles]
        self.predictions: dict[tuple[int, int], LabelledPredictions] = {}
        self.examples: list[Example] = []
        self._check([one for one in changes if isinstance(one, AttackCondition)])
        self._context = EvaluationContext(
            self.ensembles,
            data,
            [None, *changes],
            self.records,
            options.seed,
            open_store(cache) if cache else None,
            options.device,
        )
        self._progress = progress
        self._done, self._total = 0, len(self.ensembles) * sum(map(len, self.records))

    @property
    def n_attacked(self) -> int:
        """How many recordings the attack on most recordings covers; without attacks, all."""
        attacked = [self.records[i] for i, one in enumerate(self._context.changes) if isinstance(one, AttackCondition)]
        return max(map(len, attacked), default=len(self.data))

    def run(self, executor: Executor | None = None) -> None:
        """Classify natural recordings first, then under one condition after the other."""
        if self.options.normalise == "robust":
            for e, ensemble in enumerate(self.ensembles):
                self.ranges[e] = ensemble.robust_information_range or self._measure_robust_range(e, ensemble)
        self._predict([0], executor)
        self._finish_natural()
        self._predict(range(1, len(self.conditions)), executor)
        self._add_changed_examples()

    def _measure_robust_range(self, e: int, ensemble: Ensemble) -> tuple[float, float]:
        """Of an ensemble whose bundle was written before cards had that range."""
        self.report_progress(f"mutual information of {self.names[e]} on the train part")
        return robust_information_range(self.data.predict_train(ensemble))

    def report_progress(self, text: str, finished: int = 0) -> None:
        """Report what is being done, and that so many more recordings are classified."""
        self._done += finished
        self._progress.update(text, self._done, self._total)

    def _predict(self, numbers: Sequence[int], executor: Executor | None) -> None:
        """Fill `predictions` for these conditions."""
        wanted = [example.position for example in self.examples]  # of corruptions, see `_add_changed_examples`
        shown: list[tuple[Shard, dict[int, Batch]]] = []
        shards = (
            shard
            for number in numbers
            for shard in plan_shards(self._context, number, wanted if self.conditions[number].is_attack else ())
        )
        probs: dict[tuple[int, int], NDArray[np.float64]] = {}
        distances: dict[tuple[int, int], NDArray[np.float64]] = {}
        left = {number: len(self.ensembles) * len(self.records[number]) for number in numbers}
        for shard, result in predict_shards(self._context, self._announce(shards), executor):
            n_records = len(self.records[shard.number])
            for e, found in result.probs.items():
                whole = probs.setdefault((e, shard.number), np.empty((n_records, *found.shape[1:])))
                whole[list(shard.rows)] = found
                distances.setdefault((e, shard.number), np.empty(n_records))[list(shard.rows)] = result.distances[e]
                self._check_finite(e, shard, found)
            shown.append((shard, result.shown))
            finished = len(shard.group) * len(shard.rows)
            self.report_progress(str(self.conditions[shard.number]), finished)
            left[shard.number] -= finished
            if left[shard.number] == 0:
                self._progress.log(f"evaluated: {self.conditions[shard.number]}")
        for shard, batches in sorted(shown, key=lambda one: one[0].number):  # an executor returns them in any order
            self._add_examples(shard, batches)
        for e, number in sorted(probs):
            self.predictions[e, number] = self._label(e, number, probs[e, number], distances[e, number])

    def _check_finite(self, e: int, shard: Shard, probs: NDArray[np.float64]) -> None:
        """Raise an error if an ensemble's probabilities are not numbers, as soon as they arrive."""
        lost = np.flatnonzero(~np.isfinite(probs).all(axis=(1, 2)))
        if len(lost):
            record = self.data.ids[self.records[shard.number][shard.rows[int(lost[0])]]]
            raise ScorecardError(
                f"{self.names[e]}: the probabilities of {record} are not finite ({self.conditions[shard.number]}); "
                "check the network's weights and the scale of its input"
            )

    def _announce(self, shards: Iterable[Shard]) -> Iterator[Shard]:
        """Report each condition before its first recordings are finished."""
        for shard in shards:
            self.report_progress(str(self.conditions[shard.number]))
            yield shard

    def _label(
        self, e: int, number: int, probs: NDArray[np.float64], distances: NDArray[np.float64]
    ) -> LabelledPredictions:
        """Probabilities rounded as they are saved, so that metrics of a loaded scorecard are the same."""
        rounded = probs.astype(np.float32).astype(np.float64)
        uncertainty = self._prediction(rounded, self.ranges[e]).uncertainty
        fitted = self.ensembles[e].make_prediction(("",) * len(probs), rounded, distances)
        scores = {"risk": fitted.risk} if fitted.distance is None else {"distance": distances, "risk": fitted.risk}
        labels = self.data.labels[self.records[number]]
        return LabelledPredictions(labels, rounded, uncertainty, self.ensembles[e].temperature, scores)

    def _prediction(self, probs: NDArray[np.float64], information: tuple[float, float]) -> Prediction:
        return Prediction(("",) * len(probs), self.data.classes, probs, information)

    def _finish_natural(self) -> None:
        """Normalise uncertainty by these recordings if asked to, and choose the examples, before the attacks."""
        if self.options.normalise == "authors":
            for e in range(len(self.ensembles)):
                natural = self.predictions[e, 0]
                known = self._prediction(natural.raw_member_probs, self.ranges[e])
                self.ranges[e] = information_range(known)
                uncertainty = self._prediction(natural.raw_member_probs, self.ranges[e]).uncertainty
                self.predictions[e, 0] = replace(natural, uncertainty=uncertainty)
        eligible = np.all([np.isin(self.records[0], positions) for positions in self.records], axis=0)
        all_correct = np.all([self.predictions[e, 0].correct for e in range(len(self.ensembles))], axis=0)
        if self.data.has_traces:
            chosen = choose_positions(self.data.labels, len(self.data.classes), eligible, all_correct)
            self.examples = [self._make_example(position) for position in chosen]

    def _make_example(self, position: int) -> Example:
        lead, data = self._example_lead, self.data
        natural, _ = data.millivolts(position, lead, self.ensembles[0].input)
        start = natural[: round(EXAMPLE_S * data.rate_hz)]
        return Example(position, data.ids[position], data.leads[lead], data.rate_hz, start, {}, {})

    def _add_examples(self, shard: Shard, shown: dict[int, Batch]) -> None:
        """Keep the examples as attacked for the first ensemble."""
        for row, batch in shown.items():
            position = int(self.records[shard.number][row])
            example = next(one for one in self.examples if one.position == position)
            _, factor = self.data.millivolts(position, self._example_lead, self.ensembles[0].input)
            begin = int(batch.valid[0, 0].long().argmax())
            stretch = batch.signal[0, self._example_lead, begin : begin + len(example.natural)].numpy()
            example.attacked[shard.number] = np.asarray(factor * stretch, dtype=np.float32)
            example.ensembles[shard.number] = tuple(self.names[e] for e in shard.group)

    def _add_changed_examples(self) -> None:
        """Keep the first example under the middle severity of each corruption, and what stands for it out of data."""
        families: dict[tuple[str, str], list[int]] = {}
        for number, change in enumerate(self._context.changes):
            if isinstance(change, TransformCondition):
                families.setdefault((change.name, change.condition.target), []).append(number)
        for example in self.examples[:1]:
            for number in (numbers[len(numbers) // 2] for numbers in families.values()):
                change = self._context.changes[number]
                assert isinstance(change, TransformCondition)  # noqa: S101 (the families are of these)
                row = int(np.searchsorted(self.records[number], example.position))
                (signal,) = self.data.change(np.array([example.position]), [row], change, self.options.seed)
                begin = 0 if self.data.n_train else int(np.argmax(np.any(signal != 0, axis=0)))
                example.attacked[number] = signal[self._example_lead, begin : begin + len(example.natural)]
                example.ensembles[number] = tuple(self.names)

    @property
    def _example_lead(self) -> int:
        """Lead II of the twelve, or the only one."""
        return min(1, len(self.data.leads) - 1)

    def _check(self, attacks: Sequence[AttackCondition]) -> None:
        """Raise an error for anything that cannot be evaluated, before any work is done."""
        data, first = self.data, self.ensembles[0].input
        for name, ensemble in zip(self.names, self.ensembles, strict=True):
            spec = ensemble.input
            if (data.classes, data.leads, data.rate_hz) != (ensemble.classes, spec.leads, spec.rate_hz):
                raise CohortError(
                    f"{data.source}: the classes, leads and rate of {name} are {', '.join(ensemble.classes)}; "
                    f"{', '.join(spec.leads)}; {spec.rate_hz:g} Hz; those of the recordings are "
                    f"{', '.join(data.classes)}; {', '.join(data.leads)}; {data.rate_hz:g} Hz"
                )
            if spec.scaling != first.scaling:
                raise ScorecardError(
                    f"{name} takes input scaled to {spec.scaling}, {self.names[0]} to {first.scaling}; the same "
                    "epsilon would mean attacks of different strength, so evaluate them separately"
                )
            if self.options.normalise == "robust" and not (
                ensemble.robust_information_range or (data.n_train and data.is_training_cohort(ensemble.card))
            ):
                raise ScorecardError(
                    f'{name}: its card has no robust range, so normalise = "robust" reads the recordings that it was '
                    f"trained on, which {data.source} does not have; evaluate it on its own cohort, or choose "
                    '"training" or "authors"'
                )
            for attack in attacks:
                _ = AttackJob(attack, ensemble, self.options.seed).target
