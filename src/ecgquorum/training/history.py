"""The history of a run: one row per epoch."""

import csv
import io
from collections.abc import Sequence
from typing import Any

HistoryRow = dict[str, Any]
"""Phase, member, epoch, losses and whatever strategies record."""


def format_epoch(row: HistoryRow) -> str:
    """Return a row as a line for people."""
    return (
        f"epoch {row['epoch']:3d}  loss {row['loss']:.4f}  tune loss {row['tune_loss']:.4f}  "
        f"tune accuracy {row['tune_accuracy']:.4f}  {row['seconds']:.1f} s"
    )


def history_csv(history: Sequence[HistoryRow]) -> str:
    """Return the rows as CSV, with a column for everything that any of them has."""
    columns = dict.fromkeys(["phase", "member", "epoch", *(key for row in history for key in row)])
    text = io.StringIO()
    writer = csv.DictWriter(text, list(columns))
    writer.writeheader()
    writer.writerows(
        {key: f"{value:.6g}" if isinstance(value, float) else value for key, value in row.items()} for row in history
    )
    return text.getvalue()
