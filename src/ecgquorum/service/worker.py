"""The worker: a process that classifies waiting recordings until the desk that started it ends."""

import dataclasses
import multiprocessing
import os
import secrets
import signal
import socket
import threading
from contextlib import ExitStack
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

import torch
from sqlalchemy.exc import SQLAlchemyError

from ecgquorum.ensemble.predict_files import Outcome
from ecgquorum.ensemble.result import Result
from ecgquorum.preprocessing.prepare import PreparedRecording, ReadOptions, reading_sandbox
from ecgquorum.preprocessing.quality import Quality
from ecgquorum.recordings.acquisition import NOTHING_KNOWN
from ecgquorum.recordings.discovery import RecordingPath, printable
from ecgquorum.recordings.sandbox import Sandbox
from ecgquorum.service.desk import Desk
from ecgquorum.service.files import NamedFile
from ecgquorum.service.outage import is_outage
from ecgquorum.service.settings import Settings
from ecgquorum.service.store import queue, recordings
from ecgquorum.service.store.queue import StoredTrace
from ecgquorum.service.store.tables import RecordingRow
from ecgquorum.triage.decide import Rules, decide

TRACE_BYTES = 64 << 20
_BATCH = 8
_IDLE_S = 0.5
_JOIN_S = 5.0
_MAX_PAUSE_S = 60.0
_OUTAGE_S = 5.0


class Workers:
    """Handles of the worker processes; a process that dies is restarted."""

    def __init__(self, settings: Settings) -> None:
        self._workers = [_Worker(settings) for _ in range(settings.workers)]

    @property
    def n_alive(self) -> int:
        """Number of processes that are running."""
        return sum(worker.is_alive for worker in self._workers)

    @property
    def n_restarts(self) -> int:
        """How often a process had to be started again."""
        return sum(worker.n_restarts for worker in self._workers)

    def stop(self) -> None:
        """Let the workers finish their batches, but kill them after a few seconds."""
        for worker in self._workers:
            worker.ask_to_stop()
        for worker in self._workers:
            worker.join()


class _Worker:
    """Handle of one process."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._stopping = threading.Event()
        self.n_restarts = 0
        self._start()
        self._watch = threading.Thread(target=self._restart_if_dead, name="worker-watch", daemon=True)
        self._watch.start()

    @property
    def is_alive(self) -> bool:
        return self._process.is_alive()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        theirs, ours = context.Pipe(duplex=False)
        process = context.Process(target=run_worker, args=(self._settings, theirs), name="ecgquorum-worker")
        process.start()
        theirs.close()
        self._ours: Connection = ours
        self._process: BaseProcess = process

    def _restart_if_dead(self) -> None:
        pause_s = _IDLE_S
        while not self._stopping.wait(pause_s):
            if self._process.is_alive():
                pause_s = _IDLE_S
            else:
                pause_s = min(2 * pause_s, _MAX_PAUSE_S)  # a worker that cannot start must not keep the machine busy
                self._ours.close()
                self.n_restarts += 1
                self._start()

    def ask_to_stop(self) -> None:
        self._stopping.set()
        self._watch.join()
        self._ours.close()

    def join(self) -> None:
        self._process.join(_JOIN_S)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


def run_worker(settings: Settings, alive: Connection) -> None:
    """Classify waiting recordings until the other end of `alive` is closed; a database that is down is waited for."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if settings.workers > 1:
        torch.set_num_threads(max(1, torch.get_num_threads() // settings.workers))
    desk = Desk(settings)
    name = f"{socket.gethostname()[:32]}-{os.getpid()}-{secrets.token_hex(4)}"
    options = ReadOptions(desk.ensemble.input, settings.lead, recording_bytes=TRACE_BYTES, identify=True)
    with reading_sandbox(options) as readers:
        while _desk_is_alive(alive, 0.0):
            try:
                n_done, pause_s = classify_some(desk, readers, name), _IDLE_S
            except SQLAlchemyError as error:
                if not is_outage(error):
                    raise
                n_done, pause_s = 0, _OUTAGE_S
                desk.outage.begin(error)
            else:
                desk.outage.end()
            if n_done == 0 and not _desk_is_alive(alive, pause_s):
                break
    desk.close()


def _desk_is_alive(alive: Connection, timeout_s: float) -> bool:
    """Whether the desk still runs; its end of the pipe closes when it ends."""
    return not alive.poll(timeout_s)


def classify_some(desk: Desk, readers: Sandbox[Outcome], worker: str) -> int:
    """Classify a batch of waiting recordings; returns their number."""
    store = desk.store
    with store.read_session() as session:
        if not queue.has_waiting(session, store.now()):
            return 0
    with store.write_session() as session:
        until = store.after(desk.settings.worker_claim_s)
        rows = queue.claim_recordings(session, store.now(), until, worker, _BATCH)
        files = [
            [NamedFile(file.name, file.ending, file.sha256 or "") for file in recordings.list_files(session, row.id)]
            for row in rows
        ]
    with ExitStack() as stack:
        paths = [stack.enter_context(desk.files.lay_out(one)) for one in files]
        outcomes = list(readers.run(paths))
    results = decide(desk.ensemble, Rules(desk.policy), outcomes)
    results = [rename_result(result, path, row) for result, path, row in zip(results, paths, rows, strict=True)]
    if not desk.settings.identify:
        results = [dataclasses.replace(result, acquisition=NOTHING_KNOWN) for result in results]
    traces = [store_trace(desk, row.id, outcome) for row, outcome in zip(rows, outcomes, strict=True)]
    with store.write_session() as session:
        for result, trace in zip(results, traces, strict=True):
            queue.store_result(session, store.now(), worker, result, trace, desk.audit_sample)
            if session.get(RecordingRow, result.id) is None:  # it was erased meanwhile
                desk.files.trace_path(result.id).unlink(missing_ok=True)
    return len(rows)


def rename_result(result: Result, path: RecordingPath, row: RecordingRow) -> Result:
    """Replace the path in a result by the id and the name of the recording at the desk."""

    def clean(text: str) -> str:
        return printable(text.replace(str(path), row.name).replace(f"{path.tree}{os.sep}", ""))

    findings = tuple(dataclasses.replace(one, detail=clean(one.detail)) for one in result.quality.findings)
    return dataclasses.replace(
        result,
        id=row.id,
        source=row.name,
        reason=clean(result.reason),
        quality=Quality(findings),
        sha256=row.identity or "",
    )


def store_trace(desk: Desk, recording_id: str, outcome: Outcome) -> StoredTrace | None:
    """Store the samples for the viewer; None if the recording could not be read."""
    if not isinstance(outcome, PreparedRecording) or outcome.whole is None:
        return None
    whole = outcome.whole
    desk.files.store_trace(recording_id, whole.signal)
    known = outcome.acquisition
    return StoredTrace(whole.rate_hz, whole.leads, whole.n_samples, desk.pseudonym(known.patient_id), known.time or "")
