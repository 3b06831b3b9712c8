"""Rate, leads and units that a user gives for files that do not state them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ecgquorum.errors import RecordingError
from ecgquorum.recordings.leads import STANDARD_LEADS, UNNAMED_LEAD, is_not_a_lead
from ecgquorum.recordings.units import millivolts_in


@dataclass(frozen=True)
class FileDefaults:
    """Rate, leads and units of files that hold samples only; None: what the file states.

    units: also used for files whose own unit cannot be true
    """

    rate_hz: float | None = None
    leads: tuple[str, ...] | None = None
    units: str | None = None

    def __post_init__(self) -> None:
        if self.units is not None and millivolts_in(self.units) is None:
            raise RecordingError(f"--units: expected a unit of voltage such as mV or uV, found {self.units!r}")

    def rate(self, where: str, found: float | None = None) -> float:
        """The rate that the file states, or else the default."""
        rate_hz = found if found is not None else self.rate_hz
        if rate_hz is None:
            raise RecordingError(f"{where}: expected a sampling rate, found none in it; give it with --rate")
        return rate_hz

    def lead_names(self, where: str, n_leads: int) -> tuple[str, ...]:
        """The default names; without any, one lead is unnamed and twelve are the standard ones."""
        if self.leads is not None:
            if len(self.leads) != n_leads:
                raise RecordingError(
                    f"{where}: expected {len(self.leads)} leads as given with --leads, found {n_leads}"
                )
            return self.leads
        if n_leads == 1:
            return (UNNAMED_LEAD,)
        if n_leads == len(STANDARD_LEADS):
            return STANDARD_LEADS
        raise RecordingError(f"{where}: expected names for its {n_leads} leads, found none; give them with --leads")

    def leads_of(self, where: str, found: Sequence[str]) -> tuple[str, ...]:
        """The names that the file states; the default in place of each that does not name a lead.

        Without a default, several leads of one such name are numbered: `ECG 1`, `ECG 2`. A default of several names is
        not meant for a file whose one lead has a name.
        """
        unnamed = [is_not_a_lead(name) for name in found]
        meant = self.leads is not None and not (len(found) == 1 < len(self.leads))
        if not any(unnamed) or (not meant and all(found)):
            return _number_repeats(found, unnamed)
        names = self.lead_names(where, len(found))
        return tuple(new if replace else old for new, replace, old in zip(names, unnamed, found, strict=True))

    def millivolts(self, where: str, found: str | None = None) -> float:
        """Millivolts in one unit of the file, or else of the default unit."""
        unit = found if found is not None else self.units
        if unit is None:
            raise RecordingError(f"{where}: expected a unit, found none in it; give it with --units mV or --units uV")
        factor = millivolts_in(unit)
        if factor is None:
            raise RecordingError(f"{where}: expected a unit of voltage such as mV or uV, found {unit!r}")
        return factor


def _number_repeats(names: Sequence[str], unnamed: Sequence[bool]) -> tuple[str, ...]:
    if len(set(names)) == len(names):
        return tuple(names)
    counts: Counter[str] = Counter()
    numbered = []
    for name, number in zip(names, unnamed, strict=True):
        counts[name] += 1
        numbered.append(f"{name} {counts[name]}" if number and names.count(name) > 1 else name)
    return tuple(numbered)


NO_DEFAULTS = FileDefaults()
