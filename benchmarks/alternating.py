"""Timing variants against each other."""

import statistics
import time
from collections.abc import Callable, Mapping


def ratios(variants: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """The median over rounds of each variant's time as a multiple of the first one's in the same round.

    Every variant runs once beforehand; the order turns by one each round, so that none is always the one that comes
    after another.
    """
    names = list(variants)
    for run in variants.values():
        run()
    times: dict[str, list[float]] = {name: [] for name in names}
    for number in range(rounds):
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            started = time.perf_counter()
            variants[name]()
            times[name].append(time.perf_counter() - started)
    first = times[names[0]]
    return {name: statistics.median(t / f for t, f in zip(times[name], first, strict=True)) for name in names}
