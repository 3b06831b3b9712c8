"""Headers of WFDB records in their most common form, parsed here: `wfdb` takes longer for that than for the samples.

Anything that differs from this form, in however small a detail, is left to `wfdb`, so that there is one opinion on it:

    A00001 1 300 9000 05:05:15 1/05/2000      name, signals, rate, length; then time and date, or neither
    A00001.mat 16+24 1000/mV 16 0 -127 0 0 ECG  file, format, offset, gain and baseline, unit, five numbers, name
    #Age: 63                                    comments
"""

import re
from dataclasses import dataclass
from datetime import date, time

_RECORD = re.compile(
    r"[\w-]+ +(?P<n_sig>\d{1,3}) +(?P<fs>\d{1,5}) +(?P<sig_len>\d{1,9})"
    r"(?: +(?P<hour>\d{1,2}):(?P<minute>\d\d):(?P<second>\d\d) +(?P<day>\d{1,2})/(?P<month>\d{1,2})/(?P<year>\d{4}))?",
    re.ASCII,
)
_SIGNAL = re.compile(
    r"(?P<file>[\w-]+\.(?:dat|mat)) +16(?:\+(?P<offset>\d{1,6}))? +(?P<gain>[1-9]\d{0,6}(?:\.\d{1,6})?)"
    r"(?:\((?P<baseline>-?\d{1,6})\))?/(?P<units>[A-Za-z]{1,3}) +\d{1,2} +(?P<zero>-?\d{1,6})(?: +-?\d{1,6}){3}"
    r" +(?P<name>[A-Za-z]\w*)",
    re.ASCII,
)


@dataclass
class PlainHeader:
    """The fields of `wfdb`'s header that reading needs, with its names."""

    n_sig: int
    fs: int
    sig_len: int
    base_date: date | None
    base_time: time | None
    file_name: list[str]
    fmt: list[str]
    samps_per_frame: list[int | None]
    skew: list[int | None]
    byte_offset: list[int | None]
    adc_gain: list[float]
    baseline: list[int]
    units: list[str]
    sig_name: list[str]
    comments: list[str]
    n_seg: int | None = None


def parse_plain_header(text: str) -> PlainHeader | None:
    """The header, if it has the common form; else None."""
    lines = text.splitlines()
    n_header = next((i for i, line in enumerate(lines) if line.startswith("#")), len(lines))
    comments = [line for line in lines[n_header:] if line.strip()]
    if not n_header or not all(line.startswith("#") for line in comments):
        return None
    record = _RECORD.fullmatch(lines[0].strip(" "))
    signals = [found for line in lines[1:n_header] if (found := _SIGNAL.fullmatch(line.strip(" ")))]
    if record is None or len(signals) != n_header - 1 or len(signals) != int(record["n_sig"]):
        return None
    try:
        day, clock = _moment(record)
    except ValueError:  # no such day
        return None
    return PlainHeader(
        n_sig=len(signals),
        fs=int(record["fs"]),
        sig_len=int(record["sig_len"]),
        base_date=day,
        base_time=clock,
        file_name=[one["file"] for one in signals],
        fmt=["16"] * len(signals),
        samps_per_frame=[1] * len(signals),
        skew=[None] * len(signals),
        byte_offset=[int(one["offset"]) if one["offset"] else None for one in signals],
        adc_gain=[float(one["gain"]) for one in signals],
        baseline=[int(one["baseline"] or one["zero"]) for one in signals],
        units=[one["units"] for one in signals],
        sig_name=[one["name"] for one in signals],
        comments=[line.strip(" \t#") for line in comments],
    )


def _moment(record: re.Match[str]) -> tuple[date | None, time | None]:
    if record["year"] is None:
        return None, None
    day = date(int(record["year"]), int(record["month"]), int(record["day"]))
    return day, time(int(record["hour"]), int(record["minute"]), int(record["second"]))
