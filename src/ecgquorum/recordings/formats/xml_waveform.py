"""Parts shared by the readers of XML: leads, elements by path, Base64 samples."""

import base64
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.etree.ElementTree import Element

import numpy as np
from numpy.typing import NDArray

from ecgquorum.errors import RecordingError
from ecgquorum.recordings.acquisition import NOTHING_KNOWN, Acquisition


@dataclass
class Traces:
    """Leads of one recording, one by one; they may differ in length."""

    rate_hz: float
    leads: list[str] = field(default_factory=list)
    millivolts: list[NDArray[np.float64]] = field(default_factory=list)
    acquisition: Acquisition = NOTHING_KNOWN
    units: list[str] = field(default_factory=list)
    notes: tuple[str, ...] = ()

    def add(self, lead: str, millivolts: NDArray[np.float64], unit: str) -> None:
        """One more lead.

        unit: what its samples were in before they were brought to millivolts
        """
        self.leads.append(lead)
        self.millivolts.append(millivolts)
        self.units.append(unit)


def local_name(element: Element) -> str:
    """The element's name without its namespace."""
    return element.tag.rpartition("}")[2]


def children(element: Element, *names: str) -> Iterator[Element]:
    """The elements at the end of this path of names, whatever their namespaces."""
    if not names:
        yield element
        return
    for child in element:
        if isinstance(child.tag, str) and local_name(child) == names[0]:
            yield from children(child, *names[1:])


def child(element: Element, *names: str) -> Element:
    """The first element at the end of the path."""
    found = next(children(element, *names), None)
    if found is None:
        raise RecordingError(f"there is no <{'/'.join(names)}> in <{local_name(element)}>")
    return found


def text_of(element: Element, *names: str, default: str | None = None) -> str:
    """What is written in the first element at the end of the path."""
    found = next(children(element, *names), None)
    if found is None and default is not None:
        return default
    return (child(element, *names).text or "").strip()


def decode_samples(text: str | None) -> NDArray[np.float64]:
    """Little-endian 16-bit samples in Base64."""
    content = base64.b64decode("".join((text or "").split()), validate=True)
    return np.frombuffer(content[: len(content) // 2 * 2], dtype="<i2").astype(np.float64)
