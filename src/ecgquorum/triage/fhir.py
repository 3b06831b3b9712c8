"""Export the worklist as FHIR R4: one NDJSON file for each resource type, for a bulk import.

DIR/Device.ndjson            the ensemble: its name, its version, the SHA-256 of its weights
DIR/Observation.ndjson       for each recording its quality, its class and measurements unless it cannot be read
DIR/DiagnosticReport.ndjson  for each recording the conclusion, marked as not verified by a person
DIR/Patient.ndjson           patients, where the results hold them (`--identify`); then Device also has the recorders

Identifiers are derived from the hashes of recording and model, so that a second run updates what the first one stored.
Without `--identify` there is no subject: the worklist is about recordings, not patients.
"""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, closing
from importlib.metadata import version
from pathlib import Path, PurePath
from typing import Any

from ecgquorum._internal.atomic import atomic_file
from ecgquorum.ensemble.result import CERTAIN, DEFERRED, SKIPPED, UNREADABLE, Result
from ecgquorum.triage.fhir_elements import (
    LOCAL,
    LOINC,
    Resource,
    clean_text,
    derive_id,
    make_component,
    make_concept,
    make_identifier,
    make_narrative,
    make_quantity,
    make_texts,
)
from ecgquorum.triage.fhir_measurements import Measure, list_measurements
from ecgquorum.triage.fhir_patient import make_context, make_patient, make_recorder, make_recording_facts
from ecgquorum.triage.worklist import read_worklist

REPORTED, REPEATED, UNHASHED = "reported", "repeated", "unhashed"
"""A recording has a report; another recording with the same content has it; its files could not be hashed."""

_STUDY = {"system": LOINC, "code": "11524-6", "display": "EKG study"}
_IMPRESSION = {"system": LOINC, "code": "8601-7", "display": "EKG impression"}
_ELECTROCARDIAC = {"system": "http://terminology.hl7.org/CodeSystem/v2-0074", "code": "EC"}
_PROCEDURE = {"system": "http://terminology.hl7.org/CodeSystem/observation-category", "code": "procedure"}
_TYPES = ("DiagnosticReport", "Observation", "Device")
_CONCLUSIONS = {
    DEFERRED: "To be read by a person",
    CERTAIN: "Certain enough for the policy",
    UNREADABLE: "Cannot be read",
}
_UNVERIFIED = "Not verified by any person; research use only."


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
        seen = stack.enter_context(closing(sqlite3.connect("")))  # spills to disk when it grows
        seen.execute("CREATE TABLE seen (sha256 TEXT PRIMARY KEY) WITHOUT ROWID")

        def is_new(key: str) -> bool:
            return bool(seen.execute("INSERT OR IGNORE INTO seen VALUES (?)", (key,)).rowcount)

        _write(files, [make_device(card)])
        for result in read_worklist(worklist):
            if result.decision == SKIPPED:
                continue
            if not result.sha256:
                counts[UNHASHED] += 1
            elif not is_new(result.sha256):
                counts[REPEATED] += 1
            else:
                counts[REPORTED] += 1
                about = [one for one in (make_patient(result), make_recorder(result)) if one and is_new(one["id"])]
                if any(one["resourceType"] == "Patient" for one in about) and "Patient" not in files:
                    files["Patient"] = stack.enter_context(atomic_file(out / "Patient.ndjson"))
                _write(files, about)
                _write(files, make_resources(result, names))
    return counts


def _write(files: Mapping[str, Any], resources: Iterable[Resource]) -> None:
    for resource in resources:
        line = json.dumps(resource, ensure_ascii=False, separators=(",", ":"))
        files[resource["resourceType"]].write(line + "\n")


def make_device(card: Mapping[str, Any]) -> Resource:
    """The ensemble as a Device: software that observes."""
    name, weights = clean_text(str(card.get("name") or "")) or "unnamed", str(card.get("weights_sha256") or "")
    kind = "ECG classifier (software)"
    device = {
        "resourceType": "Device",
        "id": derive_id("Device", "", weights),
        "text": make_narrative(f"{kind} {name}. Research use only; this is not a medical device."),
        "status": "active",
        "deviceName": [{"name": name, "type": "model-name"}],
        "type": {"text": kind},
        "version": [{"type": {"text": "ecgquorum"}, "value": version("ecgquorum")}],
        "note": [{"text": "Research use only; this is not a medical device."}],
    }
    return device | ({"identifier": [make_identifier("weights-sha256", weights)]} if weights else {})


def make_resources(result: Result, names: Mapping[str, str]) -> list[Resource]:
    """The Observations and the DiagnosticReport of a recording.

    names: of the classes; a class without one is called by its code
    """
    classified = result.decision != UNREADABLE
    observations = [*([_classification(result, names)] if classified else []), _quality(result)]
    observations += [_make_measurement(result, measure, value) for measure, value in list_measurements(result)]
    if result.acquisition:
        observations.append(_acquisition(result))
    identifiers = [make_identifier("recording-sha256", result.sha256)]
    if name := clean_text(PurePath(result.id).name):  # an id may be a path, whose folders may name the patient
        identifiers.append(make_identifier("recording", name))
    conclusion = " ".join([*([_answer(result, names)] if classified else []), _decision(result), _UNVERIFIED])
    report = {
        "resourceType": "DiagnosticReport",
        **_common("DiagnosticReport", result, conclusion),
        "identifier": identifiers,
        "status": "partial" if classified else "cancelled",
        "category": [{"coding": [_ELECTROCARDIAC], "text": "Electrocardiac"}],
        "code": {"coding": [_STUDY], "text": "ECG, read by software"},
        **make_context(result),
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
        "valueCodeableConcept": make_concept("class", label, _class_name(label, names)),
    }
    *observations, report = resources
    final = report | {
        "text": make_narrative(text),
        "status": "final",
        "issued": at,
        "code": {"coding": [_STUDY], "text": "ECG, read by software and by a person"},
        "result": [*report["result"], {"reference": f"Observation/{verdict['id']}"}],
        "conclusion": text,
    }
    return [*observations, verdict, final]


def _classification(result: Result, names: Mapping[str, str]) -> Resource:
    components = [
        make_component(
            "calibrated-probability", "Calibrated probability of the class", make_quantity(result.probability)
        ),
        *_risk(result),
        make_component(
            "uncertainty",
            "Mutual information of the members, normalised by its range in training; may exceed 1",
            make_quantity(result.uncertainty),
        ),
        make_component("decision", "Decision", {"valueCodeableConcept": make_concept("decision", result.decision)}),
        *make_texts("reason", "Reason of the decision", [_reason(result)]),
    ]
    for name, share in result.probabilities.items():
        title = f"Calibrated probability of {_class_name(name, names)}"
        components.append(make_component(f"probability-{clean_text(name)}", title, make_quantity(share)))
    for number, vote in enumerate(result.votes):
        value = {"valueCodeableConcept": make_concept("class", vote, _class_name(vote, names))}
        components.append(make_component(f"vote-{number}", f"Vote of member {number}", value))
    return {
        "resourceType": "Observation",
        **_common("class", result, f"{_answer(result, names)} {_decision(result)} {_UNVERIFIED}"),
        **_observation(result, {"coding": [_IMPRESSION], "text": "Class of the ECG"}),
        "valueCodeableConcept": make_concept("class", result.label, _class_name(result.label, names)),
        "component": components,
    }


def _risk(result: Result) -> list[Resource]:
    """The risk as a component; results of old versions have none."""
    title = "Estimated probability that the class is wrong"
    return [] if result.risk is None else [make_component("risk", title, make_quantity(result.risk))]


def _quality(result: Result) -> Resource:
    severity, findings = str(result.quality.severity), [_hide_folder(one, result) for one in result.quality.reasons]
    text = "; ".join(filter(None, map(clean_text, findings))) or "no findings"
    observation = {
        "resourceType": "Observation",
        **_common("quality", result, f"Quality of the recording: {severity}: {text}."),
        **_observation(result, make_concept("observation", "recording-quality", "Quality of the recording")),
        "valueCodeableConcept": make_concept("quality", severity),
    }
    components = list(make_texts("finding", "Finding about the recording", findings))
    return observation | ({"component": components} if components else {})


def _make_measurement(result: Result, measure: Measure, value: float) -> Resource:
    """A measurement, with its LOINC code where there is one."""
    text = f"{measure.title} {value:g} {measure.unit}".strip()
    return {
        "resourceType": "Observation",
        **_common(measure.name, result, f"{text}. {_UNVERIFIED}"),
        **_observation(result, measure.concept()),
        **make_quantity(value, measure.ucum, measure.unit),
    }


def _acquisition(result: Result) -> Resource:
    """The recording itself: when it was made, of whom, and with which device."""
    observation = _observation(result, {"coding": [_STUDY], "text": "Acquisition of the ECG"})
    del observation["device"]
    return {
        "resourceType": "Observation",
        **_common("acquisition", result, "; ".join(("Acquisition of the ECG", *result.acquisition.lines()))),
        **observation,
        **make_recording_facts(result),
    }


def _common(kind: str, result: Result, text: str) -> Resource:
    tag = {"system": f"{LOCAL}:decision", "code": result.decision}
    identity = derive_id(kind, result.sha256, result.model_sha256)
    return {"id": identity, "meta": {"tag": [tag]}, "text": make_narrative(text)}


def _observation(result: Result, code: Resource) -> Resource:
    return {
        "status": "preliminary",
        "category": [{"coding": [_PROCEDURE], "text": "Procedure"}],
        "code": code,
        "device": {"reference": f"Device/{derive_id('Device', '', result.model_sha256)}"},
        **make_context(result),
    }


def _answer(result: Result, names: Mapping[str, str]) -> str:
    return f"{_class_name(result.label, names)}, calibrated probability {result.probability:.2f}, " + (
        f"uncertainty {result.uncertainty:.2f}." if result.risk is None else f"risk {result.risk:.2f}."
    )


def _decision(result: Result) -> str:
    reason = _reason(result)
    return f"{_CONCLUSIONS[result.decision]}{f': {reason}' if reason else ''}."


def _reason(result: Result) -> str:
    return clean_text(_hide_folder(result.reason.removeprefix(f"{result.source}: "), result))


def _hide_folder(text: str, result: Result) -> str:
    """The text without the folder of the recording, which may hold personal data; another of its files may be named."""
    return text.replace(f"{PurePath(result.source).parent}/", "")


def _class_name(label: str, names: Mapping[str, str]) -> str:
    name = clean_text(str(names.get(label) or ""))
    return f"{name} ({clean_text(label)})" if name else clean_text(label)
