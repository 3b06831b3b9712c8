"""Export the worklist as FHIR R4: one NDJSON file for each resource type, for a bulk import.

DIR/Device.ndjson            the ensemble: its name, its version, the SHA-256 of its weights
DIR/Observation.ndjson       for each recording its quality, and its class unless it cannot be read
DIR/DiagnosticReport.ndjson  for each recording the conclusion, marked as not verified by a person

Identifiers are derived from the hashes of recording and model, so that a second run updates what the first one stored.
There is no subject: the worklist is about recordings, not patients.
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
from ecgquorum.ensemble.result import CERTAIN, DEFERRED, SKIPPED, UNREADABLE, Result

Resource = dict[str, Any]

REPORTED, REPEATED, UNHASHED = "reported", "repeated", "unhashed"
"""A recording has a report; another recording with the same content has it; its files could not be hashed."""

LOCAL = "urn:ecgquorum"
"""Prefix of our own identifiers and codes."""

_LOINC = "http://loinc.org"
_STUDY = {"system": _LOINC, "code": "11524-6", "display": "EKG study"}
_IMPRESSION = {"system": _LOINC, "code": "8601-7", "display": "EKG impression"}
_ELECTROCARDIAC = {"system": "http://terminology.hl7.org/CodeSystem/v2-0074", "code": "EC"}
_PROCEDURE = {"system": "http://terminology.hl7.org/CodeSystem/observation-category", "code": "procedure"}
_TYPES = ("DiagnosticReport", "Observation", "Device")
_CONCLUSIONS = {
    DEFERRED: "To be read by a person",
    CERTAIN: "Certain enough for the policy",
    UNREADABLE: "Cannot be read",
}
_UNVERIFIED = "Not verified by any person; research use only."
_UNFIT = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\s]+")


def write_fhir(worklist: Path, out: Path, card: Mapping[str, Any]) -> Counter[str]:
    """Write the resources of a `worklist.jsonl`; returns how many recordings were reported, repeated or unhashed.

    Of several recordings with the same content the first is reported: the one that goes to people, if one does.

    card: of the ensemble
    """
    counts: Counter[str] = Counter()
    names = card.get("class_names") or {}
    with ExitStack() as stack:
        # closed in reverse order: a report never refers to a resource that is not written yet
        files = {kind: stack.enter_context(atomic_file(out / f"{kind}.ndjson")) for kind in _TYPES}
        lines = stack.enter_context(worklist.open(encoding="utf-8"))
        seen = stack.enter_context(closing(sqlite3.connect("")))  # spills to disk when it grows
        seen.execute("CREATE TABLE seen (sha256 TEXT PRIMARY KEY) WITHOUT ROWID")
        _write(files, [make_device(card)])
        for line in lines:
            result = Result.from_json(json.loads(line))
            if result.decision == SKIPPED:
                continue
            if not result.sha256:
                counts[UNHASHED] += 1
            elif not seen.execute("INSERT OR IGNORE INTO seen VALUES (?)", (result.sha256,)).rowcount:
                counts[REPEATED] += 1
            else:
                counts[REPORTED] += 1
                _write(files, make_resources(result, names))
    return counts


def _write(files: Mapping[str, Any], resources: Iterable[Resource]) -> None:
    for resource in resources:
        line = json.dumps(resource, ensure_ascii=False, separators=(",", ":"))
        files[resource["resourceType"]].write(line + "\n")


def make_device(card: Mapping[str, Any]) -> Resource:
    """The ensemble as a Device: software that observes."""
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


def make_resources(result: Result, names: Mapping[str, str]) -> list[Resource]:
    """The Observations and the DiagnosticReport of a recording.

    names: of the classes; a class without one is called by its code
    """
    classified = result.decision != UNREADABLE
    observations = [*([_classification(result, names)] if classified else []), _quality(result)]
    identifiers = [_identifier("recording-sha256", result.sha256)]
    if name := _clean(result.id):
        identifiers.append(_identifier("recording", name))
    conclusion = " ".join([*([_answer(result, names)] if classified else []), _decision(result), _UNVERIFIED])
    report = {
        "resourceType": "DiagnosticReport",
        **_common("DiagnosticReport", result, conclusion),
        "identifier": identifiers,
        "status": "partial" if classified else "cancelled",
        "category": [{"coding": [_ELECTROCARDIAC], "text": "Electrocardiac"}],
        "code": {"coding": [_STUDY], "text": "ECG, read by software"},
        "result": [{"reference": f"Observation/{one['id']}"} for one in observations],
        "conclusion": conclusion,
    }
    return [*observations, report]


def add_verdict(
    resources: list[Resource], result: Result, label: str, at: str, names: Mapping[str, str]
) -> list[Resource]:
    """Add the verdict of a person: one more Observation, and the report becomes final.

    label: the person's class · at: time of the verdict, ISO 8601 with its zone
    """
    change = "confirmed" if label == result.label else f"amended, from {_class_name(result.label, names)},"
    text = f"{_class_name(label, names)}: {change} by a person who has read it; research use only."
    verdict = {
        "resourceType": "Observation",
        **_common("verdict", result, text),
        "status": "final",
        "category": [{"coding": [_PROCEDURE], "text": "Procedure"}],
        "code": {"coding": [_IMPRESSION], "text": "Class of the ECG, by a person"},
        "issued": at,
        "valueCodeableConcept": _concept("class", label, _class_name(label, names)),
    }
    *observations, report = resources
    final = report | {
        "text": _narrative(text),
        "status": "final",
        "issued": at,
        "code": {"coding": [_STUDY], "text": "ECG, read by software and by a person"},
        "result": [*report["result"], {"reference": f"Observation/{verdict['id']}"}],
        "conclusion": text,
    }
    return [*observations, verdict, final]


def _classification(result: Result, names: Mapping[str, str]) -> Resource:
    components = [
        _component("calibrated-probability", "Calibrated probability of the class", _quantity(result.probability)),
        *_risk(result),
        _component(
            "uncertainty",
            "Mutual information of the members, normalised by its range in training; may exceed 1",
            _quantity(result.uncertainty),
        ),
        _component("decision", "Decision", {"valueCodeableConcept": _concept("decision", result.decision)}),
        *_texts("reason", "Reason of the decision", [_reason(result)]),
    ]
    for name, share in result.probabilities.items():
        title = f"Calibrated probability of {_class_name(name, names)}"
        components.append(_component(f"probability-{_clean(name)}", title, _quantity(share)))
    for number, vote in enumerate(result.votes):
        value = {"valueCodeableConcept": _concept("class", vote, _class_name(vote, names))}
        components.append(_component(f"vote-{number}", f"Vote of member {number}", value))
    return {
        "resourceType": "Observation",
        **_common("class", result, f"{_answer(result, names)} {_decision(result)} {_UNVERIFIED}"),
        **_observation(result, {"coding": [_IMPRESSION], "text": "Class of the ECG"}),
        "valueCodeableConcept": _concept("class", result.label, _class_name(result.label, names)),
        "component": components,
    }


def _risk(result: Result) -> list[Resource]:
    """The risk as a component; results of old versions have none."""
    title = "Estimated probability that the class is wrong"
    return [] if result.risk is None else [_component("risk", title, _quantity(result.risk))]


def _quality(result: Result) -> Resource:
    severity, findings = str(result.quality.severity), result.quality.reasons
    text = "; ".join(filter(None, map(_clean, findings))) or "no findings"
    observation = {
        "resourceType": "Observation",
        **_common("quality", result, f"Quality of the recording: {severity}: {text}."),
        **_observation(result, _concept("observation", "recording-quality", "Quality of the recording")),
        "valueCodeableConcept": _concept("quality", severity),
    }
    components = list(_texts("finding", "Finding about the recording", findings))
    return observation | ({"component": components} if components else {})


def _common(kind: str, result: Result, text: str) -> Resource:
    tag = {"system": f"{LOCAL}:decision", "code": result.decision}
    identity = _identity(kind, result.sha256, result.model_sha256)
    return {"id": identity, "meta": {"tag": [tag]}, "text": _narrative(text)}


def _observation(result: Result, code: Resource) -> Resource:
    return {
        "status": "preliminary",
        "category": [{"coding": [_PROCEDURE], "text": "Procedure"}],
        "code": code,
        "device": {"reference": f"Device/{_identity('Device', '', result.model_sha256)}"},
    }


def _answer(result: Result, names: Mapping[str, str]) -> str:
    return f"{_class_name(result.label, names)}, calibrated probability {result.probability:.2f}, " + (
        f"uncertainty {result.uncertainty:.2f}." if result.risk is None else f"risk {result.risk:.2f}."
    )


def _decision(result: Result) -> str:
    reason = _reason(result)
    return f"{_CONCLUSIONS[result.decision]}{f': {reason}' if reason else ''}."


def _reason(result: Result) -> str:
    """The reason without the path of the file, which may hold personal data."""
    return _clean(result.reason.removeprefix(f"{result.source}: "))


def _class_name(label: str, names: Mapping[str, str]) -> str:
    name = _clean(str(names.get(label) or ""))
    return f"{name} ({_clean(label)})" if name else _clean(label)


def _quantity(value: float | None) -> Resource:
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


def _narrative(text: str) -> Resource:
    content = html.escape(_clean(text), quote=False)
    return {"status": "generated", "div": f'<div xmlns="http://www.w3.org/1999/xhtml"><p>{content}</p></div>'}


def _clean(text: str) -> str:
    """On one line, without the characters that FHIR forbids in strings and codes."""
    return _UNFIT.sub(" ", text).strip()
