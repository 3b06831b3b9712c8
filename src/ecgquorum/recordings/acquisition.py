"""Who was recorded, when, and with which device: what a file states about it."""

import math
import re
from dataclasses import asdict, dataclass, fields
from datetime import date, datetime
from typing import Any

_MOST_CHARACTERS = 200
_OLDEST_YEARS = 150.0
_UNKNOWN = ("unknown", "none", "n/a", "-")
_COMPACT_TIME = re.compile(r"^(?P<day>\d{8})(?P<clock>\d{2}(?:\d{2}){0,2})?(?:\.\d*)?(?P<zone>[+-]\d{4})?$")
_SEXES = {"m": "male", "male": "male", "f": "female", "female": "female", "w": "female", "o": "other", "other": "other"}


@dataclass(frozen=True)
class Acquisition:
    """Facts about patient and acquisition; None where the file does not state one, or states one that cannot be true.

    patient_id: number of the patient in the system that wrote the file
    name:       of the patient, family name first where the file says which it is
    sex:        "male", "female" or "other"; also taken as M, F, ...
    birth_date: ISO 8601, 1950-01-31
    age_years:  at the acquisition
    time:       of the first sample, ISO 8601, with its zone where the file states one
    device:     manufacturer, model, serial number: what the file states, as one text
    """

    patient_id: str | None = None
    name: str | None = None
    sex: str | None = None
    birth_date: str | None = None
    age_years: float | None = None
    time: str | None = None
    device: str | None = None

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            checked = _check_age(value) if one.name == "age_years" else _clean(value)
            if isinstance(checked, str) and one.name in _CHECKS:
                checked = _CHECKS[one.name](checked)
            object.__setattr__(self, one.name, checked)

    def __bool__(self) -> bool:
        """Whether anything is known."""
        return any(value is not None for value in asdict(self).values())

    def lines(self) -> tuple[str, ...]:
        """What is known, for people: one line about the patient, one about the acquisition."""
        who = [self.name, self.patient_id and f"id {self.patient_id}", self.sex]
        who += [self.birth_date and f"born {self.birth_date}"]
        who += [f"{self.age_years:g} years"] if self.age_years is not None else []
        return tuple(filter(None, (", ".join(filter(None, part)) for part in (who, [self.time, self.device]))))


def join_text(*parts: Any) -> str | None:
    """The parts that say something, each once, separated by blanks: a name, or a device's maker and model."""
    texts = [text for part in parts if (text := _clean(part)) and text.lower() not in _UNKNOWN]
    return " ".join(dict.fromkeys(texts)) or None


def parse_years(text: str | None) -> float | None:
    """An age that is written as a number of years, such as `70` or `70 years`."""
    try:
        return float((text or "").split()[0])
    except (IndexError, ValueError):
        return None


def compact_time(text: Any) -> str | None:
    """ISO 8601 of a time that is written without separators, as in DICOM and HL7: 20021122091000.5-0500."""
    match = _COMPACT_TIME.match(str(text or "").strip())
    if match is None:
        return None
    day, clock, zone = match["day"], match["clock"], match["zone"]
    if not clock:
        return day
    return f"{day}T{clock.ljust(6, '0')}{zone or ''}"


def _clean(value: Any) -> str | None:
    """The text on one line without control characters; None for an empty one."""
    text = "" if value is None else "".join(one if one.isprintable() else " " for one in str(value))
    return " ".join(text.split())[:_MOST_CHARACTERS].strip() or None


def _check_age(value: Any) -> float | None:
    try:
        years = float(value)
    except (TypeError, ValueError):
        return None
    return years if math.isfinite(years) and 0 <= years <= _OLDEST_YEARS else None


def _iso_date(text: str) -> str | None:
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        return None


def _iso_time(text: str) -> str | None:
    try:
        return datetime.fromisoformat(text).isoformat()
    except ValueError:
        return None


_CHECKS = {"sex": lambda text: _SEXES.get(text.lower()), "birth_date": _iso_date, "time": _iso_time}

NOTHING_KNOWN = Acquisition()
