"""Read recordings and prepare them for a model: the one read path of predict, triage, cohort build, plot and desk."""

import hashlib
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ecgquorum.errors import RecordingError
from ecgquorum.preprocessing.input_spec import InputSpec, Signal, find_missing_leads, select_leads
from ecgquorum.preprocessing.measurements import NOT_MEASURED, Measurements, measure_recording
from ecgquorum.preprocessing.quality import Quality, assess_quality
from ecgquorum.recordings.acquisition import NOTHING_KNOWN, Acquisition
from ecgquorum.recordings.discovery import ReadFailure, RecordingPath, discover_recordings, open_recording
from ecgquorum.recordings.file_defaults import NO_DEFAULTS, FileDefaults
from ecgquorum.recordings.filetree import FileTree
from ecgquorum.recordings.readers import read_from
from ecgquorum.recordings.recording import Recording
from ecgquorum.recordings.remote_files import fetch_recordings
from ecgquorum.recordings.sandbox import LIMITS, Sandbox, SandboxLimits, describe_failure
from ecgquorum.recordings.wfdb_files import list_files

_PREVIEW_S, _PREVIEW_POINTS = 8.0, 800


@dataclass(frozen=True)
class ReadOptions:
    """How recordings are read.

    spec:            input of the model to prepare them for; None: only read them and assess their quality
    lead:            for a model of one lead, which lead to use
    defaults:        rate, leads and units of files that do not state them
    as_stated:       keep a stated unit even where it cannot be true
    identify:        keep what the file states about patient, time and device
    measure:         also measure PR, QRS and QT; heart rate and irregularity always are, for a model
    recording_bytes: also return the recording as it was read, of a long one no more than so many bytes from its start
    """

    spec: InputSpec | None = None
    lead: str | None = None
    defaults: FileDefaults = NO_DEFAULTS
    as_stated: bool = False
    recording_bytes: int = 0
    identify: bool = False
    measure: bool = False


ANY_RECORDING = ReadOptions()
"""Read recordings as they are, for no particular model."""


@dataclass(frozen=True)
class TracePreview:
    """Some seconds of one lead, for a small figure: microvolts at evenly spaced times.

    lead: with the worst finding of the guard, else II, else the first
    """

    microvolts: Sequence[int] = ()
    seconds: float = 0.0
    lead: str = ""
    start_s: float = 0.0


NO_PREVIEW = TracePreview()


@dataclass(frozen=True, eq=False)
class PreparedRecording:
    """A recording as a model expects it, with its quality.

    signal:  (lead, time) float32 with the leads, rate and scale of the model; millivolts as read if there is no model
    notices: what was done to it that a user should know: a corrected unit, missing leads
    sha256:  of its files
    measurements: heart rate, intervals, if there is a model
    whole:   the recording as it was read, if the options ask for it or there is no model
    """

    path: RecordingPath
    id: str
    signal: Signal
    seconds: float
    quality: Quality
    notices: tuple[str, ...] = ()
    sha256: str = ""
    preview: TracePreview = NO_PREVIEW
    acquisition: Acquisition = NOTHING_KNOWN
    whole: Recording | None = None
    measurements: Measurements = NOT_MEASURED

    @property
    def recording(self) -> Recording:
        """The recording as it was read."""
        if self.whole is None:
            raise RecordingError(f"{self.path}: the recording itself was not kept; set ReadOptions.recording_bytes")
        return self.whole


def read_recordings(
    paths: Iterable[str | Path | RecordingPath],
    options: ReadOptions = ANY_RECORDING,
    *,
    limits: SandboxLimits = LIMITS,
    sandbox: bool = True,
) -> Generator[PreparedRecording | ReadFailure, None, None]:
    """Read every recording in files, folders and archives, in order; one that cannot be read gives a `ReadFailure`.

    sandbox: read in worker processes within `limits`; False: in this process, for trusted files
    """
    located = [found for path in paths for found in _locate(path)]
    readable = [found for found in located if isinstance(found, RecordingPath)]
    with fetch_recordings(readable) as here:
        if sandbox and here:
            with reading_sandbox(options, limits) as workers:
                yield from _merge(located, workers.run(here))
        else:
            yield from _merge(located, (prepare_recording(options, path) for path in here))


def reading_sandbox(options: ReadOptions, limits: SandboxLimits = LIMITS) -> Sandbox[PreparedRecording | ReadFailure]:
    """Worker processes that read and prepare recordings, for a caller that keeps them between batches."""
    return Sandbox(prepare_recording, (options,), limits, ("neurokit2",) if options.measure else ())


def _locate(path: str | Path | RecordingPath) -> Iterable[RecordingPath | ReadFailure]:
    return [path] if isinstance(path, RecordingPath) else discover_recordings([path])


def _merge(
    located: Iterable[RecordingPath | ReadFailure], outcomes: Iterator[PreparedRecording | ReadFailure]
) -> Iterator[PreparedRecording | ReadFailure]:
    """The outcomes in order, with the failures of discovery in their places."""
    for found in located:
        yield found if isinstance(found, ReadFailure) else next(outcomes)


def prepare_recording(options: ReadOptions, path: RecordingPath) -> PreparedRecording | ReadFailure:
    """Read, hash, assess and prepare one recording, in this process; this is what runs in the sandbox."""
    digest = ""
    try:
        tree = open_recording(path)
        digest = hash_files(tree, path.name)
        recording = read_from(tree, path.name, options.defaults, as_stated=options.as_stated)
        return _prepare(recording, options, path, digest)
    except Exception as error:  # whatever a parser raises must not stop the batch
        return describe_failure(error, path, digest)


def _prepare(recording: Recording, options: ReadOptions, path: RecordingPath, digest: str) -> PreparedRecording:
    spec, whole = options.spec, None
    chosen = recording if spec is None else select_leads(recording, spec.leads, options.lead)
    if options.recording_bytes:
        whole = _cut(recording, options.recording_bytes)
    elif spec is None:
        whole = recording
    quality = assess_quality(chosen)
    return PreparedRecording(
        path,
        recording.id,
        recording.signal if spec is None else spec.fit(recording, options.lead),
        recording.seconds,
        quality,
        tuple(_notices(chosen)),
        digest,
        _preview(chosen, quality),
        recording.acquisition if options.identify else NOTHING_KNOWN,
        whole,
        measure_recording(chosen, recording if options.measure else None) if spec else NOT_MEASURED,
    )


def _notices(recording: Recording) -> Iterator[str]:
    yield from recording.notes
    if recording.correction:
        yield f"wrong units: {recording.correction}"
    if missing := find_missing_leads(recording):
        yield f"mostly missing, set to zero: {', '.join(missing)}"


def hash_files(tree: FileTree, name: str) -> str:
    """SHA-256 over the files of a recording, one after another."""
    digest = hashlib.sha256()
    files = [file for file in list_files(tree, name) if tree.size(file) is not None]
    if not files:
        raise RecordingError(f"{tree.where(name)}: expected a recording, found no such file")
    for file in files:
        with tree.open(file) as stream:
            while chunk := stream.read(1 << 20):
                digest.update(chunk)
    return digest.hexdigest()


def _preview(recording: Recording, quality: Quality) -> TracePreview:
    """Of the first seconds of the lead that a person should look at first."""
    worst = [one.lead for one in sorted(quality.findings, key=lambda one: -one.severity)]
    lead = next(name for name in (*worst, "II", recording.leads[0]) if name in recording.leads)
    return preview_row(recording.signal[recording.leads.index(lead)], recording.rate_hz, lead)


def preview_row(millivolts: Signal, rate_hz: float, lead: str, start_s: float = 0.0) -> TracePreview:
    """Some seconds of a lead, (time,), from `start_s` on."""
    first = round(start_s * rate_hz)
    row = np.nan_to_num(millivolts[first : first + round(_PREVIEW_S * rate_hz)], posinf=0.0, neginf=0.0)
    points = np.linspace(0, len(row) - 1, min(len(row), _PREVIEW_POINTS)).round().astype(int)
    microvolts = np.clip(row[points] * 1000, -1e7, 1e7).round().astype(int)
    return TracePreview(tuple(microvolts.tolist()), round(len(row) / rate_hz, 4), lead, start_s)


def _cut(recording: Recording, n_bytes: int) -> Recording:
    """The start of the recording that fits `n_bytes`, all leads alike."""
    n_samples = max(1, n_bytes // (recording.signal.itemsize * len(recording.leads)))
    return recording if recording.n_samples <= n_samples else replace(recording, signal=recording.signal[:, :n_samples])
