"""Recorded noise: the three records of the MIT-BIH Noise Stress Test Database (Moody et al. 1984).

`ecgquorum cohort fetch nstdb` downloads them to data/nstdb; the environment variable ECGQUORUM_NSTDB names
another folder.
"""

import os
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import numpy as np

from ecgquorum.corruptions.additive_noise import AdditiveNoise
from ecgquorum.corruptions.transform import Array, Generator
from ecgquorum.errors import CorruptionError, EcgQuorumError
from ecgquorum.preprocessing.input_spec import fill_gaps, resample
from ecgquorum.recordings import read

FOLDER, VARIABLE = "data/nstdb", "ECGQUORUM_NSTDB"


@dataclass(frozen=True)
class RecordedNoise(AdditiveNoise):
    """Stretches of recorded noise, one for each electrode, of a random lead and beginning.

    folder: with the records bw, em and ma; "": the environment variable ECGQUORUM_NSTDB, or data/nstdb
    """

    folder: str = field(default="", compare=False)

    record: ClassVar[str]
    above_hz: ClassVar[float] = 0.0
    """Slower parts of the record are left out."""

    def draw(self, rng: Generator, n_sources: int, n_samples: int, rate_hz: float) -> Array:
        """Stretches of the record; a longer recording wraps around its end."""
        folder = self.folder or os.environ.get(VARIABLE, FOLDER)
        recorded = _read_noise(folder, self.record, rate_hz, self.above_hz)
        rows = rng.integers(len(recorded), size=n_sources)
        starts = rng.integers(recorded.shape[1], size=n_sources)
        places = (starts[:, None] + np.arange(n_samples)) % recorded.shape[1]
        return np.asarray(recorded[rows[:, None], places])


@dataclass(frozen=True)
class RecordedBaselineWander(RecordedNoise):
    """Recorded baseline wander."""

    record = "bw"


@dataclass(frozen=True)
class RecordedElectrodeMotion(RecordedNoise):
    """Recorded electrode motion."""

    record = "em"


@dataclass(frozen=True)
class RecordedMuscle(RecordedNoise):
    """Recorded muscle noise, without the wander below 2 Hz, which has most of the record's power."""

    record = "ma"
    above_hz = 2.0


@lru_cache(maxsize=6)
def _read_noise(folder: str, record: str, rate_hz: float, above_hz: float) -> Array:
    """(lead, time) at this rate, each lead with mean 0 and standard deviation 1."""
    found = Path(folder, f"{record}.hea")
    if not found.is_file():
        raise CorruptionError(
            f"{folder}: expected the record {record} of the MIT-BIH Noise Stress Test Database, found none; fetch it "
            f"with: ecgquorum cohort fetch nstdb, or name its folder in {VARIABLE}"
        )
    try:
        recording = read(found, as_stated=True)
    except EcgQuorumError as error:
        raise CorruptionError(f"{found}: the noise cannot be read: {error}") from error
    signal = resample(fill_gaps(recording), recording.rate_hz, rate_hz).astype(np.float64)
    if above_hz:
        spectrum = np.fft.rfft(signal, axis=1)
        spectrum[:, np.fft.rfftfreq(signal.shape[1], 1 / rate_hz) < above_hz] = 0.0
        signal = np.fft.irfft(spectrum, signal.shape[1], axis=1)
    centred = signal - signal.mean(axis=1, keepdims=True)
    return np.asarray(centred / centred.std(axis=1, keepdims=True))
