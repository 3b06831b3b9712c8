"""What a text file says before its samples: titles of columns, units, and where the table begins."""

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from ecgquorum.recordings.formats.table_facts import TableFacts, parse_facts, states_fact
from ecgquorum.recordings.leads import STANDARD_LEADS, UNNAMED_LEAD, is_other_signal, normalise_leads
from ecgquorum.recordings.units import millivolts_in

_DELIMITERS = "\t;,"
SECONDS = {"s": 1.0, "sec": 1.0, "secs": 1.0, "second": 1.0, "seconds": 1.0, "ms": 1e-3, "msec": 1e-3} | {
    "millisecond": 1e-3,
    "milliseconds": 1e-3,
    "us": 1e-6,
    "microseconds": 1e-6,
}
"""Unit of time -> seconds in it."""

_OTHER_UNITS = ("mmhg", "bpm", "%", "ohm", "ohms", "l/min", "degc", "nu", "pm", "adu", "hh:mm:ss", "hh:mm:ss.mmm")

_DECIMAL_COMMA = re.compile(r"^([+-]?\d*),(\d+(?:[eE][+-]?\d+)?)$")
_TIME = re.compile(r"^(?:elapsed|relative)?[ _]*(?:time|t|timestamp|seconds|sec|ms|milliseconds)$", re.IGNORECASE)
_TIME_WITH_UNIT = re.compile(
    r"^(?:elapsed|relative)?[ _]*(?:time|t|timestamp)[ _]+(?:in[ _])?(?P<unit>[a-z]+)$", re.IGNORECASE
)
_SAMPLE_NUMBER = re.compile(
    r"^(?:sample|samples|index|idx|n|no|row)?[ _]*(?:number|num|no|index|idx|#|nr)?\.?$", re.IGNORECASE
)
_IN_BRACKETS = re.compile(r"^(?P<name>[^\[(]*?)\s*[\[(]\s*(?P<unit>[^\])]*)\s*[\])]\s*$")
_WITH_UNIT = re.compile(r"^(?P<name>.+?)[ _](?P<unit>[mun\u00b5\u03bc]?v)$", re.IGNORECASE)
_ONE_OR_TWO = re.compile(r"^\s*[+-]?\d+(?:,(?P<second>\d+))?\s*$")
_GROUPED = re.compile(r"^\s*[+-]?\d{1,3}(?:\.\d{3})+,\d+\s*$")
_MOST_ROWS = 1000
_ADVICE = "write decimal points, or separate columns by semicolons"


@dataclass(frozen=True)
class Column:
    """One column: what it holds and in which unit.

    kind: "lead", "time", "number" (of the sample) or "other": no ECG, of which the cells may be text
    """

    name: str
    kind: str = "lead"
    unit: str | None = None


@dataclass(frozen=True)
class TableHeader:
    """The lines of a text file before its samples.

    n_lines: how many there are
    facts:   what the lines before the titles state
    doubt:   why the numbers of the table have no certain meaning, with a line; empty: they have
    """

    n_lines: int
    delimiter: str
    columns: tuple[Column, ...]
    facts: TableFacts
    doubt: str = ""


def parse_table_header(lines: Sequence[str]) -> TableHeader | None:
    """Find the table in the first lines of a file: it begins with two lines of numbers; None if there are none.

    Columns whose titles say that they are no ECG may hold text.
    """
    filled = [number for number, line in enumerate(lines) if line.strip()]
    table, found = _first_row(lines, filled)
    n_above = filled.index(table) + 1 if found else min(len(filled), _MOST_ROWS)
    titled = _find_titles(lines, filled[:n_above])
    if titled is not None:
        return titled
    if found is None:
        return None
    above = [lines[number] for number in filled if number < table]
    rows = {number: lines[number] for number in filled[n_above - 1 :][:_MOST_ROWS]}
    delimiter, doubt = _check_commas(rows, above) if found == "," else (found, "")
    n_columns = len(split_line(lines[table], delimiter))
    titles = _pop_titles(above, delimiter, n_columns)
    units = titles if _are_units(titles) else []
    if units:
        titles = _pop_titles(above, delimiter, n_columns)
    columns = _columns(titles, units) or (Column(""),) * n_columns
    return TableHeader(table, delimiter, columns, parse_facts(above), doubt)


def _find_titles(lines: Sequence[str], filled: Sequence[int]) -> TableHeader | None:
    """The header of a table with a column that is no ECG, which may hold text; None if there is no such table."""
    for place, (title, after) in enumerate(pairwise(filled)):
        for delimiter in (one for one in _DELIMITERS if one in lines[title] and one in lines[after]):
            titles, units = split_line(lines[title].lstrip("#% "), delimiter), split_line(lines[after], delimiter)
            has_units = _are_units(units) and len(units) == len(titles) and place + 2 < len(filled)
            first = filled[place + 2] if has_units else after
            columns = _match_titles(titles, units if has_units else (), split_line(lines[first], delimiter))
            if columns:
                return TableHeader(first, delimiter, columns, parse_facts([lines[i] for i in filled[:place]]))
    return None


def _match_titles(titles: Sequence[str], units: Sequence[str], cells: Sequence[str]) -> tuple[Column, ...]:
    """The columns, if some are no ECG and all others hold numbers in the first row; none otherwise.

    A column of times that are no numbers, such as 12:00:01, is no ECG either. One title must be that of a lead, of
    times or of sample numbers: `Date,2020-01-01` above `Age,50` are no titles.
    """
    if len(titles) != len(cells) or count_text(titles) < sum(map(bool, titles)):
        return ()
    is_text = [count_text([cell]) > 0 for cell in cells]
    columns = tuple(
        replace(one, kind="other") if one.kind == "time" and text else one
        for one, text in zip(_columns(titles, units), is_text, strict=True)
    )
    numbers = [text for one, text in zip(columns, is_text, strict=True) if one.kind != "other"]
    is_table = len(numbers) < len(columns) and not any(numbers) and any(map(_is_certain, columns))
    return columns if is_table else ()


def _is_certain(column: Column) -> bool:
    """Whether the title says what the column is, which text that is no title could not."""
    if column.kind == "lead":
        return column.name in (*STANDARD_LEADS, UNNAMED_LEAD) or millivolts_in(column.unit or "") is not None
    return column.kind in ("time", "number") and bool(column.name)


def _check_commas(rows: Mapping[int, str], above: Sequence[str]) -> tuple[str, str]:
    """The delimiter of a table with commas, a semicolon if they are decimal commas of one column; why it is in doubt.

    Titles tell, one for each column. Without them, `12,045`, or lines with and without a comma, are decimal commas.

    rows: lines of the table by their place
    """
    seconds, grouped = [], None
    for number, row in rows.items():
        match = _ONE_OR_TWO.match(row)
        if match:
            seconds.append(match["second"])
        elif _GROUPED.match(row):
            grouped = number if grouped is None else grouped
        elif delimiter_of_row(row):
            return ",", ""
    titles = split_line(above[-1].lstrip("#% "), ",") if above else []
    if not any(seconds) or (len(titles) == 2 and not states_fact(titles)):
        return ",", ""
    if grouped is not None:
        return ",", f"line {grouped + 1}: expected numbers with one decimal mark, found a point and a comma; {_ADVICE}"
    has_title = len(titles) == 1 and not re.search(r"[:=]", titles[0])
    if has_title or not all(seconds) or any(len(one) > 1 and one[0] == "0" for one in seconds if one):
        return ";", ""
    facts = parse_facts(above)
    if not facts.lead and not facts.unit:
        return ",", ""
    line = next(iter(rows)) + 1
    return ",", f"line {line}: its comma may be a decimal mark or stand between two columns; {_ADVICE}"


def _first_row(lines: Sequence[str], filled: Sequence[int]) -> tuple[int, str | None]:
    """Where the table begins, and its delimiter: the first line of numbers that another one, or nothing, follows."""
    found: tuple[int, str | None] = (0, None)
    for number in filled:
        delimiter = delimiter_of_row(lines[number])
        if delimiter and found[1]:
            break
        found = (number, delimiter)
    return found


def delimiter_of_row(line: str) -> str | None:
    """What separates the cells of a line of numbers; None if it has other text."""
    for delimiter in _DELIMITERS:
        if delimiter in line or delimiter == _DELIMITERS[-1]:
            cells = split_line(line, delimiter)
            numbers = [_number(cell) is not None for cell in cells if cell]
            if numbers and all(numbers):
                return delimiter
    return None


def split_line(line: str, delimiter: str) -> list[str]:
    """The cells of a line, without quotes; a decimal comma becomes a point."""
    cells = next(csv.reader([line.rstrip("\r\n")], delimiter=delimiter, skipinitialspace=True), [])
    stripped = [cell.strip().strip("'").strip() for cell in cells]
    return [_DECIMAL_COMMA.sub(r"\1.\2", cell) for cell in stripped]


def count_text(cells: Sequence[str]) -> int:
    """How many cells hold something that is no number."""
    return sum(bool(cell) and _number(cell) is None for cell in cells)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _pop_titles(above: list[str], delimiter: str, n_columns: int) -> list[str]:
    """Take the last of the lines above as titles, if it has one for each column; else none."""
    cells = split_line(above[-1].lstrip("#% "), delimiter) if above else []
    is_fact = states_fact(cells) and not _are_units(cells)
    if len(cells) != n_columns or is_fact or (n_columns == 1 and re.search(r"[:=,;\t]", cells[0])):
        return []
    above.pop()
    return cells


def _are_units(titles: Sequence[str]) -> bool:
    """Whether the cells of a line are units, one of voltage or time among them."""
    units = [millivolts_in(title) is not None or title.lower() in SECONDS for title in titles if title]
    return any(units) and all(
        one or title.lower() in _OTHER_UNITS for one, title in zip(units, filter(None, titles), strict=True)
    )


def _columns(titles: Sequence[str], units: Sequence[str] = ()) -> tuple[Column, ...]:
    """What the titles of all columns say, with a line of units below them, if there is one."""
    found = [_column(title) for title in titles]
    if units:
        found = [replace(one, unit=one.unit or unit or None) for one, unit in zip(found, units, strict=True)]
    names = normalise_leads(one.name for one in found)
    return tuple(
        replace(one, name=name, kind="other" if one.kind == "lead" and is_other_signal(name) else one.kind)
        for one, name in zip(found, names, strict=True)
    )


def _column(title: str) -> Column:
    """What a column's title says by itself."""
    bracketed = _IN_BRACKETS.match(title)
    name, unit = (bracketed["name"].strip(), bracketed["unit"].strip()) if bracketed else (title, None)
    if _TIME.match(name):
        return Column(name, "time", unit or (name if name.lower() in SECONDS else None))
    timed = _TIME_WITH_UNIT.match(name)
    if timed and timed["unit"].lower() in SECONDS:
        return Column(name, "time", timed["unit"])
    if _SAMPLE_NUMBER.match(name):
        return Column(name, "number")
    suffixed = _WITH_UNIT.match(name)
    if suffixed and unit is None:
        return Column(suffixed["name"], unit=suffixed["unit"])
    return Column(name, unit=unit)
