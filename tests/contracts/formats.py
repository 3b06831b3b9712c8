"""One recording in every format; those that `ecgquorum.recordings.write` does not know are written here."""

import base64
import struct
from dataclasses import replace

import numpy as np
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.uid import ExplicitVRBigEndian, ExplicitVRLittleEndian, TwelveLeadECGWaveformStorage
from scipy.io import savemat

from ecgquorum import ReadFailure, ReadOptions, read_recordings
from ecgquorum.recordings import STANDARD_LEADS, FileDefaults, write
from ecgquorum.recordings.file_defaults import NO_DEFAULTS

from .device_formats import DEVICE_WRITERS, microvolts, write_atc

RATE_HZ = 250.0
ENDS_SIERRA = "</waveforms></restingecgdata>"


def write_hea(recording, path):
    return write(recording, path / "made.hea")


def write_edf(recording, path):
    return write(recording, path / "made.edf")


def write_csv(recording, path):
    return write(recording, path / "made.csv")


def write_npz(recording, path):
    return write(recording, path / "made.npz")


def write_tsv(recording, path):
    lines = ["time (ms)\t" + "\t".join(f"{lead} [uV]" for lead in recording.leads)]
    for i, row in enumerate(microvolts(recording).T):
        lines.append("\t".join(map(str, [i * 4, *row])))
    (path / "made.tsv").write_text("\n".join(lines))
    return path / "made.tsv"


def write_npy(recording, path):
    np.save(path / "made.npy", recording.signal)
    return path / "made.npy"


def write_plain_mat(recording, path):
    savemat(path / "made.mat", {"val": recording.signal})
    return path / "made.mat"


def write_dicom(recording, path, syntax=ExplicitVRLittleEndian):
    data = Dataset()
    data.file_meta = FileMetaDataset()
    data.file_meta.TransferSyntaxUID = syntax
    data.file_meta.MediaStorageSOPClassUID = data.SOPClassUID = TwelveLeadECGWaveformStorage
    data.file_meta.MediaStorageSOPInstanceUID = data.SOPInstanceUID = "1.2.3"
    data.PatientID = "p7"
    median, rhythm = Dataset(), Dataset()
    for group, signal in ((median, microvolts(recording)[:, :100]), (rhythm, microvolts(recording))):
        group.WaveformOriginality = "DERIVED" if group is median else "ORIGINAL"
        group.NumberOfWaveformChannels, group.NumberOfWaveformSamples = signal.shape
        group.SamplingFrequency = RATE_HZ
        group.WaveformBitsAllocated, group.WaveformSampleInterpretation = 16, "SS"
        channels = []
        for number, lead in enumerate(recording.leads):
            channel, source, unit = Dataset(), Dataset(), Dataset()
            source.CodeValue, source.CodingSchemeDesignator = f"x{number}", "99"
            source.CodeMeaning = f"Lead {lead} (Einthoven)"
            unit.CodeValue, unit.CodingSchemeDesignator, unit.CodeMeaning = "mV", "UCUM", "millivolt"
            if number % 2:
                unit.CodeValue, unit.CodeMeaning = "uV", "microvolt"
            channel.ChannelSourceSequence = [source]
            channel.ChannelSensitivityUnitsSequence = [unit]
            # half of the channels in millivolts, by a sensitivity and a correction factor, with a baseline
            channel.ChannelSensitivity = 2.0 if number % 2 else 0.002
            channel.ChannelSensitivityCorrectionFactor = 0.5
            channel.ChannelBaseline = 100.0 if number % 2 else 0.1
            channel.WaveformBitsStored = 16
            channels.append(channel)
        group.ChannelDefinitionSequence = channels
        order = "<" if syntax == ExplicitVRLittleEndian else ">"
        group.WaveformData = (signal.T - 100).astype(f"{order}i2").tobytes()
    data.WaveformSequence = [median, rhythm]
    data.save_as(path / "made.dcm", enforce_file_format=True)
    return path / "made.dcm"


def sequence_set(recording):
    sequences = [
        '<component><sequence><code code="TIME_ABSOLUTE"/><value xsi:type="GLIST_TS"><head value="20200101"/>'
        f'<increment value="{1000 / recording.rate_hz:g}" unit="ms"/></value></sequence></component>'
    ]
    for number, (lead, row) in enumerate(zip(recording.leads, microvolts(recording), strict=True)):
        unit, scale = ("uV", 2) if number % 2 else ("mV", 0.002)
        digits = " ".join(f"{value / 2 - 50:g}" for value in row)
        sequences.append(
            f'<component><sequence><code code="MDC_ECG_LEAD_{lead}"/><value xsi:type="SLIST_PQ">'
            f'<origin value="100" unit="uV"/><scale value="{scale}" unit="{unit}"/><digits>{digits}</digits>'
            "</value></sequence></component>"
        )
    return f"<component><sequenceSet>{''.join(sequences)}</sequenceSet></component>"


def write_aecg(recording, path, *others):
    """One series a recording."""
    series = "".join(f"<component><series>{sequence_set(one)}</series></component>" for one in (recording, *others))
    (path / "made.xml").write_text(
        '<?xml version="1.0"?><AnnotatedECG xmlns="urn:hl7-org:v3" '
        'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">'
        f"{series}</AnnotatedECG>"
    )
    return path / "made.xml"


def encoded(samples):
    return base64.encodebytes(np.asarray(samples).astype("<i2").tobytes()).decode()


def write_muse(recording, path):
    leads = "".join(
        f"<LeadData><LeadSampleSize>2</LeadSampleSize><LeadAmplitudeUnitsPerBit>1.0</LeadAmplitudeUnitsPerBit>"
        f"<LeadAmplitudeUnits>MICROVOLTS</LeadAmplitudeUnits><LeadID>{lead.upper()}</LeadID>"
        f"<WaveFormData>{encoded(row)}</WaveFormData></LeadData>"
        for lead, row in zip(recording.leads, microvolts(recording), strict=True)
    )
    (path / "made.xml").write_text(
        '<?xml version="1.0" encoding="ISO-8859-1"?><!DOCTYPE RestingECG SYSTEM "restecg.dtd"><RestingECG>'
        "<PatientDemographics><PatientID>p7</PatientID></PatientDemographics>"
        "<Waveform><WaveformType>Median</WaveformType><SampleBase>500</SampleBase></Waveform>"
        "<Waveform><WaveformType>Rhythm</WaveformType><SampleBase>250</SampleBase><SampleExponent>0</SampleExponent>"
        f"{leads}</Waveform></RestingECG>"
    )
    return path / "made.xml"


def write_sierra(recording, path):
    labels = " ".join(recording.leads)
    (path / "made.xml").write_text(
        '<?xml version="1.0"?><restingecgdata xmlns="http://www3.medical.philips.com">'
        "<documentinfo><documenttype>SierraECG</documenttype><documentversion>1.04</documentversion></documentinfo>"
        "<dataacquisition><signalcharacteristics><samplingrate>250</samplingrate><resolution>1</resolution>"
        '</signalcharacteristics></dataacquisition><waveforms><parsedwaveforms durationperchannel="4000" '
        f'dataencoding="Base64" compressmethod="Uncompressed" numberofleads="{len(recording.leads)}" '
        f'leadlabels="{labels}">{encoded(microvolts(recording))}</parsedwaveforms>{ENDS_SIERRA}'
    )
    return path / "made.xml"


def write_xli(recording, path):
    """Compressed, limb leads as what the rules leave of them."""
    found = dict(zip(recording.leads, microvolts(recording).astype(int), strict=True))
    if {"I", "II", "III"} <= found.keys():
        one, two, three = found["I"], found["II"], found["III"]
        rules = {"III": two - one, "aVR": -((one + two) // 2), "aVL": (one - three) // 2, "aVF": (two + three) // 2}
        found |= {lead: rule - found[lead] for lead, rule in rules.items() if lead in found}
    return with_chunks(write_sierra(recording, path), b"".join(xli_chunk(row) for row in found.values()))


def with_chunks(path, chunks):
    content = base64.encodebytes(chunks).decode()
    head, _, tail = path.read_text().partition('compressmethod="Uncompressed"')
    path.write_text(f'{head}compressmethod="XLI"{tail.partition(">")[0]}>{content}</parsedwaveforms>{ENDS_SIERRA}')
    return path


def xli_chunk(samples):
    """Second differences, high bytes before low ones, in codes of 10 bits."""
    second = 2 * samples[1:-1] - samples[:-2] - samples[2:]
    stored = np.concatenate([samples[:2], 64 + second[1:], [64]])
    content = (stored >> 8 & 255).astype(np.uint8).tobytes() + (stored & 255).astype(np.uint8).tobytes()
    return packed(lzw_codes(content), second[0])


def packed(codes, first=0):
    bits = "".join(f"{code:010b}" for code in codes)
    n_bytes = -(-len(bits) // 8)
    return struct.pack("<ihh", n_bytes, 0, first) + int(bits.ljust(8 * n_bytes, "0"), 2).to_bytes(n_bytes, "big")


def lzw_codes(content):
    known, codes, current = {bytes([i]): i for i in range(256)}, [], b""
    for i in range(len(content)):
        longer = current + content[i : i + 1]
        if longer not in known:
            codes.append(known[current])
            if len(known) < 1023:
                known[longer] = len(known)
            longer = content[i : i + 1]
        current = longer
    return [*codes, known[current]]


def write_big_endian_dicom(recording, path):
    return write_dicom(recording, path, ExplicitVRBigEndian)


WRITERS = [
    write_hea,
    write_edf,
    write_csv,
    write_tsv,
    write_npz,
    write_npy,
    write_plain_mat,
    write_dicom,
    write_big_endian_dicom,
    write_aecg,
    write_muse,
    write_sierra,
    write_xli,
    *DEVICE_WRITERS,
]
MIXED = (write_dicom, write_big_endian_dicom, write_aecg)
"""Those whose leads are stated in several units."""

HELD = {write_atc: STANDARD_LEADS[:6]}
"""Leads of the formats that do not hold all twelve."""

DEFAULTS = FileDefaults(rate_hz=RATE_HZ, leads=STANDARD_LEADS, units="mV")


def defaults_for(path):
    return DEFAULTS if path.suffix in (".npy", ".mat") else FileDefaults()


def held(write_it, recording):
    """The recording as the format can hold it."""
    leads = [lead for lead in recording.leads if lead in HELD.get(write_it, recording.leads)]
    rows = [recording.leads.index(lead) for lead in leads]
    return replace(recording, signal=recording.signal[rows], leads=tuple(leads))


def read_all(paths, defaults=NO_DEFAULTS):
    """Every recording, read in this process; a failure in the place of one that cannot be read."""
    outcomes = read_recordings(paths, ReadOptions(defaults=defaults), sandbox=False)
    return [one if isinstance(one, ReadFailure) else one.recording for one in outcomes]
