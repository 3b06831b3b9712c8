"""A table of a report: named cells in rows and columns."""

from dataclasses import dataclass

from ecgquorum.metrics import Estimate


@dataclass(frozen=True)
class TableCell:
    """Our value with its interval and the paper's value, in the unit of the table, or the reason why there is none."""

    estimate: Estimate | None
    paper: float | None = None
    reason: str = ""
    best: bool = False
    in_paper_setting: bool = True

    @property
    def difference(self) -> float | None:
        """Ours less the paper's, for an ensemble that was trained in the paper's setting."""
        if not self.in_paper_setting or self.estimate is None or self.paper is None:
            return None
        return self.estimate.value - self.paper


TableRow = tuple[str, tuple[TableCell, ...]]
"""An ensemble and its cells."""


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
