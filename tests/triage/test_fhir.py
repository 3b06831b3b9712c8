"""FHIR export: valid resources that refer to each other and are never final."""

import json
import re
import tracemalloc
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel
from typer.testing import CliRunner

from ecgquorum import simulate
from ecgquorum.cli import app
from ecgquorum.ensemble.result import Result, failed_result
from ecgquorum.errors import TriageError
from ecgquorum.preprocessing.measurements import Measurements
from ecgquorum.preprocessing.quality import Finding, Quality, Severity
from ecgquorum.recordings import Acquisition, ReadFailure, SandboxLimits, write
from ecgquorum.triage.fhir import REPEATED, REPORTED, UNHASHED, make_device, make_resources, write_fhir

CARD = {
    "name": "tiny",
    "weights_sha256": "e" * 64,
    "class_names": {"N": "normal rhythm", "A": "atrial fibrillation", "O": "other rhythm"},
}
NAMES = CARD["class_names"]
FAILURE = "/wards/3/Smith/A00001.hea: expected a header"

# Elements of FHIR R4 (4.0.1). The validator knows R4B (4.3.0); whatever is not in this table is not ours to write.
R4_ELEMENTS = {
    "Device": "resourceType id text identifier status deviceName type version note",
    "Patient": "resourceType id text identifier name gender birthDate",
    "Observation": "resourceType id meta text status category code subject effectiveDateTime valueCodeableConcept "
    "valueQuantity device component",
    "DiagnosticReport": "resourceType id meta text identifier status category code subject effectiveDateTime result "
    "conclusion",
    "component": "code valueQuantity valueString valueCodeableConcept",
    "valueQuantity": "value unit system code",
    "CodeableConcept": "coding text",
}


def validated(resource) -> BaseModel:
    """As the `fhir.resources` package reads it; an element that is unknown or malformed is refused."""
    from fhir.resources.R4B import get_fhir_model_class

    return get_fhir_model_class(resource["resourceType"]).model_validate(resource)


def classified(**changes):
    """A result; `findings` are texts, `votes` the classes of the members."""
    values = {
        "id": "A00001",
        "source": "/wards/3/Smith/A00001.hea",
        "label": "A",
        "probabilities": {"N": 0.24, "A": 0.66, "O": 0.1},
        "raw_probabilities": {"N": 0.2, "A": 0.7, "O": 0.1},
        "decision": "deferred",
        "reason": "among the 10% with the highest risk",
        "uncertainty": 0.41,
        "risk": 0.36,
        "seconds": 30.0,
        "sha256": "a" * 64,
        "model_sha256": "e" * 64,
        "votes": ("A", "N"),
        "findings": (),
        "severity": Severity.DOUBTFUL,
    } | changes
    votes, findings, severity = (values.pop(name) for name in ("votes", "findings", "severity"))
    quality = Quality(tuple(Finding(text, severity, "detail") for text in findings))
    return Result(**values, quality=quality, raw_member_probabilities=tuple({vote: 1.0} for vote in votes))


def unread(**changes):
    return replace(failed_result(ReadFailure("/wards/3/Smith/A00001.hea", FAILURE, "a" * 64), "e" * 64), **changes)


def components(observation):
    return {one["code"]["coding"][0]["code"]: one for one in observation.get("component", [])}


def test_a_recording_becomes_a_report_with_its_observations():
    found, quality, report = make_resources(classified(), NAMES)
    for resource in (found, quality, report, make_device(CARD)):
        validated(resource)
    assert report["result"] == [{"reference": f"Observation/{one['id']}"} for one in (found, quality)]
    assert found["device"] == quality["device"] == {"reference": f"Device/{make_device(CARD)['id']}"}
    assert found["valueCodeableConcept"]["text"] == "atrial fibrillation (A)"
    said = components(found)
    assert said["calibrated-probability"]["valueQuantity"]["value"] == 0.66
    assert said["uncertainty"]["valueQuantity"]["value"] == 0.41
    assert said["risk"]["valueQuantity"]["value"] == 0.36
    assert [said[f"probability-{name}"]["valueQuantity"]["value"] for name in "NAO"] == [0.24, 0.66, 0.1]
    assert [said[f"vote-{i}"]["valueCodeableConcept"]["coding"][0]["code"] for i in (0, 1)] == ["A", "N"]
    assert said["decision"]["valueCodeableConcept"]["text"] == "deferred"
    assert said["reason"]["valueString"] == "among the 10% with the highest risk"
    assert "component" not in quality and quality["valueCodeableConcept"]["text"] == "usable"
    assert report["identifier"][0]["value"] == "a" * 64
    assert report["conclusion"].startswith("atrial fibrillation (A), calibrated probability 0.66, risk 0.36.")
    assert "To be read by a person: among the 10% with the highest risk." in report["conclusion"]


def test_a_result_of_an_old_version_has_no_risk():
    found, _, report = make_resources(classified(risk=None), NAMES)
    assert "risk" not in components(found) and "uncertainty 0.41." in report["conclusion"]


def test_unreadable_recordings_have_no_class_and_no_path():
    quality, report = make_resources(unread(), NAMES)
    assert report["status"] == "cancelled" and validated(report)
    assert components(quality)["finding"]["valueString"] == "not read: expected a header"
    dead = classified(decision="unreadable", findings=("lead off",), severity=Severity.UNREADABLE)
    assert [one["resourceType"] for one in make_resources(dead, NAMES)] == ["Observation", "DiagnosticReport"]
    segment = unread(reason="/wards/3/Smith/A1.hea: expected samples")
    for row in (unread(), segment, classified(findings=(segment.reason,)), classified(id="Smith/A00001.hea")):
        assert "Smith" not in json.dumps(make_resources(row, NAMES))


@pytest.mark.parametrize("decision", ["certain", "deferred", "unreadable"])
def test_reports_are_not_final_and_name_no_patient(decision):
    row = unread() if decision == "unreadable" else classified(decision=decision)
    for resource in make_resources(row, NAMES):
        assert resource["status"] in ("preliminary", "partial", "cancelled")
        assert "subject" not in resource
        assert resource["meta"]["tag"][0]["code"] == decision


KNOWN = Acquisition("P-17", "Doe Jane", "F", "1950-01-31", 74, "2024-01-31T12:30:00+01:00", "MAC 55")


def test_patient_time_and_device_are_reported_where_the_result_holds_them(tmp_path):
    rows = [
        classified(acquisition=KNOWN),
        classified(acquisition=KNOWN, sha256="b" * 64),
        classified(acquisition=Acquisition(sex="male", time="2024-01-31T12:30"), sha256="c" * 64),
        classified(sha256="d" * 64),
    ]
    (tmp_path / "worklist.jsonl").write_text("".join(json.dumps(row.to_json()) + "\n" for row in rows))
    write_fhir(tmp_path / "worklist.jsonl", tmp_path / "fhir", CARD)
    read = {
        path.stem: [json.loads(line) for line in path.read_text().splitlines()]
        for path in (tmp_path / "fhir").iterdir()
    }
    for resource in (one for found in read.values() for one in found):
        assert validated(resource) and set(resource) <= set(R4_ELEMENTS[resource["resourceType"]].split())
    jane, john = read["Patient"]
    assert jane["identifier"][0]["value"] == "P-17" and jane["name"] == [{"text": "Doe Jane"}]
    assert (jane["gender"], jane["birthDate"]) == ("female", "1950-01-31") and john["gender"] == "male"
    ids = {f"{kind}/{one['id']}" for kind, found in read.items() for one in found}
    subjects = [report.get("subject", {}).get("reference") for report in read["DiagnosticReport"]]
    assert subjects == [f"Patient/{jane['id']}"] * 2 + [f"Patient/{john['id']}", None] and set(subjects[:3]) <= ids
    times = [report.get("effectiveDateTime") for report in read["DiagnosticReport"]]
    assert times == ["2024-01-31T12:30:00+01:00"] * 2 + ["2024-01-31", None], "no time of day without its zone"
    recorder = read["Device"][1]
    assert recorder["deviceName"][0]["name"] == "MAC 55"
    made = [one for one in read["Observation"] if one["code"]["text"] == "Acquisition of the ECG"]
    assert [one.get("device", {}).get("reference") for one in made] == [f"Device/{recorder['id']}"] * 2 + [None]
    assert made[0]["component"][0]["valueQuantity"]["value"] == 74


def test_measurements_have_loinc_codes_and_units():
    measured = Measurements(72.0, 0.03, 12, 160.0, 95.0, 400.0, 438.2, 425.1)
    *observations, report = make_resources(classified(measurements=measured), NAMES)
    found = {one["code"]["coding"][0]["code"]: one for one in observations if "valueQuantity" in one}
    values = {code: (one["valueQuantity"]["value"], one["valueQuantity"]["code"]) for code, one in found.items()}
    assert values == {
        "8867-4": (72.0, "/min"),
        "rr-irregularity": (0.03, "1"),
        "8625-6": (160.0, "ms"),
        "8633-0": (95.0, "ms"),
        "8634-8": (400.0, "ms"),
        "76635-2": (438.2, "ms"),
        "76634-5": (425.1, "ms"),
    }
    for one in found.values():
        assert validated(one) and set(one) <= set(R4_ELEMENTS["Observation"].split()) and one["status"] == "preliminary"
        assert {"reference": f"Observation/{one['id']}"} in report["result"]
    assert len({one["id"] for one in observations}) == len(observations)
    assert len(make_resources(unread(measurements=measured), NAMES)) == 2, "what cannot be read is not measured"


def test_identities_come_from_recording_and_model_alone():
    def ids(**changes):
        return [one["id"] for one in make_resources(classified(**changes), NAMES)]

    assert len(set(ids())) == 3
    assert ids() == ids(id="other", source="/elsewhere", decision="certain", uncertainty=0.1)
    for changes in ({"sha256": "b" * 64}, {"model_sha256": "c" * 64}):
        assert not set(ids()) & set(ids(**changes))


def concepts(value):
    if isinstance(value, dict):
        if "coding" in value:
            yield value
        for inner in value.values():
            yield from concepts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from concepts(inner)


ANY_TEXT = st.text(st.characters(codec="utf-8") | st.sampled_from("\x00\n\t\r<>&\"'\u2028\ufffe"), max_size=20)
CLASSES = st.lists(
    ANY_TEXT.filter(lambda text: text.isprintable() and text.strip()), min_size=1, max_size=4, unique=True
)


@settings(max_examples=25)
@given(
    CLASSES,
    ANY_TEXT,
    ANY_TEXT,
    st.lists(ANY_TEXT, max_size=3),
    st.floats(-0.5, 1.5),
    st.sampled_from(["certain", "deferred", "unreadable"]),
)
def test_every_worklist_gives_valid_resources(classes, name, reason, findings, share, decision):
    row = classified(
        id=name,
        reason=reason,
        decision=decision,
        severity=Severity.UNREADABLE if decision == "unreadable" else Severity.DOUBTFUL,
        findings=findings,
        votes=classes[:2],
        uncertainty=share,
        probabilities=dict.fromkeys(classes, round(share, 6)),
        label=classes[0],
    )
    for resource in (*make_resources(row, {classes[0]: reason}), make_device(CARD | {"name": name})):
        validated(resource)
        kind = resource["resourceType"]
        assert set(resource) <= set(R4_ELEMENTS[kind].split())
        for component in resource.get("component", []):
            assert set(component) <= set(R4_ELEMENTS["component"].split())
            assert set(component.get("valueQuantity", {})) <= set(R4_ELEMENTS["valueQuantity"].split())
        for concept in concepts(resource):
            assert set(concept) == set(R4_ELEMENTS["CodeableConcept"].split()) and concept["text"].strip()
            for coding in concept["coding"]:
                assert re.fullmatch(r"\S+( \S+)*", coding["code"])
        assert re.fullmatch(r"[A-Za-z0-9.-]{1,64}", resource["id"])


def written(tmp_path, rows, card=CARD):
    path = tmp_path / "worklist.jsonl"
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row.to_json(), ensure_ascii=False) + "\n" for row in rows)
    return write_fhir(path, tmp_path / "fhir", card)


def resources(folder, kind):
    return [json.loads(line) for line in (folder / "fhir" / f"{kind}.ndjson").read_text("utf-8").splitlines()]


def test_files_hold_each_content_once_and_a_second_run_writes_the_same(tmp_path):
    rows = [classified(), classified(id="copy", decision="certain"), classified(sha256="b" * 64), unread(sha256="")]
    assert written(tmp_path, rows) == {REPORTED: 2, REPEATED: 1, UNHASHED: 1}
    (device,) = resources(tmp_path, "Device")
    known = {f"Observation/{one['id']}" for one in resources(tmp_path, "Observation")}
    reports = resources(tmp_path, "DiagnosticReport")
    assert [one["meta"]["tag"][0]["code"] for one in reports] == ["deferred", "deferred"]
    assert {one["reference"] for report in reports for one in report["result"]} == known and len(known) == 4
    assert {one["device"]["reference"] for one in resources(tmp_path, "Observation")} == {f"Device/{device['id']}"}
    before = {path.name: path.read_bytes() for path in (tmp_path / "fhir").iterdir()}
    written(tmp_path, rows)
    assert {path.name: path.read_bytes() for path in (tmp_path / "fhir").iterdir()} == before


def test_a_failure_leaves_the_files_as_they_were(tmp_path):
    written(tmp_path, [classified()])
    before = {path.name: path.read_bytes() for path in (tmp_path / "fhir").iterdir()}
    with pytest.raises(TriageError, match="line 1: expected a result of triage"):
        (tmp_path / "worklist.jsonl").write_text('{"sha256": "c"}\n')
        write_fhir(tmp_path / "worklist.jsonl", tmp_path / "fhir", CARD)
    assert {path.name: path.read_bytes() for path in (tmp_path / "fhir").iterdir()} == before


@pytest.mark.long
def test_memory_does_not_grow_with_the_worklist(tmp_path):
    peaks = []
    for count in (100, 1000):
        path = tmp_path / "worklist.jsonl"
        with path.open("w") as file:
            file.writelines(json.dumps(classified(sha256=f"{number:064x}").to_json()) + "\n" for number in range(count))
        tracemalloc.start()
        write_fhir(path, tmp_path / "fhir", CARD)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 2 * peaks[0]


def test_the_command_writes_fhir_with_corrected_units(tiny_run, tmp_path, monkeypatch):
    sound = simulate("A", seed=9, leads=("ECG",), seconds=6).recording
    write(sound, tmp_path / "in" / "sound.csv")
    write(replace(sound, signal=sound.signal * 1000), tmp_path / "in" / "lying.csv")
    (tmp_path / "in" / "junk.edf").write_bytes(b"junk" * 100)
    slow = partial(SandboxLimits, seconds=120.0)  # however busy the machine is
    monkeypatch.setattr("ecgquorum.recordings.SandboxLimits", slow)
    command = [
        "triage",
        str(tmp_path / "in"),
        "--model",
        str(tiny_run),
        "--out",
        str(tmp_path),
        *("--budget", "0%", "--floor", "0", "--plots", "0"),
    ]
    result = CliRunner().invoke(app, [*command, "--fhir"])
    assert result.exit_code == 3 and "FHIR R4 reports of 3 recordings" in result.stdout, result.output
    rows = {row["id"]: row for row in map(json.loads, (tmp_path / "worklist.jsonl").read_text().splitlines())}
    assert rows["lying"]["decision"] == "deferred" and rows["sound"]["decision"] == "certain"
    assert rows["lying"]["reason"].startswith("wrong units: uV where it says mV (detected)")
    assert rows["lying"]["uncertainty"] == pytest.approx(rows["sound"]["uncertainty"], abs=1e-3)
    reports = {one["identifier"][1]["value"]: one for one in resources(tmp_path, "DiagnosticReport")}
    assert "wrong units: uV where it says mV" in reports["lying"]["conclusion"]
    assert [reports[name]["status"] for name in ("lying", "sound", "junk")] == ["partial", "partial", "cancelled"]
    for kind in ("Device", "Observation", "DiagnosticReport"):
        for resource in resources(tmp_path, kind):
            validated(resource)
