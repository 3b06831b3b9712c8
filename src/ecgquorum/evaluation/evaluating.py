"""Putting an ensemble to the test."""

from functools import partial

import numpy as np

from ecgquorum.cohorts import Cohort, Part
from ecgquorum.ensemble import Ensemble, Prediction
from ecgquorum.errors import CohortError
from ecgquorum.evaluation import measures
from ecgquorum.evaluation.measures import Estimate, bootstrapped
from ecgquorum.evaluation.scorecard import Example, Scorecard

_EXAMPLE_S = 6.0
_DOUBTFUL = 2


def evaluate(ensemble: Ensemble, cohort: Cohort, part: Part = "test", n_examples: int = 6) -> Scorecard:
    """Classify every recording of the part and measure the answers."""
    indices = cohort.part(part)
    if len(indices) == 0:
        raise CohortError(f"{cohort.path}: expected recordings in the {part} part, found none")
    if (
        cohort.classes != ensemble.classes
        or cohort.leads != ensemble.spec.leads
        or cohort.rate_hz != ensemble.spec.rate_hz
    ):
        raise CohortError(
            f"{cohort.path}: expected the model's classes, leads and rate ({', '.join(ensemble.classes)}; "
            f"{', '.join(ensemble.spec.leads)}; {ensemble.spec.rate_hz:g} Hz), found others"
        )
    prediction = ensemble.predict_part(cohort, part)
    truth, answer = cohort.labels[indices], prediction.label_index
    n_records, n_classes = len(indices), len(cohort.classes)
    wrong = truth != answer
    kept, errors_left = measures.deferral_curve(wrong, prediction.uncertainty)
    by_member = prediction.member_probs.argmax(axis=2)

    def f1_of(label: int) -> Estimate:
        return bootstrapped(lambda weights: measures.class_f1(truth, answer, n_classes, weights)[:, label], n_records)

    return Scorecard(
        name=str(ensemble.card.get("name", "ensemble")),
        data=str(cohort.card["source"]),
        part=part,
        classes=list(cohort.classes),
        class_names=cohort.class_names,
        n_recordings={name: int((truth == i).sum()) for i, name in enumerate(cohort.classes)},
        members=len(ensemble.members),
        accuracy=bootstrapped(partial(measures.accuracy, ~wrong), n_records),
        macro_f1=bootstrapped(partial(measures.macro_f1, truth, answer, n_classes), n_records),
        class_f1={name: f1_of(i) for i, name in enumerate(cohort.classes)},
        member_accuracy=[
            bootstrapped(partial(measures.accuracy, by_member[:, k] == truth), n_records)
            for k in range(by_member.shape[1])
        ],
        confusion=measures.confusion(truth, answer, n_classes).tolist(),
        uncertainty_right=prediction.uncertainty[~wrong].tolist(),
        uncertainty_wrong=prediction.uncertainty[wrong].tolist(),
        kept=kept.tolist(),
        errors_left=errors_left.tolist(),
        examples=_examples(cohort, indices, prediction, n_examples),
        model_sha256=str(ensemble.card.get("weights_sha256", "")),
        data_hash=cohort.data_hash,
        same_cohort=ensemble.card.get("data_hash") == cohort.data_hash,
    )


def _examples(cohort: Cohort, indices: np.ndarray, prediction: Prediction, n: int) -> list[Example]:
    """The surest of some classes, then the most uncertain of all: what is easy, and what a person should see."""
    order = np.argsort(prediction.uncertainty, kind="stable")
    truth = cohort.labels[indices]
    surest = [next(int(i) for i in order if truth[i] == label) for label in np.unique(truth)][: n - _DOUBTFUL]
    doubtful = [int(i) for i in order[::-1] if i not in surest]
    chosen = surest + doubtful[: n - len(surest)]
    examples = []
    for i in chosen:
        signal = cohort.signal(int(indices[i]))[min(1, len(cohort.leads) - 1)]
        examples.append(
            Example(
                id=prediction.ids[i],
                truth=cohort.classes[truth[i]],
                answer=prediction.labels[i],
                probability=float(prediction.probs[i].max()),
                uncertainty=float(prediction.uncertainty[i]),
                rate_hz=cohort.rate_hz,
                lead=cohort.leads[min(1, len(cohort.leads) - 1)],
                millivolts=[round(float(v), 4) for v in signal[: round(_EXAMPLE_S * cohort.rate_hz)]],
            )
        )
    return examples
