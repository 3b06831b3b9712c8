"""A table of one metric: conditions as rows, ensembles as columns."""

import csv
import io
from dataclasses import dataclass

from ecgquorum.metrics import Estimate


@dataclass(frozen=True)
class ScoreTable:
    """One metric in per cent, with 95 % intervals.

    columns: the ensembles
    rows:    condition, and the value of each ensemble; None where it is not defined
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Estimate | None, ...]], ...]

    def __str__(self) -> str:
        """Format as text with aligned columns."""
        cells = [("", *self.columns)]
        cells += [(f"  {label}", *(_format(found) for found in values)) for label, values in self.rows]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = [self.title]
        for label, *values in cells:
            aligned = (value.rjust(width) for value, width in zip(values, widths[1:], strict=True))
            lines.append("  ".join((label.ljust(widths[0]), *aligned)).rstrip())
        return "\n".join(lines)

    def to_csv(self) -> str:
        """Format as CSV, one value a line: condition, ensemble, value, low, high."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["condition", "ensemble", "value", "low", "high"])
        for label, values in self.rows:
            for ensemble, found in zip(self.columns, values, strict=True):
                numbers = (found.value, found.low, found.high) if found else ("", "", "")
                writer.writerow([label, ensemble, *numbers])
        return text.getvalue()


def _format(found: Estimate | None) -> str:
    return "–" if found is None else f"{found.value:.1f} ({found.low:.1f} to {found.high:.1f})"
