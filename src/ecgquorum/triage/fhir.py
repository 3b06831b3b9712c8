"""The worklist as FHIR R4: one NDJSON file a resource type, as servers take for a bulk import.

DIR/Device.ndjson            the ensemble that answered: its name, its version, the SHA-256 of its weights
DIR/Observation.ndjson       of each recording its quality, and its class unless it cannot be read
DIR/DiagnosticReport.ndjson  of each recording what was concluded, and that no person has verified it

Identifiers come from the hashes of recording and model, so that a second run updates what a first one stored. There is
no subject: a worklist knows recordings, not patients.
"""

import hashlib
import html
import json
import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ecgquorum._internal.atomic import atomic_file
from ecgquorum.triage.journal import Row
from ecgquorum.triage.rows import CERTAIN, DEFERRED, UNREADABLE

Resource = dict[str, Any]

REPORTED, REPEATED, UNHASHED = "reported", "repeated", "unhashed"
"""What became of a recording: it has a report; another of the same content has it; its files could not be hashed."""

LOCAL = "urn:ecgquorum"
"""Our own identifiers and codes begin with this; they mean nothing outside of this program's pages."""

_LOINC = "http://loinc.org"
_STUDY = {"system": _LOINC, "code": "11524-6", "display": "EKG study"}
_IMPRESSION = {"system": _LOINC, "code": "8601-7", "display": "EKG impression"}
_ELECTROCARDIAC = {"system": "http://terminology.hl7.org/CodeSystem/v2-0074", "code": "EC"}
_PROCEDURE = {"system": "http://terminology.hl7.org/CodeSystem/observation-category", "code": "procedure"}
_TYPES = ("DiagnosticReport", "Observation", "Device")
_TOLD = {
    DEFERRED: "To be read by a person",
    CERTAIN: "Certain enough for the policy",
    UNREADABLE: "Cannot be read",
}
_UNVERIFIED = "Not verified by any person; research use only."
_UNFIT = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\s]+")


def write_fhir(worklist: Path, out: Path, card: Mapping[str, Any]) -> Counter[str]:
    """Write the resources of a `worklist.jsonl`, line by line; gives how many recordings became of what.

    Of several recordings with the same content the first is reported: the one that goes to people, if one does.

    card: that of the ensemble that answered
    """
    counts: Counter[str] = Counter()
    names = card.get("class_names") or {}
    with ExitStack() as stack:
        # the last to be opened is the first to be in place: no report ever refers to what is not there yet
        files = {kind: stack.enter_context(atomic_file(out / f"{kind}.ndjson")) for kind in _TYPES}
        lines = stack.enter_context(worklist.open(encoding="utf-8"))
        seen = stack.enter_context(closing(sqlite3.connect("")))  # on disk when it grows, so that memory stays flat
        seen.execute("CREATE TABLE seen (sha256 TEXT PRIMARY KEY) WITHOUT ROWID")
        _write(files, [device_of(card)])
        for row in map(json.loads, lines):
            if not row["sha256"]:
                counts[UNHASHED] += 1
            elif not seen.execute("INSERT OR IGNORE INTO seen VALUES (?)", (row["sha256"],)).rowcount:
                counts[REPEATED] += 1
            else:
                counts[REPORTED] += 1
                _write(files, resources_of(row, names))
    return counts


def _write(files: Mapping[str, Any], resources: Iterable[Resource]) -> None:
    for resource in resources:
        line = json.dumps(resource, ensure_ascii=False, separators=(",", ":"))
        files[resource["resourceType"]].write(line + "\n")


def device_of(card: Mapping[str, Any]) -> Resource:
    """The ensemble: software that observes."""
    name, weights = _clean(str(card.get("name") or "")) or "unnamed", str(card.get("weights_sha256") or "")
    kind = "ECG classifier (software)"
    device = {
        "resourceType": "Device",
        "id": _identity("Device", "", weights),
        "text": _narrative(f"{kind} {name}. Research use only; this is not a medical device."),
        "status": "active",
        "deviceName": [{"name": name, "type": "model-name"}],
        "type": {"text": kind},
        "version": [{"type": {"text": "ecgquorum"}, "value": version("ecgquorum")}],
        "note": [{"text": "Research use only; this is not a medical device."}],
    }
    return device | ({"identifier": [_identifier("weights-sha256", weights)]} if weights else {})


def resources_of(row: Row, names: Mapping[str, str]) -> list[Resource]:
    """A recording's Observations and its DiagnosticReport, from its line of the worklist.

    names: what the classes are called; one that is not there is called by its code
    """
    answered = row["decision"] != UNREADABLE
    observations = [*([_classification(row, names)] if answered else []), _quality(row)]
    identifiers = [_identifier("recording-sha256", row["sha256"])]
    if name := _clean(str(row["id"])):
        identifiers.append(_identifier("recording", name))
    conclusion = " ".join([*([_answer(row, names)] if answered else []), _decision(row), _UNVERIFIED])
    report = {
        "resourceType": "DiagnosticReport",
        **_beginning("DiagnosticReport", row, conclusion),
        "identifier": identifiers,
        "status": "partial" if answered else "cancelled",
        "category": [{"coding": [_ELECTROCARDIAC], "text": "Electrocardiac"}],
        "code": {"coding": [_STUDY], "text": "ECG, read by software"},
        "result": [{"reference": f"Observation/{one['id']}"} for one in observations],
        "conclusion": conclusion,
    }
    return [*observations, report]


def verified(resources: list[Resource], row: Row, label: str, at: str, names: Mapping[str, str]) -> list[Resource]:
    """The resources of a recording that a person has read since: one Observation more, and a report that is final.

    label: the person's verdict · at: when it was given, ISO 8601 with its zone
    """
    done = "confirmed" if label == row["class"] else f"amended, from {_class_name(row['class'], names)},"
    told = f"{_class_name(label, names)}: {done} by a person who has read it; research use only."
    verdict = {
        "resourceType": "Observation",
        **_beginning("verdict", row, told),
        "status": "final",
        "category": [{"coding": [_PROCEDURE], "text": "Procedure"}],
        "code": {"coding": [_IMPRESSION], "text": "Class of the ECG, by a person"},
        "issued": at,
        "valueCodeableConcept": _concept("class", label, _class_name(label, names)),
    }
    *observations, report = resources
    final = report | {
        "text": _narrative(told),
        "status": "final",
        "issued": at,
        "code": {"coding": [_STUDY], "text": "ECG, read by software and by a person"},
        "result": [*report["result"], {"reference": f"Observation/{verdict['id']}"}],
        "conclusion": told,
    }
    return [*observations, verdict, final]


def _classification(row: Row, names: Mapping[str, str]) -> Resource:
    components = [
        _component(
            "calibrated-probability", "Calibrated probability of the class", _quantity(row["calibrated_probability"])
        ),
        _component("uncertainty", "Normalised uncertainty, 0 to 1", _quantity(row["uncertainty"])),
        _component("decision", "Decision", {"valueCodeableConcept": _concept("decision", row["decision"])}),
        *_texts("reason", "Reason of the decision", [_reason(row)]),
    ]
    for name, share in row["probabilities"].items():
        title = f"Probability of {_class_name(name, names)}, not calibrated"
        components.append(_component(f"probability-{_clean(name)}", title, _quantity(share)))
    for number, vote in enumerate(row["votes"], start=1):
        value = {"valueCodeableConcept": _concept("class", vote, _class_name(vote, names))}
        components.append(_component(f"vote-{number}", f"Vote of member {number}", value))
    return {
        "resourceType": "Observation",
        **_beginning("class", row, f"{_answer(row, names)} {_decision(row)} {_UNVERIFIED}"),
        **_observed(row, {"coding": [_IMPRESSION], "text": "Class of the ECG"}),
        "valueCodeableConcept": _concept("class", row["class"], _class_name(row["class"], names)),
        "component": components,
    }


def _quality(row: Row) -> Resource:
    found = row["quality_reasons"] or ([_reason(row)] if row["quality"] != "usable" else [])
    told = "; ".join(filter(None, map(_clean, found))) or "nothing against it was found"
    observation = {
        "resourceType": "Observation",
        **_beginning("quality", row, f"Quality of the recording: {row['quality']}: {told}."),
        **_observed(row, _concept("observation", "recording-quality", "Quality of the recording")),
        "valueCodeableConcept": _concept("quality", row["quality"]),
    }
    components = list(_texts("finding", "Finding about the recording", found))
    return observation | ({"component": components} if components else {})


def _beginning(kind: str, row: Row, told: str) -> Resource:
    tag = {"system": f"{LOCAL}:decision", "code": row["decision"]}
    identity = _identity(kind, row["sha256"], row["model_sha256"])
    return {"id": identity, "meta": {"tag": [tag]}, "text": _narrative(told)}


def _observed(row: Row, code: Resource) -> Resource:
    return {
        "status": "preliminary",
        "category": [{"coding": [_PROCEDURE], "text": "Procedure"}],
        "code": code,
        "device": {"reference": f"Device/{_identity('Device', '', row['model_sha256'])}"},
    }


def _answer(row: Row, names: Mapping[str, str]) -> str:
    return (
        f"{_class_name(row['class'], names)}, calibrated probability {row['calibrated_probability']:.2f}, "
        f"uncertainty {row['uncertainty']:.2f}."
    )


def _decision(row: Row) -> str:
    reason = _reason(row)
    return f"{_TOLD[row['decision']]}{f': {reason}' if reason else ''}."


def _reason(row: Row) -> str:
    """Without the place of the file, which is nobody else's business."""
    return _clean(str(row["reason"]).removeprefix(f"{row['source']}: "))


def _class_name(label: str, names: Mapping[str, str]) -> str:
    name = _clean(str(names.get(label) or ""))
    return f"{name} ({_clean(label)})" if name else _clean(label)


def _quantity(value: float) -> Resource:
    return {"valueQuantity": {"value": value, "system": "http://unitsofmeasure.org", "code": "1"}}


def _component(code: str, title: str, value: Resource) -> Resource:
    return {"code": _concept("observation", code, title)} | value


def _texts(code: str, title: str, texts: Iterable[str]) -> Iterator[Resource]:
    return (_component(code, title, {"valueString": text}) for text in map(_clean, texts) if text)


def _concept(system: str, code: str, text: str | None = None) -> Resource:
    return {"coding": [{"system": f"{LOCAL}:{system}", "code": _clean(code)}], "text": text or _clean(code)}


def _identifier(system: str, value: str) -> Resource:
    return {"system": f"{LOCAL}:{system}", "value": value}


def _identity(kind: str, sha256: str, model_sha256: str) -> str:
    return hashlib.sha256(f"{kind} {sha256} {model_sha256}".encode()).hexdigest()[:40]


def _narrative(told: str) -> Resource:
    content = html.escape(_clean(told), quote=False)
    return {"status": "generated", "div": f'<div xmlns="http://www.w3.org/1999/xhtml"><p>{content}</p></div>'}


def _clean(text: str) -> str:
    """On one line, and without what FHIR forbids in strings and codes."""
    return _UNFIT.sub(" ", text).strip()
