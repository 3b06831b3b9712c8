"""Time computations, alone or against each other, and print rows of the tables."""

import statistics
import time
from collections.abc import Callable, Mapping

import torch


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


def seconds(run: Callable[[], object], times: int = 3) -> float:
    """Return the median time of a run, after one to warm up."""
    run()
    taken = []
    for _ in range(times):
        started = time.perf_counter()
        run()
        taken.append(time.perf_counter() - started)
    return statistics.median(taken)


def matmul_peak() -> float:
    """Return the floating-point operations per second of a large matrix product."""
    a = torch.randn(2048, 2048)
    return float(2 * 2048**3 / seconds(lambda: a @ a, 10))


def print_heading(what: str, unit: str) -> None:
    """Print the heading of a table."""
    print(f"\n{what:64s} {unit:>13s}   aim")


def print_row(name: str, value: float, aim: float | None = None, *, digits: int = 1, most: bool = False) -> None:
    """Print a row of a table.

    aim:  the least value wanted; None: no aim
    most: the aim is the largest value wanted instead
    """
    met = aim is not None and (value <= aim if most else value >= aim)
    end = "" if aim is None else f"   {aim:g}  {'met' if met else 'missed'}"
    print(f"  {name:62s} {value:13.{digits}f}{end}", flush=True)
