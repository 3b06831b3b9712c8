"""HL7 annotated ECG (aECG): sequences of digits, each with an origin and a scale."""

from xml.etree.ElementTree import Element

import numpy as np

from ecgquorum.errors import RecordingError
from ecgquorum.recordings.acquisition import Acquisition, compact_time, join_text, parse_years
from ecgquorum.recordings.formats.xml_waveform import Traces, child, children, text_of
from ecgquorum.recordings.leads import normalise_lead
from ecgquorum.recordings.recording import note_parts
from ecgquorum.recordings.units import millivolts_in

_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6}
_TIMES = ("TIME_ABSOLUTE", "TIME_RELATIVE")


def parse_aecg(root: Element) -> Traces:
    """The largest set of sequences: of several series, rates differ; of several sets, one may follow another in time.

    Representative beats, which are derived from a series, are left alone.
    """
    sets = list(children(root, "component", "series", "component", "sequenceSet"))
    if not sets:
        raise RecordingError("there is no set of sequences")
    sequences = list(children(max(sets, key=_n_samples), "component", "sequence"))
    times = [one for one in sequences if child(one, "code").get("code") in _TIMES]
    if not times:
        raise RecordingError("there is no sequence of times")
    increment = child(times[0], "value", "increment")
    step = float(increment.get("value", "nan")) * _SECONDS.get(increment.get("unit", "s"), float("nan"))
    if not 0 < step < 1:
        raise RecordingError(f"there is no increment of time but {increment.get('value')} {increment.get('unit')}")
    traces = Traces(1 / step, acquisition=_acquisition(root), notes=note_parts("sets of sequences", len(sets)))
    for sequence in sequences:
        name = child(sequence, "code").get("code", "")
        if name in _TIMES:
            continue
        value = child(sequence, "value")
        origin, scale = child(value, "origin"), child(value, "scale")
        digits = np.array(text_of(value, "digits").split(), dtype=np.float64)
        millivolts = digits * _millivolts(scale) + _millivolts(origin)
        traces.add(normalise_lead(name), millivolts, scale.get("unit", ""))
    if not traces.leads:
        raise RecordingError("there are no sequences of leads")
    return traces


def _n_samples(sequence_set: Element) -> int:
    """Number of samples of all its leads."""
    return sum(
        len((one.text or "").split()) for one in children(sequence_set, "component", "sequence", "value", "digits")
    )


def _millivolts(quantity: Element) -> float:
    factor = millivolts_in(quantity.get("unit", ""))
    if factor is None:
        raise RecordingError(f"there is no unit of voltage but {quantity.get('unit')!r}")
    return float(quantity.get("value", "nan")) * factor


def _acquisition(root: Element) -> Acquisition:
    """Subject, time and device; of several series, the device of the first."""
    subject = ("componentOf", "timepointEvent", "componentOf", "subjectAssignment", "subject", "trialSubject")
    person = (*subject, "subjectDemographicPerson")
    author = ("component", "series", "author", "seriesAuthor")
    device = (*author, "manufacturedSeriesDevice")
    times = [_attribute(root, "value", "effectiveTime", part) for part in ("low", "center")]
    return Acquisition(
        patient_id=_attribute(root, "extension", *subject, "id") or text_of(root, *person, "PatientID", default=""),
        name=_name(root, *person, "name"),
        sex=_attribute(root, "code", *person, "administrativeGenderCode"),
        birth_date=(_attribute(root, "value", *person, "birthTime") or "")[:8],
        age_years=parse_years(text_of(root, *person, "Age", default="")),
        time=next(filter(None, map(compact_time, times)), None),
        device=join_text(
            text_of(root, *author, "manufacturerOrganization", "name", default=""),
            text_of(root, *device, "manufacturerModelName", default=""),
            text_of(root, *device, "SerialNumber", default=""),
        ),
    )


def _attribute(root: Element, name: str, *path: str) -> str | None:
    """The attribute of the first element at the end of the path."""
    found = next(children(root, *path), None)
    return (found.get(name) or None) if found is not None else None


def _name(root: Element, *path: str) -> str | None:
    """A name as text or as its parts, family name first."""
    found = next(children(root, *path), None)
    if found is None:
        return None
    parts = [one.text for part in ("family", "given") for one in children(found, part)]
    return join_text(*parts) if parts else join_text(found.text)
