"""The input guard: is a recording fit to be answered at all, and if not, why?

Every finding has a name, the lead it is about and a severity; the recording is as bad as its worst finding. Thresholds
are about what no heart and no sound electrode does, not about what a cardiologist would like to see.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray
from scipy.signal import periodogram

from ecgquorum.recordings.amplitude import LARGEST_MV, SMALLEST_MV, explaining_unit, typical_size
from ecgquorum.recordings.recording import Recording

_FLAT_MV = 1e-5
_FLAT_SHARE = 1e-4  # of the lead's range, from one sample to the next
_FLAT_S, _STUCK_S = 2.0, 0.03
_SHORT_S, _TOO_SHORT_S = 5.0, 2.0
_MISSING, _MOSTLY_MISSING = 0.02, 0.5
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


def assessed(recording: Recording) -> Quality:
    """What can be said against a recording in millivolts.

    A lead that cannot be read makes a recording of several leads doubtful, and unreadable where it is the only one or
    all are like that.
    """
    findings = [*_of_length(recording), *_of_units(recording)]
    by_lead = {name: list(_of_lead(name, row, recording.rate_hz)) for name, row in _rows(recording)}
    lost = [name for name, found in by_lead.items() if any(f.severity is Severity.UNREADABLE for f in found)]
    for found in by_lead.values():
        findings += found if len(lost) == len(by_lead) else [_no_worse_than_doubtful(finding) for finding in found]
    if len(lost) < len(by_lead):
        findings += _of_polarity(recording)
    return Quality(tuple(findings))


def _no_worse_than_doubtful(finding: Finding) -> Finding:
    severity = min(finding.severity, Severity.DOUBTFUL)
    return Finding(finding.name, severity, finding.detail, finding.lead)


def _rows(recording: Recording) -> Iterator[tuple[str, NDArray[np.float64]]]:
    for name, row in zip(recording.leads, recording.signal, strict=True):
        yield name, row.astype(np.float64)


def _of_length(recording: Recording) -> Iterator[Finding]:
    if recording.seconds < _SHORT_S:
        severity = Severity.UNREADABLE if recording.seconds < _TOO_SHORT_S else Severity.DOUBTFUL
        yield Finding("too short", severity, f"{recording.seconds:.1f} s, expected at least {_SHORT_S:g} s")


def _of_units(recording: Recording) -> Iterator[Finding]:
    """What a user decided is no reason for doubt."""
    if recording.correction:
        severity = Severity.USABLE if recording.correction.given else Severity.DOUBTFUL
        yield Finding("wrong units", severity, str(recording.correction))


def _of_lead(name: str, row: NDArray[np.float64], rate_hz: float) -> Iterator[Finding]:
    known = np.isfinite(row)
    missing = 1 - known.mean()
    if missing > _MISSING:
        severity = Severity.UNREADABLE if missing > _MOSTLY_MISSING else Severity.DOUBTFUL
        yield Finding("missing samples", severity, f"{missing:.0%} of them", name)
    values = row[known]
    if len(values) < 2 or np.ptp(values) <= _FLAT_MV:
        yield Finding("lead off", Severity.UNREADABLE, "nothing but a straight line", name)
        return
    flat_s = _longest_run(np.abs(np.diff(values)) <= _FLAT_SHARE * np.ptp(values)) / rate_hz
    if flat_s >= _FLAT_S:
        yield Finding("flat line", Severity.DOUBTFUL, f"for {flat_s:.1f} s", name)
    else:
        yield from _saturation(name, values, rate_hz)
    yield from _amplitude(name, values, rate_hz)
    yield from _mains(name, values, rate_hz)


def _saturation(name: str, values: NDArray[np.float64], rate_hz: float) -> Iterator[Finding]:
    """Stuck at the largest or smallest value for longer than a peak lasts, again and again."""
    for edge in (values.max(), values.min()):
        at_edge = values == edge
        share = at_edge.mean()
        if share > _SATURATED and _longest_run(at_edge) >= max(3, _STUCK_S * rate_hz):
            yield Finding("saturation", Severity.DOUBTFUL, f"{share:.0%} of the samples at {edge:.3g} mV", name)


def _amplitude(name: str, values: NDArray[np.float64], rate_hz: float) -> Iterator[Finding]:
    """The typical height from peak to peak; one that another unit would explain, but that was not read so, is told."""
    size = typical_size(values, rate_hz)
    if not SMALLEST_MV <= size <= LARGEST_MV:
        unit = explaining_unit(size, "mV")
        hint = f"; as if its samples were in {unit}" if unit else ""
        yield Finding("implausible amplitude", Severity.DOUBTFUL, f"{size:.3g} mV from peak to peak{hint}", name)


def _mains(name: str, values: NDArray[np.float64], rate_hz: float) -> Iterator[Finding]:
    hertz, power = periodogram(values - values.mean(), rate_hz)
    total = power[hertz >= 1].sum()
    for mains in _MAINS_HZ:
        share = power[np.abs(hertz - mains) <= _MAINS_WIDTH_HZ].sum() / total if total > 0 else 0.0
        if share > _MAINS_SHARE:
            yield Finding("mains", Severity.DOUBTFUL, f"{share:.0%} of its power at {mains:g} Hz", name)


def _of_polarity(recording: Recording) -> Iterator[Finding]:
    """Lead I upside down against V6, which look at the heart from the same side: arm electrodes may be swapped."""
    if not {"I", "V6"} <= set(recording.leads):
        return
    one, six = (recording.signal[recording.leads.index(name)] for name in ("I", "V6"))
    known = np.isfinite(one) & np.isfinite(six)
    if known.sum() > recording.rate_hz and np.ptp(one[known]) > _FLAT_MV and np.ptp(six[known]) > _FLAT_MV:
        likeness = float(np.corrcoef(np.diff(one[known]), np.diff(six[known]))[0, 1])
        if likeness < _OPPOSED:
            yield Finding("inverted lead", Severity.DOUBTFUL, f"opposed to V6 (correlation {likeness:.2f})", "I")


def _longest_run(flags: NDArray[np.bool_]) -> int:
    """The most neighbours that are all true."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8)))
    return int((edges[1::2] - edges[::2]).max()) if len(edges) else 0
