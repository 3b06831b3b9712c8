"""Measurements as FHIR Observations, with the LOINC codes of ECG intervals."""

from collections.abc import Iterator
from dataclasses import dataclass

from ecgquorum.ensemble.result import UNREADABLE, Result
from ecgquorum.triage.fhir_elements import LOINC, Resource, make_concept


@dataclass(frozen=True)
class Measure:
    """A measurement: its field of `Measurements`, title, unit for people and for UCUM, LOINC code if there is one."""

    name: str
    title: str
    unit: str
    ucum: str
    loinc: str = ""

    def concept(self) -> Resource:
        """The code of the Observation."""
        if not self.loinc:
            return make_concept("observation", self.name.replace("_", "-"), self.title)
        return {"coding": [{"system": LOINC, "code": self.loinc}], "text": self.title}


MEASURES = (
    Measure("heart_rate_bpm", "Heart rate", "/min", "/min", "8867-4"),
    Measure("rr_irregularity", "Irregularity of RR intervals (RMSSD / mean)", "", "1"),
    Measure("pr_ms", "P-R interval", "ms", "ms", "8625-6"),
    Measure("qrs_ms", "QRS duration", "ms", "ms", "8633-0"),
    Measure("qt_ms", "Q-T interval", "ms", "ms", "8634-8"),
    Measure("qtc_bazett_ms", "Q-T interval corrected by Bazett's formula", "ms", "ms", "76635-2"),
    Measure("qtc_fridericia_ms", "Q-T interval corrected by Fridericia's formula", "ms", "ms", "76634-5"),
)


def list_measurements(result: Result) -> Iterator[tuple[Measure, float]]:
    """The measurements of a recording that could be read."""
    if result.decision != UNREADABLE:
        for measure in MEASURES:
            value = getattr(result.measurements, measure.name)
            if value is not None:
                yield measure, float(value)
