"""The quality guard: can a recording be classified at all, and if not, why?

Every finding has a name, a lead and a severity; the severity of a recording is that of its worst finding. Thresholds
are set where no heart and no working electrode can be, not where a cardiologist would like the quality to be.
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
    """A defect of a recording, or of one of its leads."""

    name: str
    severity: Severity
    detail: str
    lead: str = ""

    def __str__(self) -> str:
        return f"{self.name}{f' on {self.lead}' if self.lead else ''}: {self.detail}"


@dataclass(frozen=True)
class Quality:
    """All findings about a recording."""

    findings: tuple[Finding, ...]

    @property
    def severity(self) -> Severity:
        """That of the worst finding."""
        return max((finding.severity for finding in self.findings), default=Severity.USABLE)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Every finding as text, the worst first."""
        return tuple(str(one) for one in sorted(self.findings, key=lambda one: -one.severity))


NO_FINDINGS = Quality(())


def assess_quality(recording: Recording) -> Quality:
    """Find the defects of a recording in millivolts.

    An unreadable lead makes a recording of several leads doubtful; if all its leads are unreadable, so is it.
    """
    findings = [*_check_length(recording), *_check_units(recording)]
    rows = zip(recording.leads, recording.signal, strict=True)
    by_lead = {name: list(_check_lead(name, row, recording.rate_hz)) for name, row in rows}
    lost = [name for name, found in by_lead.items() if any(f.severity is Severity.UNREADABLE for f in found)]
    for found in by_lead.values():
        findings += found if len(lost) == len(by_lead) else [_no_worse_than_doubtful(finding) for finding in found]
    if len(lost) < len(by_lead):
        findings += _check_polarity(recording)
    return Quality(tuple(findings))


def _no_worse_than_doubtful(finding: Finding) -> Finding:
    """The finding, at most doubtful, since other leads are usable; `InputSpec.fit` sets a missing lead to zero."""
    silent = finding.name == _GAPS and finding.severity is Severity.UNREADABLE
    detail = f"{finding.detail}; set to zero" if silent else finding.detail
    return Finding(finding.name, min(finding.severity, Severity.DOUBTFUL), detail, finding.lead)


def _check_length(recording: Recording) -> Iterator[Finding]:
    if recording.seconds < _SHORT_S:
        severity = Severity.UNREADABLE if recording.seconds < _TOO_SHORT_S else Severity.DOUBTFUL
        yield Finding("too short", severity, f"{recording.seconds:.1f} s, expected at least {_SHORT_S:g} s")


def _check_units(recording: Recording) -> Iterator[Finding]:
    """A unit that the user has given is no reason for doubt."""
    if recording.correction:
        severity = Severity.USABLE if recording.correction.given else Severity.DOUBTFUL
        yield Finding("wrong units", severity, str(recording.correction))


def _check_lead(name: str, row: Samples, rate_hz: float) -> Iterator[Finding]:
    known = np.isfinite(row)
    missing = 1 - known.mean()
    if missing > _MISSING:
        severity = Severity.UNREADABLE if missing > _MOSTLY_MISSING else Severity.DOUBTFUL
        yield Finding(_GAPS, severity, f"{missing:.0%} of them", name)
    elif missing and (gap_s := _longest_run(_pieces(~known)) / rate_hz) >= _FLAT_S:
        yield Finding(_GAPS, Severity.DOUBTFUL, f"for {gap_s:.1f} s", name)
    values = row[known] if missing else row
    value_range = _range(values)
    if value_range <= _FLAT_MV:
        yield Finding("lead off", Severity.UNREADABLE, "a constant signal", name)
        return
    still = (
        np.abs(np.diff(piece.astype(np.float64))) <= _FLAT_SHARE * value_range for piece in _pieces(values, overlap=1)
    )
    flat_s = _longest_run(still) / rate_hz
    if flat_s >= _FLAT_S:
        yield Finding("flat line", Severity.DOUBTFUL, f"for {flat_s:.1f} s", name)
    else:
        yield from _check_saturation(name, values, rate_hz)
    yield from _check_amplitude(name, values, rate_hz)
    yield from _check_mains(name, values, rate_hz)


def _check_saturation(name: str, values: Samples, rate_hz: float) -> Iterator[Finding]:
    """More than 1 % of samples at the largest or smallest value, in a run longer than a peak."""
    for edge in (values.max(), values.min()):
        at_edge = values == edge
        share = at_edge.mean()
        if share > _SATURATED and _longest_run(_pieces(at_edge)) >= max(3, _STUCK_S * rate_hz):
            yield Finding("saturation", Severity.DOUBTFUL, f"{share:.0%} of the samples at {edge:.3g} mV", name)


def _check_amplitude(name: str, values: Samples, rate_hz: float) -> Iterator[Finding]:
    """A typical peak-to-peak amplitude that is not plausible, with the unit that would explain it."""
    size = typical_size(values, rate_hz)
    if not SMALLEST_MV <= size <= LARGEST_MV:
        unit = explaining_unit(size, "mV")
        hint = f"; as if its samples were in {unit}" if unit else ""
        yield Finding("implausible amplitude", Severity.DOUBTFUL, f"{size:.3g} mV from peak to peak{hint}", name)


def _check_mains(name: str, values: Samples, rate_hz: float) -> Iterator[Finding]:
    total, at_mains = 0.0, dict.fromkeys(_MAINS_HZ, 0.0)
    for piece in _pieces(values):
        power = np.abs(np.fft.rfft(piece.astype(np.float64) - piece.mean(dtype=np.float64))) ** 2 / len(piece)
        hertz = np.fft.rfftfreq(len(piece), 1 / rate_hz)
        total += float(power[hertz >= 1].sum())
        for mains in _MAINS_HZ:
            at_mains[mains] += float(power[np.abs(hertz - mains) <= _MAINS_WIDTH_HZ].sum())
    for mains, summed in at_mains.items():
        share = summed / total if total > 0 else 0.0
        if share > _MAINS_SHARE:
            yield Finding("mains", Severity.DOUBTFUL, f"{share:.0%} of its power at {mains:g} Hz", name)


def _check_polarity(recording: Recording) -> Iterator[Finding]:
    """Lead I inverted against V6, which see the heart from the same side: arm electrodes may be swapped."""
    if not {"I", "V6"} <= set(recording.leads):
        return
    one, six = (recording.signal[recording.leads.index(name)] for name in ("I", "V6"))
    known = np.isfinite(one) & np.isfinite(six)
    one, six = one[known], six[known]
    if len(one) > recording.rate_hz and _range(one) > _FLAT_MV and _range(six) > _FLAT_MV:
        correlation = _slope_correlation(one, six)
        if correlation < _OPPOSED:
            yield Finding("inverted lead", Severity.DOUBTFUL, f"opposed to V6 (correlation {correlation:.2f})", "I")


def _slope_correlation(one: Samples, other: Samples) -> float:
    """Correlation of the differences between neighbouring samples."""
    sums, squares = np.zeros(2), np.zeros((2, 2))
    for pieces in zip(_pieces(one, overlap=1), _pieces(other, overlap=1), strict=True):
        steps = np.diff(np.stack(pieces).astype(np.float64))
        sums += steps.sum(axis=1)
        squares += steps @ steps.T
    covariance = squares - np.outer(sums, sums) / (len(one) - 1)
    size = float(np.sqrt(covariance[0, 0]) * np.sqrt(covariance[1, 1]))
    return float(covariance[0, 1]) / size if size > 0 else 0.0


def _range(values: Samples) -> float:
    """Largest minus smallest value; 0 for fewer than two samples."""
    return float(values.max()) - float(values.min()) if len(values) > 1 else 0.0


def _pieces(values: NDArray[Any], overlap: int = 0) -> Iterator[NDArray[Any]]:
    """Consecutive pieces, so that a long recording is not copied at once.

    overlap: how many samples of the next piece each piece ends with
    """
    for start in range(0, len(values), _PIECE):
        yield values[start : start + _PIECE + overlap]


def _longest_run(pieces: Iterable[NDArray[np.bool_]]) -> int:
    """Length of the longest run of True, also across consecutive pieces."""
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
