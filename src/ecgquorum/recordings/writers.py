"""Write recordings as WFDB, EDF, CSV or NPZ, by the suffix of the file."""

import io
import re
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ecgquorum._internal.atomic import write_atomic
from ecgquorum.errors import RecordingError
from ecgquorum.recordings.recording import Recording, one_line

_RECORD_NAME = re.compile(r"[-A-Za-z0-9_]+")
_EDF_RECORD_BYTES = 61440
_EDF_FIELD = 8


def write(recording: Recording, path: str | Path, *, overwrite: bool = False) -> Path:
    """Write the recording to `path`, in the format of its suffix: .hea, .edf, .csv or .npz.

    WFDB and EDF hold 16-bit samples: values are rounded to 1/65000 of each lead's range. EDF holds whole data records:
    if the length is no multiple of one, the last sample is repeated up to the next second.

    overwrite: replace a file that exists; otherwise that is an error
    """
    path = Path(path)
    writer = WRITERS.get(path.suffix.lower())
    if writer is None:
        raise RecordingError(
            f"{path}: expected a name that ends in {', '.join(WRITERS)}, found {path.suffix or 'no suffix'}"
        )
    files = [path, path.with_suffix(".dat")] if path.suffix.lower() == ".hea" else [path]
    existing = [file for file in files if file.exists()]
    if existing and not overwrite:
        raise RecordingError(f"{existing[0]}: the file exists already; choose another name or overwrite it (--force)")
    try:
        writer(recording, path)
    except (RecordingError, OSError):
        raise
    except Exception as error:
        raise RecordingError(
            f"{path}: expected a recording that {path.suffix} can hold, found: {one_line(error)}; write .npz"
        ) from error
    return path


def _write_wfdb(recording: Recording, path: Path) -> None:
    import wfdb  # imports pandas

    if not _RECORD_NAME.fullmatch(path.stem):
        raise RecordingError(
            f"{path}: expected a WFDB record's name of letters, digits, - and _, found {path.stem!r}; choose another"
        )
    signal = np.where(np.isfinite(recording.signal), recording.signal, np.nan).astype(np.float64)
    empty = [lead for lead, row in zip(recording.leads, signal, strict=True) if np.isnan(row).all()]
    if empty:
        raise RecordingError(f"{path}: expected samples on every lead, found none on {', '.join(empty)}; write .npz")
    if not all(map(str.isascii, recording.leads)):
        raise RecordingError(f"{path}: expected leads in ASCII, found {', '.join(recording.leads)}; write .csv or .npz")

    with tempfile.TemporaryDirectory(prefix="ecgquorum-") as scratch:
        wfdb.wrsamp(
            path.stem,
            fs=recording.rate_hz,
            units=["mV"] * len(recording.leads),
            sig_name=list(recording.leads),
            p_signal=signal.T,
            fmt=["16"] * len(recording.leads),
            write_dir=scratch,
        )
        for ending in (".dat", ".hea"):  # the header last, so that it never exists without its signal
            write_atomic(path.with_suffix(ending), (Path(scratch) / f"{path.stem}{ending}").read_bytes())


def _write_edf(recording: Recording, path: Path) -> None:
    import edfio

    signal = recording.signal.astype(np.float64)
    if not np.isfinite(signal).all():
        raise RecordingError(
            f"{path}: expected no missing samples, which EDF cannot hold, found some; write .npz or .hea"
        )
    n_record = _record_samples(signal.shape[1], recording.rate_hz, len(signal))
    if n_record is None:
        n_record = round(recording.rate_hz)
        signal = np.pad(signal, ((0, 0), (0, -signal.shape[1] % n_record)), mode="edge")
    signals = [
        edfio.EdfSignal(
            row, recording.rate_hz, label=lead[:16], physical_dimension="mV", physical_range=_physical_range(row)
        )
        for row, lead in zip(signal, recording.leads, strict=True)
    ]
    target = io.BytesIO()
    edfio.Edf(signals, data_record_duration=n_record / recording.rate_hz).write(target)
    write_atomic(path, target.getvalue())


def _record_samples(n_samples: int, rate_hz: float, n_leads: int) -> int | None:
    """Samples of a lead in a data record: the largest divisor of the length whose duration fits the header field."""
    most = min(n_samples, _EDF_RECORD_BYTES // (2 * n_leads))
    fitting = (n for n in range(most, 0, -1) if n_samples % n == 0 and _fits_field(n / rate_hz))
    return next(fitting, None)


def _fits_field(seconds: float) -> bool:
    return len(f"{seconds:.10f}".rstrip("0").rstrip(".")) <= _EDF_FIELD


def _physical_range(row: np.ndarray) -> tuple[float, float]:
    """A symmetric range around all samples that can be written in eight characters."""
    reach = max(float(np.abs(row).max()), 1e-3)
    scale = 10.0 ** (4 - np.ceil(np.log10(reach)))
    return -float(np.ceil(reach * scale) / scale), float(np.ceil(reach * scale) / scale)


def _write_csv(recording: Recording, path: Path) -> None:
    text = io.StringIO()
    text.write(",".join(["time (s)", *(f"{lead} (mV)" for lead in recording.leads)]) + "\n")
    times = np.arange(recording.n_samples) / recording.rate_hz
    np.savetxt(text, np.column_stack([times, recording.signal.T.astype(np.float64)]), fmt="%.9g", delimiter=",")
    write_atomic(path, text.getvalue())


def _write_npz(recording: Recording, path: Path) -> None:
    target = io.BytesIO()
    np.savez_compressed(
        target,
        signal=recording.signal,
        rate_hz=np.float64(recording.rate_hz),
        leads=np.array(recording.leads),
        units=np.array("mV"),
    )
    write_atomic(path, target.getvalue())


WRITERS: dict[str, Callable[[Recording, Path], None]] = {
    ".hea": _write_wfdb,
    ".edf": _write_edf,
    ".csv": _write_csv,
    ".npz": _write_npz,
}
"""Suffix -> the function that writes it."""
