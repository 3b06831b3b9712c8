"""ECGs as text: CSV or TSV, one column for each lead, with or without titles and lines of keys and values above."""

import csv
import io
import re
import warnings
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ecgquorum.errors import RecordingError
from ecgquorum.recordings.file_defaults import FileDefaults
from ecgquorum.recordings.filetree import OpenedFile
from ecgquorum.recordings.formats.even_times import find_step
from ecgquorum.recordings.formats.table_header import (
    SECONDS,
    Column,
    TableHeader,
    count_text,
    parse_table_header,
    split_line,
)
from ecgquorum.recordings.leads import note_left_out
from ecgquorum.recordings.reader_protocol import reader
from ecgquorum.recordings.recording import Recording, as_samples, one_line
from ecgquorum.recordings.units import common_unit, millivolts_in

_FILE_BYTES = 512 << 20
_MOST_VALUES = 1 << 26
_HEAD_CHARACTERS, _CHUNK_CHARACTERS = 1 << 16, 1 << 22
_MOST_COLUMNS = 256


@reader(".csv", ".tsv")
def read_table(file: OpenedFile, defaults: FileDefaults) -> Recording:
    """Read a table of samples, a piece at a time.

    Titles may give units, as in `II (mV)`, and a column `time (s)`, `time_ms` or the like gives the rate. Lines above
    the table may state rate, unit, lead and patient, as in the exports of Apple Watch. What the file does not say is
    taken from the defaults.
    """
    where = file.path
    header, values = _read_values(file)
    columns = header.columns
    times = [i for i, column in enumerate(columns) if column.kind == "time"]
    first_line = header.n_lines + 1
    rate_hz = _rate(where, values[times[0]], columns[times[0]].unit, first_line) if times else header.facts.rate_hz
    leads = [i for i, column in enumerate(columns) if _is_lead(where, column, values.get(i), first_line)]
    if not leads:
        raise RecordingError(f"{where}: expected a column of samples, found none")
    rows = [i for i in leads if millivolts_in(columns[i].unit or "mV") is not None] or leads
    left_out = [i for i, one in enumerate(columns) if one.kind in ("lead", "other") and i not in rows]
    left_out = [i for i in (*left_out, *times[1:]) if i not in values or not np.isnan(values[i]).all()]
    units = [columns[i].unit or header.facts.unit for i in rows]
    found = [columns[i].name for i in rows]
    if found == [""] and header.facts.lead:
        found = [header.facts.lead]
    factors = [defaults.millivolts(where, unit) for unit in units]
    return Recording(
        file.stem,
        np.stack([as_samples(values[i] * factor) for i, factor in zip(rows, factors, strict=True)]),
        defaults.rate(where, rate_hz),
        defaults.leads_of(where, found),
        header.facts.acquisition,
        source=where,
        unit=common_unit(unit or defaults.units for unit in units),
        notes=note_left_out(columns[i].name for i in sorted(left_out)),
    )


def _read_values(file: OpenedFile) -> tuple[TableHeader, dict[int, NDArray[np.floating]]]:
    """The header, and (line,) of each column that may be numbers, by its place; an empty cell is NaN."""
    where, size = file.path, file.tree.size(file.name) or 0
    if size > _FILE_BYTES:
        raise RecordingError(
            f"{where}: expected at most {_FILE_BYTES} bytes of text, found {size}; convert it to .npz or split it"
        )
    try:
        with file.tree.open(file.name) as stream:
            text = io.TextIOWrapper(stream, _encoding(file), errors="replace")
            head = _plain_minus(text.read(_HEAD_CHARACTERS) + text.readline(_HEAD_CHARACTERS))
            header = parse_table_header(head.splitlines())
            if header is None:
                raise RecordingError(f"{where}: {_no_numbers(head)}")
            if header.doubt:
                raise RecordingError(f"{where}: {header.doubt}")
            if len(header.columns) > _MOST_COLUMNS:
                raise RecordingError(
                    f"{where}: expected at most {_MOST_COLUMNS} columns, found {len(header.columns)}; "
                    "one line is one moment"
                )
            if all(column.kind == "other" for column in header.columns):
                names = ", ".join(column.name[:40] for column in header.columns[:12])
                raise RecordingError(f"{where}: expected a column of samples, found {names}")
            start = "".join(head.splitlines(keepends=True)[header.n_lines :])
            return _gather(where, header, _chunks(start, text))
    except RecordingError:
        raise
    except Exception as error:  # what a damaged archive raises is not documented
        raise RecordingError(f"{where}: cannot be read: {one_line(error)}") from error


def _encoding(file: OpenedFile) -> str:
    head = file.head(_HEAD_CHARACTERS)
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    try:
        head[:-4].decode("utf-8-sig")  # a character may be cut at the end
    except UnicodeDecodeError:
        return "latin-1"
    return "utf-8-sig"


def _no_numbers(head: str) -> str:
    """Why there is no table; a message does not quote a line, which may name a patient."""
    lines = [number for number, line in enumerate(head.splitlines(), start=1) if line.strip()]
    if not lines:
        return "expected a table of samples, found nothing"
    number = lines[1 if len(lines) > 1 else 0]
    return f"line {number}: expected numbers, found text; there is no table of samples"


def _chunks(start: str, text: io.TextIOWrapper) -> Iterator[str]:
    """Pieces of the table, each of whole lines."""
    chunk = start
    while chunk:
        yield chunk
        chunk = text.read(_CHUNK_CHARACTERS)
        if chunk and not chunk.endswith("\n"):
            chunk += text.readline(_CHUNK_CHARACTERS)
        chunk = _plain_minus(chunk)


def _plain_minus(text: str) -> str:
    return text.replace("\u2212", "-")  # as some languages write it


def _gather(
    where: str, header: TableHeader, chunks: Iterator[str]
) -> tuple[TableHeader, dict[int, NDArray[np.floating]]]:
    line, n_values = header.n_lines + 1, 0
    numeric = [i for i, column in enumerate(header.columns) if column.kind != "other"]
    parts: dict[int, list[NDArray[np.floating]]] = {i: [] for i in numeric}
    for chunk in chunks:
        found = _parse(where, chunk, header, numeric, line)
        line += chunk.count("\n")
        n_values += found.size
        if n_values > _MOST_VALUES:
            raise RecordingError(
                f"{where}: line {line}: expected at most {_MOST_VALUES} numbers, found more; convert the file to "
                ".npz or split it"
            )
        for i, values in zip(numeric, found.T, strict=True):
            parts[i].append(values.copy() if header.columns[i].kind != "lead" else as_samples(values))
    columns = {i: np.concatenate(part) for i, part in parts.items()}
    if all(np.isnan(values).all() for values in columns.values()):
        raise RecordingError(f"{where}: expected numbers, found none")
    return header, columns


def _parse(where: str, chunk: str, header: TableHeader, numeric: list[int], line: int) -> NDArray[np.float64]:
    """(line, column) of the columns of numbers; an empty cell is NaN.

    line: number of the first, for messages
    """
    text, delimiter, n_columns = chunk, header.delimiter, len(header.columns)
    lines = [one for one in chunk.splitlines() if one.strip()] if len(numeric) < n_columns else []
    if len(numeric) < n_columns:  # text in the others may hold anything
        rows = (row for row in csv.reader(lines, delimiter=delimiter, skipinitialspace=True) if len(row) == n_columns)
        text = "\n".join(delimiter.join(row[i].replace(",", ".") for i in numeric) for row in rows)
    if '"' in text or "'" in text:
        text = re.sub(r"[\"'] *([+-]?\d*),(\d+) *[\"']", r"\1.\2", text).replace('"', "").replace("'", "")
    if delimiter != "," and "," in text:
        text = text.replace(",", ".")
    if _may_have_empty_cells(text, delimiter):  # the search takes longer than parsing does
        text = re.sub(rf"(?m)(?<={delimiter})[ ]*(?=[{delimiter}\n]|$)|^[ ]*(?={delimiter})", "nan", text)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about empty input
            found = np.loadtxt(io.StringIO(text), delimiter=delimiter, ndmin=2, dtype=np.float64, comments=None)
    except (ValueError, OverflowError):
        found = np.empty((0, 0))
    if not text.strip() or (found.shape[1] == len(numeric) and len(lines) in (0, len(found))):
        return found.reshape(-1, len(numeric))
    for number, one in enumerate(chunk.splitlines(), start=line):
        cells = split_line(one, delimiter)
        if one.strip() and len(cells) != n_columns:
            shown = "text" if count_text(cells) else len(cells)
            raise RecordingError(f"{where}: line {number}: expected {n_columns} numbers on every line, found {shown}")
        if one.strip() and count_text([cells[i] for i in numeric]):
            raise RecordingError(f"{where}: line {number}: expected {n_columns} numbers on every line, found text")
    raise RecordingError(f"{where}: line {line}: expected {n_columns} numbers on every line, found others")


def _may_have_empty_cells(text: str, delimiter: str) -> bool:
    edges = (delimiter * 2, f"{delimiter}\n", f"\n{delimiter}", f"{delimiter} ", f" {delimiter}")
    return text.startswith(delimiter) or text.endswith(delimiter) or any(edge in text for edge in edges)


def _is_lead(where: str, column: Column, values: NDArray[np.floating] | None, first_line: int) -> bool:
    """Whether a column holds samples of a lead; raises for numbers of samples that do not increase by one."""
    if values is None or column.kind == "time":
        return False
    if not column.name and column.kind == "number" and np.isnan(values).all():
        return False  # after a delimiter at the end of every line
    if column.kind == "number":
        uneven = np.flatnonzero(np.diff(values) != 1)
        if not column.name and len(uneven):
            return True  # a lead without a name
        if len(uneven):
            raise RecordingError(
                f"{where}: line {first_line + int(uneven[0]) + 1}: expected sample numbers that increase by one, found "
                f"{values[uneven[0] + 1]:g} after {values[uneven[0]]:g}"
            )
        return False
    return True


def _rate(where: str, times: NDArray[np.floating], unit: str | None, first_line: int) -> float:
    """Sampling rate from a column of evenly spaced times, which may be rounded."""
    factor = SECONDS.get((unit or "s").strip().lower())
    if factor is None:
        raise RecordingError(
            f"{where}: expected times in s, ms or us, found {unit!r}; rename the column or give --rate"
        )
    step, uneven = find_step(np.asarray(times, dtype=np.float64))
    if step is None:
        raise RecordingError(
            f"{where}: line {first_line + uneven}: expected evenly increasing times, found others; remove the column "
            "and give --rate"
        )
    return 1 / (step * factor)
