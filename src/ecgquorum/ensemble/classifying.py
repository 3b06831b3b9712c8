"""Files in, answers out."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ecgquorum.ensemble.ensemble import Ensemble
from ecgquorum.errors import FittingError
from ecgquorum.recordings import Recording, Unreadable, read_all

_AT_ONCE = 32


def classify_files(
    ensemble: Ensemble, paths: Iterable[str | Path], lead: str | None = None
) -> Iterator[dict[str, Any] | Unreadable]:
    """Classify every recording that `paths` name: files, folders, archives.

    Yields one plain dictionary a recording, as `Prediction.rows` gives it, with its source and a notice where only a
    part of it was used. One that cannot be read or fitted comes as `Unreadable`, and the rest goes on.
    """
    waiting: list[Recording] = []
    for recording in read_all(paths):
        if isinstance(recording, Unreadable):
            yield recording
            continue
        try:
            ensemble.spec.fit(recording, lead)
        except FittingError as error:
            yield Unreadable(recording.source, str(error))
            continue
        waiting.append(recording)
        if len(waiting) == _AT_ONCE:
            yield from _classified(ensemble, waiting, lead)
            waiting.clear()
    yield from _classified(ensemble, waiting, lead)


def _classified(ensemble: Ensemble, recordings: list[Recording], lead: str | None) -> Iterator[dict[str, Any]]:
    for recording, row in zip(recordings, ensemble.predict(recordings, lead).rows(), strict=True):
        window_s = ensemble.spec.window_s
        cut = recording.seconds > window_s + 1 / recording.rate_hz
        notice = f"only the first {window_s:g} s of {recording.seconds:.1f} s were used" if cut else None
        yield row | {"source": recording.source, "notice": notice}
