"""FHIR resources about patient and acquisition, for recordings whose results hold them (`--identify`)."""

from collections.abc import Mapping
from typing import Any

from ecgquorum.ensemble.result import Result
from ecgquorum.recordings.acquisition import Acquisition
from ecgquorum.triage.fhir_elements import (
    LOINC,
    Resource,
    clean_text,
    derive_id,
    make_identifier,
    make_narrative,
    make_quantity,
)

_AGE = {"coding": [{"system": LOINC, "code": "30525-0", "display": "Age"}], "text": "Age"}


def make_patient(result: Result) -> Resource | None:
    """The patient; without an id in the file, one of their own for each recording; None if nothing is known."""
    known = result.acquisition
    if not _has_patient(known):
        return None
    facts: Mapping[str, Any] = {
        "identifier": [make_identifier("patient-id", known.patient_id)] if known.patient_id else None,
        "name": [{"text": known.name}] if known.name else None,
        "gender": known.sex,
        "birthDate": known.birth_date,
    }
    text = ", ".join(filter(None, ("Patient of an ECG", known.name, known.patient_id, known.sex, known.birth_date)))
    patient = {"resourceType": "Patient", "id": _patient_id(result), "text": make_narrative(text)}
    return patient | {name: value for name, value in facts.items() if value}


def make_recorder(result: Result) -> Resource | None:
    """The device that recorded the ECG; None if it is not known."""
    name = clean_text(result.acquisition.device or "")
    if not name:
        return None
    return {
        "resourceType": "Device",
        "id": _recorder_id(name),
        "text": make_narrative(f"Electrocardiograph {name}"),
        "deviceName": [{"name": name, "type": "user-friendly-name"}],
        "type": {"text": "Electrocardiograph"},
    }


def make_context(result: Result) -> Resource:
    """`subject` and `effectiveDateTime` of a resource about the recording, as far as they are known."""
    found: Resource = {}
    if _has_patient(result.acquisition):
        found["subject"] = {"reference": f"Patient/{_patient_id(result)}"}
    if time := result.acquisition.time:
        has_zone = "+" in time or "-" in time[10:]
        found["effectiveDateTime"] = time if has_zone else time[:10]  # FHIR allows no time of day without its zone
    return found


def make_recording_facts(result: Result) -> Resource:
    """`device` and the patient's age as a component, for the Observation about the recording itself."""
    found: Resource = {}
    if name := clean_text(result.acquisition.device or ""):
        found["device"] = {"reference": f"Device/{_recorder_id(name)}"}
    if (years := result.acquisition.age_years) is not None:
        found["component"] = [{"code": _AGE} | make_quantity(years, "a", "years")]
    return found


def _has_patient(known: Acquisition) -> bool:
    return any((known.patient_id, known.name, known.sex, known.birth_date))


def _patient_id(result: Result) -> str:
    return derive_id("Patient", result.acquisition.patient_id or result.sha256, "")


def _recorder_id(name: str) -> str:
    return derive_id("recorder", name, "")
