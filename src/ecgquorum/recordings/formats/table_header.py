"""What a text file says before its samples: lines of keys and values, titles of columns, units."""

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ecgquorum.recordings.acquisition import Acquisition, parse_years
from ecgquorum.recordings.leads import STANDARD_LEADS, normalise_lead
from ecgquorum.recordings.units import millivolts_in

_DELIMITERS = "\t;,"
SECONDS = {"s": 1.0, "sec": 1.0, "secs": 1.0, "second": 1.0, "seconds": 1.0, "ms": 1e-3, "msec": 1e-3} | {
    "millisecond": 1e-3,
    "milliseconds": 1e-3,
    "us": 1e-6,
    "microseconds": 1e-6,
}
"""Unit of time -> seconds in it."""

_DECIMAL_COMMA = re.compile(r"^([+-]?\d*),(\d+(?:[eE][+-]?\d+)?)$")
_KEY_AND_VALUE = re.compile(r"^(?P<key>[^,;:=\t]{1,60})\s*[,;:=\t]\s*(?P<value>.{1,200})$")
_TIME = re.compile(r"^(?:elapsed|relative)?[ _]*(?:time|t|timestamp|seconds|sec|ms|milliseconds)$", re.IGNORECASE)
_TIME_WITH_UNIT = re.compile(
    r"^(?:elapsed|relative)?[ _]*(?:time|t|timestamp)[ _]+(?:in[ _])?(?P<unit>[a-z]+)$", re.IGNORECASE
)
_SAMPLE_NUMBER = re.compile(
    r"^(?:sample|samples|index|idx|n|no|row)?[ _]*(?:number|num|no|index|idx|#|nr)?\.?$", re.IGNORECASE
)
_IN_BRACKETS = re.compile(r"^(?P<name>[^\[(]*?)\s*[\[(]\s*(?P<unit>[^\])]*)\s*[\])]\s*$")
_WITH_UNIT = re.compile(r"^(?P<name>.+?)[ _](?P<unit>[mun\u00b5\u03bc]?v)$", re.IGNORECASE)
_RATE = re.compile(r"^(?P<number>\d+(?:[.,]\d+)?)\s*(?P<unit>hz|hertz|khz|sps|samples/s(?:econd)?)?$", re.IGNORECASE)
_RATE_KEY = re.compile(
    r"\b(?:sampl\w*|fs|sf|acquisition)\b.*\b(?:rate|freq\w*|fs|hz)\b|^(?:fs|sf|sfreq|rate|rate_hz|frequency)$"
)
_FILTER_KEY = re.compile(r"filt|notch|pass|cut|band|mains|line|netz|heart|puls")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


@dataclass(frozen=True)
class Column:
    """One column: what it holds and in which unit.

    kind: "lead", "time" or "number" (of the sample)
    """

    name: str
    kind: str = "lead"
    unit: str | None = None


@dataclass(frozen=True)
class TableHeader:
    """The lines of a text file before its samples.

    n_lines: how many there are
    facts:   keys, in lower case, and values of the lines before the titles
    """

    n_lines: int
    delimiter: str
    columns: tuple[Column, ...]
    facts: dict[str, str] = field(default_factory=dict)

    @property
    def rate_hz(self) -> float | None:
        """The rate that a line before the table states: `Sample Rate,512 hertz`.

        In any language if one line says hertz; filters have frequencies too, and several do not tell which is the rate.
        """
        named, others = [], set()
        for key, value in self.facts.items():
            if match := _RATE.match(value.strip()):
                unit = (match["unit"] or "").lower()
                number = float(match["number"].replace(",", ".")) * (1000 if unit == "khz" else 1)
                if _RATE_KEY.search(key):
                    named.append(number)
                elif unit and not _FILTER_KEY.search(key):
                    others.add(number)
        return named[0] if named else others.pop() if len(others) == 1 else None

    @property
    def unit(self) -> str | None:
        """The unit of voltage that a line before the table states."""
        return next((value for value in self.facts.values() if millivolts_in(value) is not None), None)

    @property
    def lead(self) -> str | None:
        """The lead that a line before the table states."""
        names = map(normalise_lead, self.facts.values())
        return next((name for name in names if name in STANDARD_LEADS), None)

    @property
    def acquisition(self) -> Acquisition:
        """Patient, time and device, where lines before the table state them."""
        return Acquisition(
            patient_id=self._first("patient id", "patientid", "patient_id", "subject id", "id"),
            name=self._first("name", "patient name"),
            sex=self._first("sex", "gender"),
            birth_date=_iso_date(self._first("date of birth", "birth date", "dob") or ""),
            age_years=parse_years(self._first("age")),
            time=_iso_time(self._first("recorded date", "recording date", "start time", "date") or ""),
            device=self._first("device", "recorder"),
        )

    def _first(self, *keys: str) -> str | None:
        return next((self.facts[key] for key in keys if key in self.facts), None)


def parse_table_header(lines: Sequence[str]) -> TableHeader | None:
    """Find the table in the first lines of a file: it begins with two lines of numbers; None if there are none."""
    filled = [number for number, line in enumerate(lines) if line.strip()]
    table, delimiter = _first_row(lines, filled)
    if delimiter is None:
        return None
    above = [lines[number] for number in filled if number < table]
    if delimiter == "," and above and lines[table].count(",") == 1 and "," not in above[-1]:
        delimiter = ";"  # one column of decimal commas
    n_columns = len(split_line(lines[table], delimiter))
    titles = _pop_titles(above, delimiter, n_columns)
    units = titles if _are_units(titles) else []
    if units:
        titles = _pop_titles(above, delimiter, n_columns)
    columns = [_column(title) for title in titles] or [Column("")] * n_columns
    if units:
        columns = [replace(one, unit=one.unit or unit) for one, unit in zip(columns, units, strict=True)]
    return TableHeader(table, delimiter, tuple(columns), _facts(above))


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


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _pop_titles(above: list[str], delimiter: str, n_columns: int) -> list[str]:
    """Take the last of the lines above as titles, if it has one for each column; else none."""
    cells = split_line(above[-1].lstrip("#% "), delimiter) if above else []
    states_unit = len(cells) == 2 and millivolts_in(cells[1]) is not None and not _are_units(cells)
    if len(cells) != n_columns or states_unit or (n_columns == 1 and re.search(r"[:=]", cells[0])):
        return []
    above.pop()
    return cells


def _are_units(titles: Sequence[str]) -> bool:
    units = [millivolts_in(title) is not None or title.lower() in SECONDS for title in titles if title]
    return bool(units) and all(units)


def _column(title: str) -> Column:
    """What a column's title says."""
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


def _facts(lines: Sequence[str]) -> dict[str, str]:
    """Keys and values of lines such as `Sample Rate,300 Hz`, `# fs: 300` or `Device = X`."""
    facts: dict[str, str] = {}
    for line in lines:
        text = line.strip().lstrip("#%/ ").replace('"', "")
        match = _KEY_AND_VALUE.match(text)
        if match and match["value"].strip():
            facts.setdefault(match["key"].strip().lower(), match["value"].strip())
    return facts


def _iso_date(text: str) -> str | None:
    """`27 Sep 1999` or an ISO date as ISO 8601."""
    match = re.fullmatch(r"(\d{1,2})[ .-]([A-Za-z]{3})[a-z]*[ .-](\d{4})", text)
    if match and match[2].lower() in _MONTHS:
        return f"{match[3]}-{_MONTHS.index(match[2].lower()) + 1:02d}-{int(match[1]):02d}"
    return text or None


def _iso_time(text: str) -> str | None:
    """`2021-12-17 12:58:58 +0800` as ISO 8601."""
    return re.sub(r"\s+(?=[+-]\d\d:?\d\d$)", "", text) or None
