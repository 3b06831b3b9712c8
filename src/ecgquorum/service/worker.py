"""The worker: a process that classifies what waits, by triage's own means, until the desk that started it is gone."""

import multiprocessing
import os
import secrets
import signal
import socket
import threading
from contextlib import ExitStack
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from ecgquorum.ensemble.predict_files import Outcome
from ecgquorum.ensemble.result import Result
from ecgquorum.preprocessing.prepare import PreparedRecording, ReadOptions, reading_sandbox
from ecgquorum.recordings.discovery import RecordingPath
from ecgquorum.recordings.sandbox import Sandbox
from ecgquorum.service.desk import Desk
from ecgquorum.service.files import NamedFile
from ecgquorum.service.settings import Settings
from ecgquorum.service.store import queue, recordings
from ecgquorum.service.store.queue import Trace
from ecgquorum.triage.decide import decide

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
    options = ReadOptions(desk.ensemble.input, settings.lead, recording_bytes=TRACE_BYTES)
    with reading_sandbox(options) as readers:
        while _is_held(alive, 0.0):
            if classify_some(desk, readers, name) == 0 and not _is_held(alive, _IDLE_S):
                break
    desk.close()


def _is_held(alive: Connection, patience_s: float) -> bool:
    """Whether the desk is still there; its end of the pipe says nothing, and closes when it dies."""
    return not alive.poll(patience_s)


def classify_some(desk: Desk, readers: Sandbox[Outcome], worker: str) -> int:
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
        outcomes = list(readers.run(places))
    results = decide(desk.ensemble, desk.policy, outcomes)
    answers = [_database_row(result, place, row.name) for result, place, row in zip(results, places, rows, strict=True)]
    traces = [_kept_trace(desk, row.id, outcome) for row, outcome in zip(rows, outcomes, strict=True)]
    with store.writing() as session:
        for row, answer, trace in zip(rows, answers, traces, strict=True):
            queue.answer(session, store.now(), worker, row.id, desk.model_sha256, answer, trace, desk.draw)
    return len(rows)


def _database_row(result: Result, path: RecordingPath, name: str) -> dict[str, Any]:
    """The columns of the result, with the uploader's name for the recording in place of our path."""

    def clean(text: str) -> str:
        text = text.replace(str(path), name).replace(f"{path.tree}{os.sep}", "")
        return "".join(c if c.isprintable() else "?" for c in text)

    return {
        "class": result.label,
        "decision": result.decision,
        "reason": clean(result.reason),
        "uncertainty": result.uncertainty,
        "probability": result.probability,
        "calibrated_probability": result.probability,
        "probabilities": dict(result.probabilities),
        "member_probabilities": [dict(probs) for probs in result.raw_member_probabilities],
        "quality": str(result.quality.severity),
        "quality_reasons": list(map(clean, result.quality.reasons)),
        "seconds": result.seconds,
    }


def _kept_trace(desk: Desk, recording_id: str, outcome: Outcome) -> Trace | None:
    if not isinstance(outcome, PreparedRecording) or outcome.whole is None:
        return None
    whole = outcome.whole
    desk.files.keep_trace(recording_id, whole.signal)
    return Trace(whole.rate_hz, whole.leads, whole.n_samples)
