"""Trainings that go on elsewhere, seen through the store that they write to."""

import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Self

from ecgquorum.errors import TrainingError
from ecgquorum.training.checkpoint import Checkpoint
from ecgquorum.training.checkpoint_store import MemberStore
from ecgquorum.training.loop import Row
from ecgquorum.training.progress import epoch_line

_EVERY_S = 2.0


class EpochWatch:
    """Tells of the epochs that trainings finish, for as long as the block runs.

    names: identity -> what to call the training
    """

    def __init__(self, store: Path, names: Mapping[str, str], told: Callable[[str], None]) -> None:
        self._paths = {identity: MemberStore(store).checkpoint_path(identity) for identity in names}
        self._names, self._told = names, told
        self._changed: dict[str, int] = {}
        self._n_told: dict[str, int] = {}
        self._looking, self._over = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._n_told = {identity: len(rows) for identity, rows in self._new()}
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
        """Tell of what is new."""
        with self._looking:
            for identity, rows in self._new():
                for row in rows[self._n_told.get(identity, 0) :]:
                    self._told(f"{self._names[identity]}  {epoch_line(row)}")
                self._n_told[identity] = len(rows)

    def _new(self) -> Iterable[tuple[str, list[Row]]]:
        """The history of each training that has changed since this was asked last."""
        for identity, path in self._paths.items():
            if (now := _changed(path)) != self._changed.get(identity, 0):
                self._changed[identity] = now
                try:
                    history = Checkpoint.load(path, identity).history
                except (TrainingError, OSError):  # who cannot be read now may be when it has changed again
                    continue
                yield identity, history


def _changed(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
