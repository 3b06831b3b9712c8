"""Elements that FHIR resources are made of: codes, identifiers, quantities, narratives."""

import hashlib
import html
import re
from collections.abc import Iterable, Iterator
from typing import Any

Resource = dict[str, Any]

LOCAL = "urn:ecgquorum"
"""Prefix of our own identifiers and codes."""

LOINC = "http://loinc.org"

_UNFIT = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\s]+")


def make_quantity(value: float | None, code: str = "1", unit: str = "") -> Resource:
    """A value with its UCUM code; `unit` is for people."""
    quantity = {"value": value, "system": "http://unitsofmeasure.org", "code": code}
    return {"valueQuantity": quantity | ({"unit": unit} if unit else {})}


def make_component(code: str, title: str, value: Resource) -> Resource:
    """A component of an Observation, by a code of our own."""
    return {"code": make_concept("observation", code, title)} | value


def make_texts(code: str, title: str, texts: Iterable[str]) -> Iterator[Resource]:
    """A component for each text that is not empty."""
    return (make_component(code, title, {"valueString": text}) for text in map(clean_text, texts) if text)


def make_concept(system: str, code: str, text: str | None = None) -> Resource:
    """A code of our own, with a text for people."""
    return {"coding": [{"system": f"{LOCAL}:{system}", "code": clean_text(code)}], "text": text or clean_text(code)}


def make_identifier(system: str, value: str) -> Resource:
    """An identifier in a system of our own."""
    return {"system": f"{LOCAL}:{system}", "value": value}


def derive_id(kind: str, sha256: str, model_sha256: str) -> str:
    """The id of a resource: the same for the same recording and model."""
    return hashlib.sha256(f"{kind} {sha256} {model_sha256}".encode()).hexdigest()[:40]


def make_narrative(text: str) -> Resource:
    """The text of a resource for people."""
    content = html.escape(clean_text(text), quote=False)
    return {"status": "generated", "div": f'<div xmlns="http://www.w3.org/1999/xhtml"><p>{content}</p></div>'}


def clean_text(text: str) -> str:
    """On one line, without the characters that FHIR forbids in strings and codes."""
    return _UNFIT.sub(" ", text).strip()
