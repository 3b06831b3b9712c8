"""Report the epochs of training jobs that run in other processes, by watching their checkpoints."""

import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Self

from ecgquorum.errors import StorageError, TrainingError
from ecgquorum.progress import Progress
from ecgquorum.training.checkpoint_store import CheckpointStore
from ecgquorum.training.history import HistoryRow, format_epoch

_EVERY_S = 2.0


class EpochWatch:
    """Logs every epoch that one of the jobs finishes while the block runs.

    names: identity -> the job's name in messages
    """

    def __init__(self, store: str | Path, names: Mapping[str, str], progress: Progress) -> None:
        kept = CheckpointStore(store)
        self._files = {identity: kept.checkpoint(identity) for identity in names}
        self._names, self._progress = names, progress
        self._changed: dict[str, str] = {}
        self._n_logged: dict[str, int] = {}
        self._looking, self._over = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._n_logged = {identity: len(rows) for identity, rows in self._new()}
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self.look()

    def _watch(self) -> None:
        while not self._over.wait(_EVERY_S):
            self.look()

    def look(self) -> None:
        """Log the epochs that are new."""
        with self._looking:
            for identity, rows in self._new():
                for row in rows[self._n_logged.get(identity, 0) :]:
                    self._progress.log(f"{self._names[identity]}  {format_epoch(row)}")
                self._n_logged[identity] = len(rows)

    def _new(self) -> Iterable[tuple[str, list[HistoryRow]]]:
        """Yield the history of each job whose checkpoint has changed since the last call."""
        for identity, file in self._files.items():
            try:
                if (now := file.stamp()) == self._changed.get(identity, ""):
                    continue
                self._changed[identity] = now
                state = file.load(identity)
            except (TrainingError, StorageError, OSError):  # it may be readable when it changes again
                continue
            if state:
                yield identity, state.history
