"""Which classes are urgent, always or never go to people, and how probable a class must be to be called certain."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Self

from ecgquorum.ensemble import Ensemble
from ecgquorum.ensemble.result import BY_FLOOR, BY_URGENCY, BY_WINDOWS, CERTAIN, DEFERRED, Result
from ecgquorum.errors import PolicyError

_USUALLY_URGENT = ("STE", "STD", "AF", "A")
"""Of the classes that shipped bundles and public data sets know; a bundle's policy may say otherwise."""


@dataclass(frozen=True)
class Urgency:
    """Rules that hold whatever the policy says.

    urgent: classes, the most urgent first; they are at the top of the worklist, and a window of one of them in a long
            recording sends it to a person
    always: classes that always go to people
    never:  classes that never do, unless the quality is doubtful, a window has another class, or the floor says so
    floor:  a class of a smaller calibrated probability is never called certain, nor if it is smaller in a window
    """

    urgent: tuple[str, ...] = ()
    always: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    floor: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.floor <= 1:
            raise PolicyError(f"floor: expected a probability from 0 to 1, found {self.floor:g}")
        both = sorted(set(self.always) & set(self.never))
        if both:
            raise PolicyError(f"urgency: {', '.join(both)} cannot both always and never go to people")

    @classmethod
    def from_card(cls, plain: Mapping[str, Any]) -> Self:
        """The rules in a bundle's card."""
        unknown = sorted(set(plain) - {one.name for one in fields(cls)})
        if unknown:
            raise PolicyError(f"urgency: expected urgent, always, never or floor, found {', '.join(unknown)}")
        values: dict[str, Any] = {name: tuple(value) for name, value in plain.items() if name != "floor"}
        return cls(**values, floor=float(plain.get("floor", cls.floor)))

    def check(self, classes: Sequence[str]) -> None:
        """Raise if a class is not one of the model's."""
        unknown = sorted({*self.urgent, *self.always, *self.never} - set(classes))
        if unknown:
            raise PolicyError(f"urgency: expected classes of {', '.join(classes)}, found {', '.join(unknown)}")

    def rank(self, result: Result) -> Result:
        """The result with the most urgent class of the recording and its windows."""
        present = {result.label, *(window.label for window in result.windows)}
        place = next((number for number, name in enumerate(self.urgent) if name in present), None)
        if place is None:
            return result
        return replace(result, urgency=place + 1, urgent_class=self.urgent[place])

    def apply(self, result: Result) -> Result | None:
        """The decision that the rules make about a usable recording; None: they leave it to the policy."""
        labels = {window.label for window in result.windows}
        urgent = [name for name in self.urgent if name in labels] if len(result.windows) > 1 else []
        if urgent:
            n = sum(window.label == urgent[0] for window in result.windows)
            return result.with_decision(
                DEFERRED, f"{n} of {len(result.windows)} windows are {urgent[0]}, an urgent class", BY_WINDOWS
            )
        if len(labels) > 1:
            named = ", ".join(sorted(labels))
            return result.with_decision(DEFERRED, f"its {len(result.windows)} windows disagree: {named}", BY_WINDOWS)
        if result.label in self.always:
            return result.with_decision(DEFERRED, f"{result.label} always goes to a person", BY_URGENCY)
        if doubt := self._below_floor(result):
            return result.with_decision(DEFERRED, doubt, BY_FLOOR)
        if result.label in self.never:
            return result.with_decision(CERTAIN, f"{result.label} never goes to a person", BY_URGENCY)
        return None

    def _below_floor(self, result: Result) -> str:
        """Why the floor forbids to call the result certain; empty if it does not."""
        if (probability := result.probability or 0.0) < self.floor:
            return f"probability {probability:.5f} is below the floor, {self.floor:g}"
        lowest = min(result.windows, key=lambda window: window.probability or 0.0, default=None)
        if len(result.windows) > 1 and lowest and (probability := lowest.probability or 0.0) < self.floor:
            return f"probability {probability:.5f} at {lowest.start_s:.0f} s is below the floor, {self.floor:g}"
        return ""

    def sentence(self) -> str:
        """The rules in a few words."""
        parts = [f"Urgent, in this order: {', '.join(self.urgent)}."] if self.urgent else []
        parts += [f"Always to a person: {', '.join(self.always)}."] if self.always else []
        parts += [f"Never to a person: {', '.join(self.never)}."] if self.never else []
        return " ".join([*parts, f"Never certain below a probability of {self.floor:g}."])

    def card(self) -> dict[str, Any]:
        """The rules for a bundle's card."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}


def default_urgency(classes: Sequence[str]) -> Urgency:
    """The rules of a bundle whose policy has none: ST elevation, ST depression, then atrial fibrillation are urgent."""
    return Urgency(tuple(name for name in _USUALLY_URGENT if name in classes))


def urgency_of(ensemble: Ensemble) -> Urgency:
    """The rules in the policy of the ensemble's card, or the default ones."""
    stated = (ensemble.card.get("policy") or {}).get("urgency")
    found = default_urgency(ensemble.classes) if stated is None else Urgency.from_card(stated)
    found.check(ensemble.classes)
    return found
