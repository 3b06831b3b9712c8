"""A table of a report: named cells in rows and columns."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from ecgquorum.metrics import Estimate


@dataclass(frozen=True)
class TableCell:
    """Our value with its interval and the paper's value, in the unit of the table, or the reason why there is none.

    spread: standard deviation over seeds, where the value is a mean over several
    """

    estimate: Estimate | None
    paper: float | None = None
    reason: str = ""
    best: bool = False
    in_paper_setting: bool = True
    spread: float | None = None

    @property
    def difference(self) -> float | None:
        """Ours less the paper's, for an ensemble that was trained in the paper's setting."""
        if not self.in_paper_setting or self.estimate is None or self.paper is None:
            return None
        return self.estimate.value - self.paper


Best = Callable[[list[float]], float]
"""Chooses the best value of a column: `max` or `min`."""

TableRow = tuple[str, tuple[TableCell, ...]]
"""The name of a strategy and its cells."""


@dataclass(frozen=True)
class ReportTable:
    """Named cells in rows and columns.

    columns: a heading that neighbours may share, which may be empty, and each one's own
    """

    name: str
    title: str
    note: str
    columns: tuple[tuple[str, str], ...]
    rows: tuple[TableRow, ...]
    digits: int = 1

    @property
    def groups(self) -> list[tuple[str, int]]:
        """Headings over the columns, and over how many of them each stands."""
        groups: list[tuple[str, int]] = []
        for heading, _ in self.columns:
            if groups and groups[-1][0] == heading:
                groups[-1] = (heading, groups[-1][1] + 1)
            else:
                groups.append((heading, 1))
        return groups

    @property
    def compares(self) -> bool:
        """Whether the paper has a result for any cell."""
        return any(cell.paper is not None for _, cells in self.rows for cell in cells)


def average(estimates: Sequence[Estimate]) -> Estimate:
    """Return the mean value, with the means of the lower and of the upper ends.

    All are of the same recordings, so the interval of the mean is no wider than that.
    """
    return Estimate(*(fmean(each) for each in zip(*((one.value, one.low, one.high) for one in estimates), strict=True)))


def mark_best(rows: list[TableRow], best: Best | None, compares: list[bool]) -> tuple[TableRow, ...]:
    """Mark the best value of each column that compares ensembles, where there are several."""
    if best is None or len(rows) < 2:
        return tuple(rows)
    tops = []
    for number, column in enumerate(zip(*(cells for _, cells in rows), strict=True)):
        values = [cell.estimate.value for cell in column if cell.estimate and compares[number]]
        tops.append(best(values) if len(values) > 1 else None)
    return tuple(
        (
            name,
            tuple(
                replace(cell, best=bool(cell.estimate and cell.estimate.value == top))
                for cell, top in zip(cells, tops, strict=True)
            ),
        )
        for name, cells in rows
    )


def describe_unit(unit: str) -> str:
    """In what a strength is given: in µV, or as a share of the lead's peak."""
    return f"as a share {unit}" if unit.startswith("of ") else f"in {unit}"
