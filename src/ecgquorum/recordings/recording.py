"""One ECG recording in memory."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecgquorum.errors import RecordingError
from ecgquorum.recordings.acquisition import NOTHING_KNOWN, Acquisition
from ecgquorum.recordings.leads import STANDARD_LEADS, UNNAMED_LEAD, normalise_leads
from ecgquorum.recordings.units import Correction, millivolts_in

SLOWEST_RATE_HZ, FASTEST_RATE_HZ = 25.0, 100_000.0
"""Sampling rates outside of this range are an error of the file."""


@dataclass(frozen=True, eq=False)
class Recording:
    """One ECG recording: samples, leads, sampling rate and source.

    signal: (lead, time) float32 in millivolts; a missing sample is NaN
    acquisition: patient, time and device, as far as the source states them
    labels: diagnoses as the source states them
    source: path it was read from
    unit:   unit that the source states; empty where its leads differ
    correction: how the unit was corrected, if the stated one could not be true
    notes:  what the reader left out or changed, for the user: a calibration pulse that was removed
    """

    id: str
    signal: NDArray[np.float32] = field(repr=False)
    rate_hz: float
    leads: tuple[str, ...]
    acquisition: Acquisition = NOTHING_KNOWN
    labels: tuple[str, ...] = ()
    source: str = ""
    unit: str = "mV"
    correction: Correction | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        signal = np.ascontiguousarray(as_samples(self.signal))
        if signal.ndim == 1:
            signal = signal[None]
        object.__setattr__(self, "signal", signal)
        object.__setattr__(self, "leads", normalise_leads(self.leads))
        where = self.source or self.id
        if signal.ndim != 2 or signal.size == 0:
            raise RecordingError(f"{where}: expected samples as (lead, time), found the shape {signal.shape}")
        if len(self.leads) != len(signal):
            raise RecordingError(f"{where}: expected {len(signal)} lead names, found {len(self.leads)}")
        if len(set(self.leads)) != len(self.leads):
            raise RecordingError(f"{where}: lead names are not unique: {', '.join(self.leads)}")
        if not SLOWEST_RATE_HZ <= self.rate_hz <= FASTEST_RATE_HZ:
            raise RecordingError(
                f"{where}: expected a sampling rate from {SLOWEST_RATE_HZ:g} to {FASTEST_RATE_HZ:g} Hz, "
                f"found {self.rate_hz:g}"
            )

    @property
    def patient(self) -> str | None:
        """Id of the patient, if known."""
        return self.acquisition.patient_id

    @property
    def n_samples(self) -> int:
        """Samples per lead."""
        return int(self.signal.shape[1])

    @property
    def seconds(self) -> float:
        """Length in seconds."""
        return self.n_samples / self.rate_hz


def as_samples(values: NDArray[Any]) -> NDArray[np.float32]:
    """Convert numbers to float32; values out of its range become infinite, which counts as missing."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(values, dtype=np.float32)


def one_line(error: BaseException) -> str:
    """Type and text of an error on one line, for a message."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:200]}" if text else type(error).__name__


def note_parts(what: str, n_parts: int) -> tuple[str, ...]:
    """A note about a file of several parts, such as waveforms, of which one was read; none for a single one."""
    return (f"1 of its {n_parts} {what} was read; the others are left out",) if n_parts > 1 else ()


def recordings_from_array(
    samples: Any, *, rate_hz: float | None, leads: Sequence[str] | None = None, units: str = "mV"
) -> list[Recording]:
    """Return the recordings in an array of (time,), (lead, time) or (record, lead, time); ids are "0", "1", ...

    leads: their names; by default one unnamed lead, or the twelve standard leads
    units: "mV", "uV" or another unit of voltage
    """
    array = np.asarray(samples, dtype=np.float32)
    if array.ndim not in (1, 2, 3) or array.size == 0:
        raise RecordingError(
            f"expected an array of (time,), (lead, time) or (record, lead, time), found the shape {array.shape}"
        )
    if rate_hz is None:
        raise RecordingError("an array has no sampling rate of its own: give rate_hz= in samples per second")
    array = array.reshape((1,) * (3 - array.ndim) + array.shape)
    if leads is None:
        by_count = {1: (UNNAMED_LEAD,), len(STANDARD_LEADS): STANDARD_LEADS}
        leads = by_count.get(array.shape[1])
        if leads is None:
            raise RecordingError(f"an array of {array.shape[1]} leads does not name them: give leads=")
    factor = millivolts_in(units)
    if factor is None:
        raise RecordingError(f"units: expected a unit of voltage such as mV or uV, found {units!r}")
    millivolts = array * np.float32(factor)
    return [Recording(str(i), one, rate_hz, tuple(leads), unit=units) for i, one in enumerate(millivolts)]
