"""Classify recordings that were read and decide which ones go to people."""

from collections.abc import Sequence

from ecgquorum.ensemble import Ensemble
from ecgquorum.ensemble.predict_files import Outcome, predict_outcomes
from ecgquorum.ensemble.result import CERTAIN, DEFERRED, Result, failed_result
from ecgquorum.preprocessing.prepare import NO_PREVIEW, PreparedRecording
from ecgquorum.recordings.discovery import ReadFailure
from ecgquorum.triage.journal import JournalEntry
from ecgquorum.triage.policies import Policy


def decide(ensemble: Ensemble, policy: Policy | None, outcomes: Sequence[Outcome]) -> list[Result]:
    """Classify a group of recordings; the quality guard decides first, then the policy.

    policy: None: a usable recording is certain
    """
    prediction, answers = predict_outcomes(ensemble, outcomes)
    deferred = iter(enumerate(policy.defer(prediction) if policy else [False] * len(prediction)))
    results = []
    for answer in answers:
        if isinstance(answer, ReadFailure):
            results.append(failed_result(answer, str(ensemble.card.get("weights_sha256", ""))))
            continue
        index, is_deferred = next(deferred)
        if answer.decision:  # by its quality
            results.append(answer)
        elif policy and is_deferred:
            results.append(answer.with_decision(DEFERRED, policy.reason(prediction, index)))
        else:
            results.append(answer.with_decision(CERTAIN))
    return results


def make_entries(
    ensemble: Ensemble, policy: Policy | None, stamps: Sequence[str], outcomes: Sequence[Outcome]
) -> list[JournalEntry]:
    """Classify a group of recordings and make their entries for the journal."""
    previews = [one.preview if isinstance(one, PreparedRecording) else NO_PREVIEW for one in outcomes]
    results = decide(ensemble, policy, outcomes)
    return [JournalEntry(*entry) for entry in zip(results, stamps, previews, strict=True)]
