"""Tables as CSV, Markdown and LaTeX."""

import csv
import io
import math
from collections.abc import Iterator

from ecgquorum.report.report_table import ReportTable, TableCell

_LATEX = {"\\": r"\textbackslash{}", "$": r"\$", "{": r"\{", "}": r"\}", "^": r"\textasciicircum{}"}
_LATEX |= {"%": r"\%", "_": r"\_", "&": r"\&", "#": r"\#", "µ": r"$\mu$", "ε": r"$\varepsilon$", "Δ": r"$\Delta$"}
_LATEX |= {"≥": r"$\geq$", "→": r"$\rightarrow$", "×": r"$\times$", "²": r"$^2$", "~": r"\textasciitilde{}"}
_WIDE = 6
"""Columns of a Markdown table that still fit on a page."""


def to_csv(table: ReportTable) -> str:
    """Format as CSV, one cell a line."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        ["ensemble", "heading", "column", "value", "low", "high", "spread", "paper", "difference", "reason"]
    )
    for name, cells in table.rows:
        for (heading, label), cell in zip(table.columns, cells, strict=True):
            found = cell.estimate
            ours = [found.value, found.low, found.high] if found else [None] * 3
            rounded = ["" if n is None else f"{n:.4f}" for n in (*ours, cell.spread, cell.paper, cell.difference)]
            writer.writerow([name, heading, label, *rounded, cell.reason])
    return text.getvalue()


def to_markdown(table: ReportTable) -> str:
    """Format as a Markdown section; a wide table as one below the other for each heading of its columns."""
    lines = [f"### {table.title}"]
    for heading, columns in _split_columns(table):
        titles = [
            f"{above}: {label}" if above and above != heading else label for above, label in table.columns[columns]
        ]
        lines += ["", _markdown_line([heading, *titles]), _markdown_line(["---"] * (len(titles) + 1))]
        lines += [
            _markdown_line([name, *(_format_cell(cell, table.digits) for cell in cells[columns])])
            for name, cells in table.rows
            if any(cell.estimate for cell in cells[columns])
        ]
    if table.note:
        lines += ["", table.note]
    return "\n".join(lines) + "\n"


def _split_columns(table: ReportTable) -> Iterator[tuple[str, slice]]:
    """Columns that fit beside each other, with the heading that they share."""
    if len(table.columns) <= _WIDE:
        yield "", slice(None)
        return
    start = 0
    for heading, size in table.groups:
        width = math.ceil(size / math.ceil(size / _WIDE))
        for first in range(start, start + size, width):
            yield heading, slice(first, min(first + width, start + size))
        start += size


def to_latex(table: ReportTable) -> str:
    """Format as a LaTeX `tabular` in the paper's layout: ours with its interval, the paper's below it."""
    layout = "l " + " ".join("c" * size for _, size in table.groups).replace(" ", "|")
    heads = " & ".join(rf"\multicolumn{{{size}}}{{c}}{{{_escape_latex(heading)}}}" for heading, size in table.groups)
    labels = " & ".join(_escape_latex(label) for _, label in table.columns)
    lines = [rf"\begin{{tabular}}{{{layout}}}", r"\hline", rf" & {heads} \\", rf" & {labels} \\", r"\hline"]
    for name, cells in table.rows:
        ours = [_latex_cell(cell, table.digits) for cell in cells]
        lines.append(f"{_escape_latex(name)} & {' & '.join(ours)} \\\\")
        if table.compares:
            papers = [_paper_latex_cell(cell, table.digits) for cell in cells]
            lines.append(rf"{{\scriptsize paper}} & {' & '.join(papers)} \\")
    caption = " ".join(part for part in (f"{table.title}.", table.note) if part)
    return "\n".join([f"% {table.title}", *lines, r"\hline", r"\end{tabular}", f"% {caption}"]) + "\n"


def _format_cell(cell: TableCell, digits: int) -> str:
    if cell.estimate is None:
        return f"– ({cell.reason})"
    found = cell.estimate
    value = f"{found.value:.{digits}f}"
    spread = "" if cell.spread is None else f" ± {cell.spread:.{digits}f}"
    text = f"{f'**{value}**' if cell.best else value}{spread} ({found.low:.{digits}f} to {found.high:.{digits}f})"
    if cell.paper is not None:
        text += f"; paper {cell.paper:.{digits}f}"
    if cell.difference is not None:
        text += f", {cell.difference:+.{digits}f}"
    return text


def _latex_cell(cell: TableCell, digits: int) -> str:
    if cell.estimate is None:
        return "--"
    found = cell.estimate
    value = f"{found.value:.{digits}f}"
    value = rf"\textbf{{{value}}}" if cell.best else value
    spread = "" if cell.spread is None else rf" $\pm$ {cell.spread:.{digits}f}"
    return rf"{value}{spread} {{\scriptsize [{found.low:.{digits}f}, {found.high:.{digits}f}]}}"


def _paper_latex_cell(cell: TableCell, digits: int) -> str:
    if cell.paper is None:
        return ""
    difference = "" if cell.difference is None else f" ({cell.difference:+.{digits}f})"
    return rf"{{\scriptsize {cell.paper:.{digits}f}{difference}}}"


def _escape_latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)


def _markdown_line(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
