"""Philips SierraECG XML, plain or compressed; the `sierraecg` package decompresses.

The package's own reader takes all samples for residuals of a lead that is derived from others, which only compressed
ones are, and follows lengths that a damaged file may claim. So only its decompression is used here.
"""

import base64
from xml.etree.ElementTree import Element

import numpy as np
from numpy.typing import NDArray
from sierraecg.xli import xli_decode

from ecgquorum.errors import RecordingError
from ecgquorum.recordings.leads import STANDARD_LEADS, normalised_lead
from ecgquorum.recordings.traces import Traces, child, samples_in, text_of

_MICROVOLTS_PER_BIT = "5"
_CHUNK_HEADER = 8
_CHUNK_BYTES = 1 << 20


def from_sierra(root: Element) -> Traces:
    """All leads of the parsed waveforms."""
    described = child(root, "dataacquisition", "signalcharacteristics")
    waveforms = child(root, "waveforms", "parsedwaveforms")
    if waveforms.get("dataencoding", "Base64") != "Base64":
        raise RecordingError(f"samples are not in Base64 but in {waveforms.get('dataencoding')!r}")
    labels = waveforms.get("leadlabels", " ".join(STANDARD_LEADS)).split()
    labels = labels[: int(waveforms.get("numberofleads", len(labels)))]
    rate_hz = float(text_of(described, "samplingrate"))
    compression = waveforms.get("compressmethod", waveforms.get("compression", "Uncompressed"))
    if compression == "XLI":
        leads = _decompressed(base64.b64decode("".join((waveforms.text or "").split()), validate=True), len(labels))
    elif compression in ("Uncompressed", ""):
        samples = samples_in(waveforms.text)
        leads = list(samples[: len(samples) // len(labels) * len(labels)].reshape(len(labels), -1)) if labels else []
    else:
        raise RecordingError(f"samples are compressed by {compression!r}, not by XLI")
    if not leads:
        raise RecordingError("there are no leads")
    per_bit = float(text_of(described, "resolution", default=_MICROVOLTS_PER_BIT)) / 1000
    traces = Traces(rate_hz)
    for label, values in zip(labels, leads, strict=True):
        traces.add(normalised_lead(label), values * per_bit, "uV")
    return traces


def _decompressed(content: bytes, n_leads: int) -> list[NDArray[np.float64]]:
    position = 0
    for _ in range(n_leads):
        size = int.from_bytes(content[position : position + 4], "little", signed=True)
        if not 0 < size <= _CHUNK_BYTES or position + _CHUNK_HEADER + size > len(content):
            raise RecordingError("its compressed leads are damaged")
        position += _CHUNK_HEADER + size
    leads = [np.array(lead, dtype=np.float64) for lead in xli_decode(content[:position], [])]
    if n_leads == len(STANDARD_LEADS):
        shortest = min(map(len, leads))
        leads = [lead[:shortest] for lead in leads]
        one, two = leads[0], leads[1]
        three = two - one - leads[2]  # limb leads come as what Einthoven's and Goldberger's rules leave of them
        leads[2] = three
        leads[3] = -leads[3] - np.floor((one + two) / 2)
        leads[4] = np.floor((one - three) / 2) - leads[4]
        leads[5] = np.floor((two + three) / 2) - leads[5]
    return leads
