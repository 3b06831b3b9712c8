"""The input guard: is a recording fit to be answered at all, and if not, why?

Every finding has a name, the lead it is about and a severity; the recording is as bad as its worst finding. Thresholds
are about what no heart and no sound electrode does, not about what a cardiologist would like to see.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecgquorum.recordings.recording import Recording
from ecgquorum.recordings.unit_correction import LARGEST_MV, SMALLEST_MV, explaining_unit, typical_size

Samples = NDArray[np.float32]

_PIECE = 1 << 18
_FLAT_MV = 1e-5
_FLAT_SHARE = 1e-4  # of the lead's range, from one sample to the next
_FLAT_S, _STUCK_S = 2.0, 0.03
_SHORT_S, _TOO_SHORT_S = 5.0, 2.0
_GAPS, _MISSING, _MOSTLY_MISSING = "missing samples", 0.02, 0.5
_SATURATED = 0.01
_MAINS_HZ, _MAINS_WIDTH_HZ, _MAINS_SHARE = (50.0, 60.0), 1.0, 0.5
_OPPOSED = -0.5


class Severity(IntEnum):
    """What a finding means for the recording."""

    USABLE = 0
    DOUBTFUL = 1
    UNREADABLE = 2

    def __str__(self) -> str:
        return self.name.lower()


@dataclass(frozen=True)
class Finding:
    """Something that is wrong with a recording, or with one of its leads."""

    name: str
    severity: Severity
    detail: str
    lead: str = ""

    def __str__(self) -> str:
        return f"{self.name}{f' on {self.lead}' if self.lead else ''}: {self.detail}"


@dataclass(frozen=True)
class Quality:
    """All findings of a recording."""

    findings: tuple[Finding, ...]

    @property
    def severity(self) -> Severity:
        """That of the worst finding."""
        return max((finding.severity for finding in self.findings), default=Severity.USABLE)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Every finding in words, the worst first."""
        return tuple(str(one) for one in sorted(self.findings, key=lambda one: -one.severity))


def assess_quality(recording: Recording) -> Quality:
    """What can be said against a recording in millivolts.

    A lead that cannot be read makes a recording of several leads doubtful, and unreadable where it is the only one or
    all are like that.
    """
    findings = [*_of_length(recording), *_of_units(recording)]
    rows = zip(recording.leads, recording.signal, strict=True)
    by_lead = {name: list(_of_lead(name, row, recording.rate_hz)) for name, row in rows}
    lost = [name for name, found in by_lead.items() if any(f.severity is Severity.UNREADABLE for f in found)]
    for found in by_lead.values():
        findings += found if len(lost) == len(by_lead) else [_no_worse_than_doubtful(finding) for finding in found]
    if len(lost) < len(by_lead):
        findings += _of_polarity(recording)
    return Quality(tuple(findings))


def _no_worse_than_doubtful(finding: Finding) -> Finding:
    """With a word on how `InputSpec.fit` reads a lead that is mostly missing where others are not."""
    silent = finding.name == _GAPS and finding.severity is Severity.UNREADABLE
    detail = f"{finding.detail}; it is taken as zero" if silent else finding.detail
    return Finding(finding.name, min(finding.severity, Severity.DOUBTFUL), detail, finding.lead)


def _of_length(recording: Recording) -> Iterator[Finding]:
    if recording.seconds < _SHORT_S:
        severity = Severity.UNREADABLE if recording.seconds < _TOO_SHORT_S else Severity.DOUBTFUL
        yield Finding("too short", severity, f"{recording.seconds:.1f} s, expected at least {_SHORT_S:g} s")


def _of_units(recording: Recording) -> Iterator[Finding]:
    """What a user decided is no reason for doubt."""
    if recording.correction:
        severity = Severity.USABLE if recording.correction.given else Severity.DOUBTFUL
        yield Finding("wrong units", severity, str(recording.correction))


def _of_lead(name: str, row: Samples, rate_hz: float) -> Iterator[Finding]:
    known = np.isfinite(row)
    missing = 1 - known.mean()
    if missing > _MISSING:
        severity = Severity.UNREADABLE if missing > _MOSTLY_MISSING else Severity.DOUBTFUL
        yield Finding(_GAPS, severity, f"{missing:.0%} of them", name)
    values = row[known] if missing else row
    reach = _reach(values)
    if reach <= _FLAT_MV:
        yield Finding("lead off", Severity.UNREADABLE, "nothing but a straight line", name)
        return
    still = (np.abs(np.diff(piece.astype(np.float64))) <= _FLAT_SHARE * reach for piece in _pieces(values, overlap=1))
    flat_s = _longest_run(still) / rate_hz
    if flat_s >= _FLAT_S:
        yield Finding("flat line", Severity.DOUBTFUL, f"for {flat_s:.1f} s", name)
    else:
        yield from _saturation(name, values, rate_hz)
    yield from _amplitude(name, values, rate_hz)
    yield from _mains(name, values, rate_hz)


def _saturation(name: str, values: Samples, rate_hz: float) -> Iterator[Finding]:
    """Stuck at the largest or smallest value for longer than a peak lasts, again and again."""
    for edge in (values.max(), values.min()):
        at_edge = values == edge
        share = at_edge.mean()
        if share > _SATURATED and _longest_run(_pieces(at_edge)) >= max(3, _STUCK_S * rate_hz):
            yield Finding("saturation", Severity.DOUBTFUL, f"{share:.0%} of the samples at {edge:.3g} mV", name)


def _amplitude(name: str, values: Samples, rate_hz: float) -> Iterator[Finding]:
    """The typical height from peak to peak; one that another unit would explain, but that was not read so, is told."""
    size = typical_size(values, rate_hz)
    if not SMALLEST_MV <= size <= LARGEST_MV:
        unit = explaining_unit(size, "mV")
        hint = f"; as if its samples were in {unit}" if unit else ""
        yield Finding("implausible amplitude", Severity.DOUBTFUL, f"{size:.3g} mV from peak to peak{hint}", name)


def _mains(name: str, values: Samples, rate_hz: float) -> Iterator[Finding]:
    total, at_mains = 0.0, dict.fromkeys(_MAINS_HZ, 0.0)
    for piece in _pieces(values):
        hertz = np.fft.rfftfreq(len(piece), 1 / rate_hz)
        power = np.abs(np.fft.rfft(piece.astype(np.float64) - piece.mean(dtype=np.float64))) ** 2
        total += float(power[hertz >= 1].sum())
        for mains in _MAINS_HZ:
            at_mains[mains] += float(power[np.abs(hertz - mains) <= _MAINS_WIDTH_HZ].sum())
    for mains, found in at_mains.items():
        share = found / total if total > 0 else 0.0
        if share > _MAINS_SHARE:
            yield Finding("mains", Severity.DOUBTFUL, f"{share:.0%} of its power at {mains:g} Hz", name)


def _of_polarity(recording: Recording) -> Iterator[Finding]:
    """Lead I upside down against V6, which look at the heart from the same side: arm electrodes may be swapped."""
    if not {"I", "V6"} <= set(recording.leads):
        return
    one, six = (recording.signal[recording.leads.index(name)] for name in ("I", "V6"))
    known = np.isfinite(one) & np.isfinite(six)
    one, six = one[known], six[known]
    if len(one) > recording.rate_hz and _reach(one) > _FLAT_MV and _reach(six) > _FLAT_MV:
        likeness = _likeness(one, six)
        if likeness < _OPPOSED:
            yield Finding("inverted lead", Severity.DOUBTFUL, f"opposed to V6 (correlation {likeness:.2f})", "I")


def _likeness(one: Samples, other: Samples) -> float:
    """The correlation of the steps from each sample to the next."""
    sums, squares = np.zeros(2), np.zeros((2, 2))
    for pieces in zip(_pieces(one, overlap=1), _pieces(other, overlap=1), strict=True):
        steps = np.diff(np.stack(pieces).astype(np.float64))
        sums += steps.sum(axis=1)
        squares += steps @ steps.T
    covariance = squares - np.outer(sums, sums) / (len(one) - 1)
    size = float(np.sqrt(covariance[0, 0]) * np.sqrt(covariance[1, 1]))
    return float(covariance[0, 1]) / size if size > 0 else 0.0


def _reach(values: Samples) -> float:
    """From the smallest to the largest; of fewer than two samples 0."""
    return float(values.max()) - float(values.min()) if len(values) > 1 else 0.0


def _pieces(values: NDArray[Any], overlap: int = 0) -> Iterator[NDArray[Any]]:
    """Stretches that follow one another, so that a day is not looked at all at once.

    overlap: how many of the next stretch's samples each has at its end
    """
    for start in range(0, len(values), _PIECE):
        yield values[start : start + _PIECE + overlap]


def _longest_run(pieces: Iterable[NDArray[np.bool_]]) -> int:
    """The most neighbours that are all true, also across pieces that follow one another."""
    longest = current = 0
    for flags in pieces:
        breaks = np.flatnonzero(~flags)
        if not len(breaks):
            current += len(flags)
            continue
        between = int(np.diff(breaks).max(initial=1)) - 1
        longest = max(longest, current + int(breaks[0]), between)
        current = len(flags) - 1 - int(breaks[-1])
    return max(longest, current)
