"""Who was recorded, when, and with which device: what a file states about it."""

import math
from dataclasses import asdict, dataclass, fields
from datetime import date, datetime
from typing import Any

_MOST_CHARACTERS = 200
_OLDEST_YEARS = 150.0
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
