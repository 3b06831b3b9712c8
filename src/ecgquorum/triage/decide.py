"""Classify recordings that were read and decide which ones go to people."""

from collections.abc import Sequence
from dataclasses import dataclass

from ecgquorum.ensemble import Ensemble
from ecgquorum.ensemble.predict_files import Outcome, predict_outcomes
from ecgquorum.ensemble.result import CERTAIN, DEFERRED, Result, failed_result
from ecgquorum.preprocessing.input_spec import WHOLE_WINDOWS, InputSpec, Windowing
from ecgquorum.preprocessing.prepare import NO_PREVIEW, PreparedRecording, TracePreview, preview_row
from ecgquorum.recordings.discovery import ReadFailure
from ecgquorum.triage.journal import JournalEntry
from ecgquorum.triage.policies import Policy
from ecgquorum.triage.urgency import Urgency, urgency_of


@dataclass(frozen=True)
class Rules:
    """What decides about recordings.

    policy:    None: a usable recording is certain, unless the urgency says otherwise
    urgency:   None: that of the ensemble's card
    windowing: how long recordings are split
    """

    policy: Policy | None = None
    urgency: Urgency | None = None
    windowing: Windowing = WHOLE_WINDOWS


def decide(ensemble: Ensemble, rules: Rules, outcomes: Sequence[Outcome]) -> list[Result]:
    """Classify a group of recordings; the quality guard decides first, then urgency and windows, then the policy."""
    prediction, answers = predict_outcomes(ensemble, outcomes, rules.windowing)
    policy, urgency = rules.policy, rules.urgency or urgency_of(ensemble)
    deferred = iter(enumerate(policy.defer(prediction) if policy else [False] * len(prediction)))
    results = []
    for answer in answers:
        if isinstance(answer, ReadFailure):
            results.append(failed_result(answer, str(ensemble.card.get("weights_sha256", ""))))
            continue
        index, is_deferred = next(deferred)
        result = urgency.rank(answer)
        if result.decision:  # by its quality
            results.append(result)
        elif decided := urgency.apply(result):
            results.append(decided)
        elif policy and is_deferred:
            results.append(result.with_decision(DEFERRED, policy.reason(prediction, index)))
        else:
            results.append(result.with_decision(CERTAIN))
    return results


def make_entries(
    ensemble: Ensemble, rules: Rules, stamps: Sequence[str], outcomes: Sequence[Outcome]
) -> list[JournalEntry]:
    """Classify a group of recordings and make their entries for the journal."""
    results = decide(ensemble, rules, outcomes)
    previews = [_preview(ensemble.input, *pair) for pair in zip(results, outcomes, strict=True)]
    return [JournalEntry(*entry) for entry in zip(results, stamps, previews, strict=True)]


def _preview(spec: InputSpec, result: Result, outcome: Outcome) -> TracePreview:
    """What the worklist shows: the beginning of the recording, or of the worst window of a long one."""
    if not isinstance(outcome, PreparedRecording):
        return NO_PREVIEW
    worst, lead = result.worst_window, outcome.preview.lead
    if worst is None or spec.scaling != "microvolt":
        return outcome.preview
    row = outcome.signal[spec.leads.index(lead) if lead in spec.leads else 0]
    return preview_row(row / 1000, spec.rate_hz, lead, worst.start_s)
