"""Files in, answers out."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ecgquorum.ensemble.ensemble import Ensemble
from ecgquorum.errors import FittingError
from ecgquorum.preprocessing.input_spec import Signal, find_missing_leads, select_leads, split_windows
from ecgquorum.recordings import Recording, Unreadable, read_all
from ecgquorum.recordings.file_defaults import NO_DEFAULTS, FileDefaults

_AT_ONCE = 32


def predict_files(
    ensemble: Ensemble, paths: Iterable[str | Path], lead: str | None = None, hints: FileDefaults = NO_DEFAULTS
) -> Iterator[dict[str, Any] | Unreadable]:
    """Classify every recording that `paths` name: files, folders, archives.

    Yields one plain dictionary a recording, as `Prediction.rows` gives it, with its source and a notice where it was
    classified in windows or read in another unit than its file states. One that cannot be read or fitted comes as
    `Unreadable`, and the rest goes on.

    lead:  for a model of one lead, which of a recording's leads to take
    hints: rate, leads and units of files that carry samples alone
    """
    pending: list[tuple[Recording, Signal] | Unreadable] = []
    readable = 0
    for recording in read_all(paths, hints):
        if isinstance(recording, Unreadable):
            pending.append(recording)
        else:
            try:
                chosen = select_leads(recording, ensemble.input.leads, lead)
                pending.append((chosen, ensemble.input.fit(recording, lead)))
                readable += 1
            except FittingError as error:
                pending.append(Unreadable(recording.source, str(error)))
        if readable == _AT_ONCE:
            yield from _answered(ensemble, pending)
            pending, readable = [], 0
    yield from _answered(ensemble, pending)


def _answered(
    ensemble: Ensemble, pending: list[tuple[Recording, Signal] | Unreadable]
) -> Iterator[dict[str, Any] | Unreadable]:
    """What is pending, in its order, every recording replaced by its answer."""
    fitted = [entry for entry in pending if not isinstance(entry, Unreadable)]
    prediction = ensemble.predict_prepared([recording.id for recording, _ in fitted], [signal for _, signal in fitted])
    rows = iter(prediction.rows())
    for entry in pending:
        if isinstance(entry, Unreadable):
            yield entry
            continue
        (recording, signal), window_s = entry, ensemble.input.window_s
        n_windows = len(split_windows(signal, ensemble.input.n_window))
        notices = [f"the mean of {n_windows} windows of {window_s:g} s"] if n_windows > 1 else []
        if recording.correction:
            notices.append(f"wrong units: {recording.correction}")
        if lost := find_missing_leads(recording):
            notices.append(f"mostly missing, so taken as zero: {', '.join(lost)}")
        yield next(rows) | {"source": recording.source, "notice": "; ".join(notices) or None}
