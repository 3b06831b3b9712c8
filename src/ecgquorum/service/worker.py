"""The worker: a process that classifies what waits, by triage's own means, until the desk that started it is gone."""

import multiprocessing
import os
import secrets
import signal
import socket
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

from ecgquorum.errors import EcgQuorumError
from ecgquorum.recordings.discovery import ReadFailure, RecordingPath
from ecgquorum.recordings.sandbox import Outcome, PreparedRecording, Readers, ReadOptions
from ecgquorum.service.desk import Desk
from ecgquorum.service.files import NamedFile
from ecgquorum.service.settings import Settings
from ecgquorum.service.store import queue, recordings
from ecgquorum.service.store.queue import Trace
from ecgquorum.triage.journal import Row
from ecgquorum.triage.rows import answered

TRACE_BYTES = 64 << 20
_AT_ONCE = 8
_IDLE_S = 0.5
_JOIN_S = 5.0
_LONGEST_PAUSE_S = 60.0


class Worker:
    """The worker's process as the desk sees it; one that dies is followed by another."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._ending = threading.Event()
        self._start()
        self._watch = threading.Thread(target=self._follow, name="worker-watch", daemon=True)
        self._watch.start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        theirs, ours = context.Pipe(duplex=False)
        process = context.Process(target=work, args=(self._settings, theirs), name="ecgquorum-worker")
        process.start()
        theirs.close()
        self._ours: Connection = ours
        self._process: BaseProcess = process

    def _follow(self) -> None:
        pause_s = _IDLE_S
        while not self._ending.wait(pause_s):
            if self._process.is_alive():
                pause_s = _IDLE_S
            else:
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)  # one that cannot start should not keep the machine busy
                self._ours.close()
                self._start()

    def stop(self) -> None:
        """Have it finish what it does, but not wait for it longer than a moment."""
        self._ending.set()
        self._watch.join()
        self._ours.close()
        self._process.join(_JOIN_S)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


def work(settings: Settings, alive: Connection) -> None:
    """Classify what waits until nobody holds the other end of `alive`."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    desk = Desk(settings)
    name = f"{socket.gethostname()[:32]}-{os.getpid()}-{secrets.token_hex(4)}"
    wanted = ReadOptions(desk.ensemble.input, settings.lead, whole_bytes=TRACE_BYTES)
    with Readers(wanted) as readers:
        while _is_held(alive, 0.0):
            if classify_some(desk, readers, name) == 0 and not _is_held(alive, _IDLE_S):
                break
    desk.close()


def _is_held(alive: Connection, patience_s: float) -> bool:
    """Whether the desk is still there; its end of the pipe says nothing, and closes when it dies."""
    return not alive.poll(patience_s)


def classify_some(desk: Desk, readers: Readers, worker: str) -> int:
    """Classify a few of the recordings that wait; gives how many there were."""
    store = desk.store
    with store.reading() as session:
        if not queue.anything_waits(session, store.now()):
            return 0
    with store.writing() as session:
        until = store.after(desk.settings.worker_claim_s)
        rows = queue.claim(session, store.now(), until, worker, _AT_ONCE)
        files = [
            [NamedFile(file.name, file.ending, file.sha256 or "") for file in recordings.files_of(session, row.id)]
            for row in rows
        ]
    with ExitStack() as stack:
        places = [stack.enter_context(desk.files.lay_out(one)) for one in files]
        outcomes = list(readers.outcomes(places))
    answers = [
        _told(answer, place, row.name)
        for answer, place, row in zip(_answers(desk, outcomes), places, rows, strict=True)
    ]
    traces = [_kept_trace(desk, row.id, outcome) for row, outcome in zip(rows, outcomes, strict=True)]
    with store.writing() as session:
        for row, answer, trace in zip(rows, answers, traces, strict=True):
            queue.answer(session, store.now(), worker, row.id, desk.model_sha256, answer, trace, desk.draw)
    return len(rows)


def _answers(desk: Desk, outcomes: Sequence[Outcome]) -> list[Row]:
    """What triage says of each; one that the model cannot compute with is unreadable, and costs the others nothing."""
    try:
        return answered(desk.ensemble, desk.policy, outcomes)
    except EcgQuorumError as error:
        if len(outcomes) == 1:
            lost = ReadFailure(outcomes[0].place, str(error))
            return answered(desk.ensemble, desk.policy, [lost])
        return [row for outcome in outcomes for row in _answers(desk, [outcome])]


def _told(row: Row, place: RecordingPath, name: str) -> Row:
    """The answer, with the uploader's name for the recording where a message has our place of it."""
    reason = row["reason"].replace(str(place), name).replace(f"{place.tree}{os.sep}", "")
    return row | {"reason": "".join(c if c.isprintable() else "?" for c in reason)}


def _kept_trace(desk: Desk, recording_id: str, outcome: Outcome) -> Trace | None:
    if not isinstance(outcome, PreparedRecording) or outcome.whole is None:
        return None
    whole = outcome.whole
    desk.files.keep_trace(recording_id, whole.signal)
    return Trace(whole.rate_hz, whole.leads, whole.n_samples)
