"""Proportions with their confidence intervals."""

import math

from pydantic import BaseModel

_Z = 1.959963984540054


class Proportion(BaseModel):
    """A proportion `count / total` with its 95 % Wilson interval."""

    count: int
    total: int
    value: float | None
    low: float | None
    high: float | None


def proportion(count: int, total: int) -> Proportion:
    """count / total with Wilson's interval: (p + z²/2n ± z √(p(1-p)/n + z²/4n²)) / (1 + z²/n)."""
    if total == 0:
        return Proportion(count=0, total=0, value=None, low=None, high=None)
    p, n, square = count / total, total, _Z * _Z
    middle = (p + square / (2 * n)) / (1 + square / n)
    half = _Z * math.sqrt(p * (1 - p) / n + square / (4 * n * n)) / (1 + square / n)
    return Proportion(count=count, total=total, value=p, low=max(0.0, middle - half), high=min(1.0, middle + half))
