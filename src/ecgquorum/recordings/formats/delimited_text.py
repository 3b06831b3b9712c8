"""ECGs as text: CSV or TSV, one column for each lead, with or without a header line."""

import csv
import io
import re
import warnings

import numpy as np
from numpy.typing import NDArray

from ecgquorum.errors import RecordingError
from ecgquorum.recordings.file_defaults import FileDefaults
from ecgquorum.recordings.filetree import OpenedFile
from ecgquorum.recordings.leads import normalise_lead
from ecgquorum.recordings.reader_protocol import reader
from ecgquorum.recordings.recording import Recording, as_samples, one_line
from ecgquorum.recordings.units import common_unit

_FILE_BYTES = 32 << 20
_FIRST_BYTES = 1 << 16
_SECONDS = {"s": 1.0, "sec": 1.0, "seconds": 1.0, "ms": 1e-3, "us": 1e-6}
_TIMES = ("time", "t", "seconds")
_NAMED_UNIT = re.compile(r"^(?P<name>[^\[(]*?)\s*[\[(]\s*(?P<unit>[^\])]*)\s*[\])]\s*$")
_UNEVEN = 0.01


@reader(".csv", ".tsv")
def read_table(file: OpenedFile, defaults: FileDefaults) -> Recording:
    """Read a table of samples.

    A header line may give units, as in `II (mV)`, and a column `time (s)` or `time (ms)` gives the rate; what the
    file does not say is taken from the defaults.
    """
    where = file.path
    text = _decode(file.read(_FILE_BYTES))
    delimiter = _delimiter(text[:_FIRST_BYTES])
    first = next(csv.reader(io.StringIO(text[:_FIRST_BYTES]), delimiter=delimiter), [])
    named = not all(map(_is_number, first))
    values = _numbers(where, text, delimiter, len(first), skip=int(named))
    titles = [_split_title(title) for title in first] if named else [("", None)] * len(first)
    times = [i for i, (title, _) in enumerate(titles) if title.lower() in _TIMES]
    rate_hz = _rate(where, values[times[0]], titles[times[0]][1]) if times else None
    rows = [i for i in range(len(values)) if i not in times]
    if not rows:
        raise RecordingError(f"{where}: expected a column of samples, found none")
    factors = np.array([defaults.millivolts(where, titles[i][1]) for i in rows])
    return Recording(
        file.stem,
        as_samples(values[rows] * factors[:, None]),
        defaults.rate(where, rate_hz),
        defaults.leads_of(where, [normalise_lead(titles[i][0]) for i in rows]),
        source=where,
        unit=common_unit(titles[i][1] or defaults.units for i in rows),
    )


def _decode(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def _delimiter(text: str) -> str:
    line = text.partition("\n")[0]
    return max("\t;,", key=line.count)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _split_title(title: str) -> tuple[str, str | None]:
    """A column's name and its unit, if it has one."""
    match = _NAMED_UNIT.match(title.strip())
    return (match["name"].strip(), match["unit"]) if match else (title.strip(), None)


def _numbers(where: str, text: str, delimiter: str, n_columns: int, skip: int) -> NDArray[np.float64]:
    """(column, line); an empty cell is NaN."""
    if n_columns == 0:
        raise RecordingError(f"{where}: expected a table of samples, found nothing")
    empty = re.compile(rf"(?m)(?<={delimiter})(?=[{delimiter}\r\n]|$)|^(?={delimiter})")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about empty input, which is handled below
            filled = io.StringIO(empty.sub("nan", text))
            found = np.loadtxt(filled, delimiter=delimiter, skiprows=skip, ndmin=2, dtype=np.float64, comments=None)
    except (ValueError, OverflowError, MemoryError) as error:
        raise RecordingError(
            f"{where}: expected {n_columns} numbers on every line, found: {one_line(error)}"
        ) from error
    if found.ndim != 2 or found.shape[1] != n_columns or not found.size:
        raise RecordingError(f"{where}: expected {n_columns} numbers on every line, found the shape {found.shape}")
    if np.isnan(found).all():
        raise RecordingError(f"{where}: expected numbers, found none")
    return found.T


def _rate(where: str, times: NDArray[np.float64], unit: str | None) -> float:
    """Sampling rate from a column of evenly spaced times."""
    factor = _SECONDS.get((unit or "s").strip().lower())
    steps = np.diff(times) * (factor or np.nan)
    if (
        len(steps) == 0
        or not np.isfinite(steps).all()
        or not (np.abs(steps - steps.mean()) <= _UNEVEN * steps.mean()).all()
    ):
        raise RecordingError(
            f"{where}: expected evenly increasing times in s or ms, found others; remove the column and give --rate"
        )
    return float(1 / steps.mean())
