"""Check the quality guard against corruptions: how many corrupted recordings it finds, and how many natural ones."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ecgquorum._internal.seeds import numpy_generator
from ecgquorum.corruptions.corruption import SEVERITIES, Corruption
from ecgquorum.corruptions.registry import expand_severities, list_corruptions
from ecgquorum.preprocessing.quality import Severity, assess_quality
from ecgquorum.progress import NO_PROGRESS, Progress
from ecgquorum.recordings import Recording


@dataclass(frozen=True)
class GuardCheck:
    """What the guard finds.

    n_records: recordings that it does not find natural; only these are corrupted
    refused:   share of natural recordings that it finds doubtful or unreadable
    found:     corruption -> severity -> share of the corrupted recordings that it finds doubtful or unreadable
    findings:  corruption -> names of the findings
    """

    n_records: int
    refused: float
    found: dict[str, dict[int, float]]
    findings: dict[str, tuple[str, ...]]


def check_guard(
    recordings: Iterable[Recording],
    severities: Sequence[int] = SEVERITIES,
    *,
    seed: int = 0,
    progress: Progress = NO_PROGRESS,
) -> GuardCheck:
    """Corrupt recordings of the same leads in every way, and count those that the quality guard finds."""
    natural = list(recordings)
    usable = [one for one in natural if assess_quality(one).severity is Severity.USABLE]
    names = list_corruptions(usable[0].leads) if usable else ()
    found: dict[str, dict[int, float]] = {name: {} for name in names}
    findings: dict[str, set[str]] = {name: set() for name in names}
    for number, name in enumerate(names):
        for corruption in expand_severities(name, severities):
            progress.update(f"{name}, severity {corruption.severity}", number, len(names))
            seen = [_find(corruption, name, one, seed) for one in usable]
            found[name][corruption.severity] = sum(map(bool, seen)) / len(usable)
            findings[name] |= set().union(*seen)
    refused = 1 - len(usable) / len(natural) if natural else 0.0
    return GuardCheck(len(usable), refused, found, {name: tuple(sorted(one)) for name, one in findings.items()})


def _find(corruption: Corruption, name: str, recording: Recording, seed: int) -> set[str]:
    """Names of the findings because of which the corrupted recording would be deferred."""
    quality = assess_quality(corruption(recording, generator=numpy_generator(seed, "guard", name, recording.id)))
    return {finding.name for finding in quality.findings if finding.severity is not Severity.USABLE}
