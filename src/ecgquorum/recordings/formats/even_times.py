"""Find the step of a column of times, which may be rounded to a few decimals."""

import numpy as np
from numpy.typing import NDArray

_UNEVEN = 0.01
_MOST_DECIMALS = 9
_MOST_LOOKED_AT = 100_000


def find_step(times: NDArray[np.float64]) -> tuple[float | None, int]:
    """The step between evenly increasing times; None and the place of the first that is not where it should be.

    Times that are rounded to a unit q, such as 0.0033, 0.0067 at 300 Hz, may differ by q from even ones, provided that
    q is less than a step. Where the mean step agrees within that error with a whole number of samples per time unit, or
    per thousandth of it, that number is used.
    """
    steps = np.diff(times)
    if not len(steps) or not np.isfinite(times).all():
        missing = np.flatnonzero(~np.isfinite(times))
        return None, int(missing[0]) if len(missing) else 0
    step = float((times[-1] - times[0]) / len(steps))
    if step <= 0:
        return None, int(np.flatnonzero(steps <= 0)[0]) + 1
    uneven = np.abs(steps - step) > _UNEVEN * step
    quantum = _rounding_unit(times[:_MOST_LOOKED_AT])
    if uneven.any():
        drift = np.abs(times - (times[0] + step * np.arange(len(times))))
        slack = quantum * 1.01 + _UNEVEN * step
        if quantum >= step:
            return None, int(np.flatnonzero(uneven)[0]) + 1
        for wrong in (np.abs(steps - step) > slack, drift[1:] > slack):
            if wrong.any():
                return None, int(np.flatnonzero(wrong)[0]) + 1
    return _snap(step, max(quantum, 1e-9 * abs(float(times[-1]))) / len(steps)), 0


def _rounding_unit(times: NDArray[np.float64]) -> float:
    """The largest power of ten of which all times are multiples; 0 if there is none."""
    precision = float(np.spacing(np.abs(times).max()))  # of seconds since 1970, a quarter of a microsecond
    for decimals in range(-3, _MOST_DECIMALS + 1):
        scaled = times * 10.0**decimals
        if np.ptp(scaled) >= 1 and (np.abs(scaled - np.rint(scaled)) < 1e-4 + precision * 10.0**decimals).all():
            return 10.0**-decimals
    return 0.0


def _snap(step: float, error: float) -> float:
    """The step whose inverse, or thousandfold inverse, is a whole number, if it differs by no more than the error."""
    for scale in (1.0, 1000.0):
        samples = round(scale / step)
        if samples and abs(scale / samples - step) <= error:
            return scale / samples
    return step
