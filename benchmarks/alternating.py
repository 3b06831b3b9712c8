"""Time variants of a computation against each other."""

import statistics
import time
from collections.abc import Callable, Mapping


def ratios(variants: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Return, for each variant, the median over rounds of its time divided by the first variant's in the same round.

    Every variant runs once beforehand. The order rotates by one each round, so that no variant always follows the same
    one.
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
