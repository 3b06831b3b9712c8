"""ECGs in XML: HL7 aECG, GE MUSE and Philips SierraECG; entities and external references are an error."""

from collections.abc import Callable
from xml.etree.ElementTree import Element

import numpy as np
from defusedxml.ElementTree import fromstring

from ecgquorum.errors import RecordingError
from ecgquorum.recordings.file_defaults import FileDefaults
from ecgquorum.recordings.filetree import OpenedFile
from ecgquorum.recordings.formats.aecg import parse_aecg
from ecgquorum.recordings.formats.muse import parse_muse
from ecgquorum.recordings.formats.sierra import parse_sierra
from ecgquorum.recordings.formats.xml_waveform import Traces, local_name
from ecgquorum.recordings.reader_protocol import reader
from ecgquorum.recordings.recording import Recording, as_samples, one_line
from ecgquorum.recordings.units import common_unit

_FILE_BYTES = 64 << 20
KINDS: dict[str, Callable[[Element], Traces]] = {
    "AnnotatedECG": parse_aecg,
    "RestingECG": parse_muse,
    "restingecgdata": parse_sierra,
}
"""Name of the root element -> the function that parses it."""


@reader(".xml")
def read_xml(file: OpenedFile, defaults: FileDefaults) -> Recording:
    """Read an ECG in XML, of one of the `KINDS`."""
    where = file.path
    content = file.read(_FILE_BYTES)
    try:
        root = fromstring(content)
        kind = KINDS.get(local_name(root))
        if kind is None:
            found = f"found <{local_name(root)[:80]}>"
            raise RecordingError(f"{where}: expected an ECG in XML (HL7 aECG, GE MUSE, Philips SierraECG), {found}")
        traces = _parse(where, kind, root)
    except RecordingError:
        raise
    except Exception as error:
        raise RecordingError(f"{where}: expected an ECG in XML, found: {one_line(error)}") from error
    longest = max(map(len, traces.millivolts))
    if longest == 0:
        raise RecordingError(f"{where}: expected samples, found none")
    signal = np.full((len(traces.leads), longest), np.nan)
    for row, values in zip(signal, traces.millivolts, strict=True):
        row[: len(values)] = values
    return Recording(
        file.stem,
        as_samples(signal),
        traces.rate_hz,
        defaults.leads_of(where, traces.leads),
        traces.acquisition,
        source=where,
        unit=common_unit(traces.units),
        notes=traces.notes,
    )


def _parse(where: str, kind: Callable[[Element], Traces], root: Element) -> Traces:
    try:
        return kind(root)
    except RecordingError as error:  # says what is wrong, but not in which file
        raise RecordingError(f"{where}: expected an ECG in XML, found that {error}") from error
