"""What corruptions and out-of-distribution sets have in common: a seeded change of recordings in millivolts."""

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ecgquorum.errors import CorruptionError
from ecgquorum.preprocessing.input_spec import fill_gaps, select_leads, zero_missing_leads
from ecgquorum.recordings import STANDARD_LEADS, UNNAMED_LEAD, Recording

Array = NDArray[np.float64]
Generator = np.random.Generator


class SignalTransform(ABC):
    """A change of a recording. Subclasses write `change`; they are called with arrays or recordings."""

    @overload
    def __call__(self, signal: Recording, *, generator: Generator | None = None) -> Recording: ...

    @overload
    def __call__(
        self,
        signal: ArrayLike,
        rate_hz: float | None = None,
        *,
        leads: tuple[str, ...] | None = None,
        valid: ArrayLike | None = None,
        generator: Generator | None = None,
    ) -> NDArray[Any]: ...

    def __call__(
        self,
        signal: Recording | ArrayLike,
        rate_hz: float | None = None,
        *,
        leads: tuple[str, ...] | None = None,
        valid: ArrayLike | None = None,
        generator: Generator | None = None,
    ) -> Recording | NDArray[Any]:
        """Return the changed recording, of the same shape.

        signal:    a Recording; or millivolts as (time,), (lead, time) or (record, lead, time) with `rate_hz`
        leads:     names of the leads; by default one unnamed lead, or the twelve standard leads
        valid:     True on samples that may change, False on padding; (time,), or (record, 1, time); None: all
        generator: source of randomness; the same one gives the same result; None: a generator with seed 0

        A sample that is or goes missing is NaN in a Recording. In an array it is filled as for a model: a gap linearly,
        a lead that is mostly missing by others where they determine it, or by zeros.
        """
        rng = np.random.default_rng(0) if generator is None else generator
        if isinstance(signal, Recording):
            return self._change_recording(signal, rng)
        array = np.asarray(signal)
        if array.ndim not in (1, 2, 3) or array.size == 0:
            raise CorruptionError(f"expected (time,), (lead, time) or (record, lead, time), found {array.shape}")
        if rate_hz is None:
            raise CorruptionError("an array has no sampling rate of its own: give rate_hz= in samples per second")
        records = array.reshape((1,) * (3 - array.ndim) + array.shape)
        names = name_leads(records.shape[1]) if leads is None else tuple(leads)
        self.check_leads(names)
        inside = np.broadcast_to(True if valid is None else np.asarray(valid, dtype=bool), records.shape)
        changed = [
            self._change_inside(one, rate_hz, names, where, rng) for one, where in zip(records, inside, strict=True)
        ]
        kind = array.dtype if array.dtype.kind == "f" else np.float64
        return np.stack(changed).reshape(array.shape).astype(kind)

    def applies_to(self, leads: tuple[str, ...]) -> bool:  # noqa: ARG002 (most apply to all)
        """Whether the change means something for recordings with these leads."""
        return True

    def check_leads(self, leads: tuple[str, ...]) -> None:
        """Raise an error where the change does not apply to these leads."""
        if not self.applies_to(leads):
            raise CorruptionError(f"{type(self).__name__} does not apply to recordings with the leads {leads}")

    @abstractmethod
    def change(self, signal: Array, rate_hz: float, leads: tuple[str, ...], rng: Generator) -> Array:
        """Return the changed (lead, time), in millivolts, without padding; NaN where samples are missing."""

    def _change_recording(self, recording: Recording, rng: Generator) -> Recording:
        """Samples that are missing already stay missing."""
        self.check_leads(recording.leads)
        missing = ~np.isfinite(recording.signal)
        whole = fill_gaps(zero_missing_leads(recording)).astype(np.float64)
        changed = self.change(whole, recording.rate_hz, recording.leads, rng)
        return replace(recording, signal=np.where(missing, np.nan, changed).astype(np.float32))

    def _change_inside(
        self, signal: NDArray[Any], rate_hz: float, leads: tuple[str, ...], valid: NDArray[np.bool_], rng: Generator
    ) -> Array:
        """Change the stretch from the first to the last valid sample."""
        changed = signal.astype(np.float64)
        samples = np.flatnonzero(valid.any(axis=0))
        if len(samples):
            span = slice(samples[0], samples[-1] + 1)
            whole = fill_missing(changed[:, span], rate_hz, leads)
            found = fill_missing(self.change(whole, rate_hz, leads, rng), rate_hz, leads)
            changed[:, span] = np.where(valid[:, span], found, changed[:, span])
        return changed


def fill_missing(signal: Array, rate_hz: float, leads: tuple[str, ...]) -> Array:
    """Fill NaN as `InputSpec.fit` does for a model."""
    if np.isfinite(signal).all():
        return signal
    recording = Recording("array", signal.astype(np.float32), rate_hz, leads)
    filled = fill_gaps(zero_missing_leads(select_leads(recording, leads)))
    return np.where(np.isfinite(signal), signal, filled)


def name_leads(n_leads: int) -> tuple[str, ...]:
    """Names for the leads of an array: the unnamed lead, the twelve standard leads, or numbers."""
    known = {1: (UNNAMED_LEAD,), len(STANDARD_LEADS): STANDARD_LEADS}
    return known.get(n_leads, tuple(f"lead {number}" for number in range(n_leads)))
