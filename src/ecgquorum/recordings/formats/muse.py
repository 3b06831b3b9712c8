"""GE MUSE XML: resting ECGs, each lead in Base64 with its own amplitude per bit."""

from xml.etree.ElementTree import Element

from ecgquorum.errors import RecordingError
from ecgquorum.recordings.acquisition import Acquisition, join_text, parse_years
from ecgquorum.recordings.formats.xml_waveform import Traces, children, decode_samples, text_of
from ecgquorum.recordings.leads import normalise_lead
from ecgquorum.recordings.recording import note_parts
from ecgquorum.recordings.units import millivolts_in


def parse_muse(root: Element) -> Traces:
    """Parse the rhythm waveform; median beats are ignored."""
    waveforms = list(children(root, "Waveform"))
    rhythm = [one for one in waveforms if text_of(one, "WaveformType", default="Rhythm").lower() == "rhythm"]
    if not rhythm:
        raise RecordingError("there is no rhythm waveform")
    chosen = rhythm[0]
    exponent = int(text_of(chosen, "SampleExponent", default="0") or 0)
    rate_hz = float(text_of(chosen, "SampleBase")) * 10.0 ** max(-6, min(6, exponent))
    notes = note_parts("rhythm waveforms", len(rhythm))
    traces = Traces(rate_hz, acquisition=_acquisition(root), notes=notes)
    for lead in children(chosen, "LeadData"):
        unit = text_of(lead, "LeadAmplitudeUnits", default="MICROVOLTS")
        factor = millivolts_in(unit)
        if factor is None:
            raise RecordingError(f"there is no unit of voltage but {unit!r}")
        if text_of(lead, "LeadSampleSize", default="2") != "2":
            raise RecordingError("samples are not of 2 bytes")
        per_bit = float(text_of(lead, "LeadAmplitudeUnitsPerBit"))
        samples = decode_samples(text_of(lead, "WaveFormData"))
        traces.add(normalise_lead(text_of(lead, "LeadID")), samples * per_bit * factor, unit)
    if not traces.leads:
        raise RecordingError("there are no leads")
    return traces


def _acquisition(root: Element) -> Acquisition:
    def patient(name: str) -> str:
        return text_of(root, "PatientDemographics", name, default="")

    def test(name: str) -> str:
        return text_of(root, "TestDemographics", name, default="")

    years = patient("AgeUnits").upper() in ("", "YEARS")
    date, time = _iso_date(test("AcquisitionDate")), test("AcquisitionTime")
    return Acquisition(
        patient_id=patient("PatientID"),
        name=join_text(patient("PatientLastName"), patient("PatientFirstName")),
        sex=patient("Gender"),
        birth_date=_iso_date(patient("DateofBirth")),
        age_years=parse_years(patient("PatientAge")) if years else None,
        time=f"{date}T{time}" if date and time else date,
        device=join_text("GE", test("AcquisitionDevice")) if test("AcquisitionDevice") else None,
    )


def _iso_date(text: str) -> str | None:
    """01-31-1950 as 1950-01-31."""
    month, _, rest = text.partition("-")
    day, _, year = rest.partition("-")
    return f"{year}-{month}-{day}" if year else None
