"""The worker: a process that classifies waiting recordings until the desk that started it ends."""

import dataclasses
import errno
import logging
import multiprocessing
import os
import secrets
import signal
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
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
from ecgquorum.recordings.recording import one_line
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
_BATCH, _BATCH_BYTES = 32, 16 << 20
_IDLE_S = 0.5
_JOIN_S = 5.0
_MAX_PAUSE_S = 60.0
_OUTAGE_S = 5.0
_log = logging.getLogger(__name__)


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
    """Classify waiting recordings until the other end of `alive` is closed; a database that is down is waited for.

    So is space on a full disk.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if settings.workers > 1:
        torch.set_num_threads(max(1, torch.get_num_threads() // settings.workers))
    desk = Desk(settings)
    name = f"{socket.gethostname()[:32]}-{os.getpid()}-{secrets.token_hex(4)}"
    disk_is_full = False
    with worker_readers(desk) as readers:
        while _desk_is_alive(alive, 0.0):
            try:
                n_done, pause_s = classify_some(desk, readers, name), _IDLE_S
                desk.outage.end()
                disk_is_full = False
            except SQLAlchemyError as error:
                if not is_outage(error):
                    raise
                n_done, pause_s = 0, _OUTAGE_S
                desk.outage.begin(error)
            except OSError as error:
                if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                    raise
                n_done, pause_s = 0, _OUTAGE_S
                _give_back(desk, name)
                if not disk_is_full:
                    _log.error("the worker waits for space on the disk: %s", one_line(error))
                disk_is_full = True
            if n_done == 0 and not _desk_is_alive(alive, pause_s):
                break
    desk.close()


def _give_back(desk: Desk, worker: str) -> None:
    """Release the claims of this worker; on a full disk the database may fail too, and they expire."""
    with suppress(SQLAlchemyError), desk.store.write_session() as session:
        queue.release_claims(session, worker)


def worker_readers(desk: Desk) -> Sandbox[Outcome]:
    """The processes that read recordings for a worker."""
    options = ReadOptions(desk.ensemble.input, desk.settings.lead, recording_bytes=TRACE_BYTES, identify=True)
    return reading_sandbox(options)


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
        rows = queue.claim_recordings(session, store.now(), until, worker, _BATCH, _BATCH_BYTES)
        files = recordings.list_files_of(session, [row.id for row in rows])
    with ExitStack() as stack:
        named = [[NamedFile(one.name, one.ending, one.sha256 or "") for one in files[row.id]] for row in rows]
        paths = [stack.enter_context(desk.files.lay_out(one)) for one in named]
        outcomes = list(_read(desk, readers, worker, paths))
    results = decide(desk.ensemble, Rules(desk.policy), outcomes)
    results = [rename_result(result, path, row) for result, path, row in zip(results, paths, rows, strict=True)]
    if not desk.settings.identify:
        results = [dataclasses.replace(result, acquisition=NOTHING_KNOWN) for result in results]
    traces = [store_trace(desk, row.id, outcome) for row, outcome in zip(rows, outcomes, strict=True)]
    desk.files.sync_traces()
    _store_results(desk, worker, list(zip(results, traces, strict=True)))
    return len(rows)


def _read(desk: Desk, readers: Sandbox[Outcome], worker: str, paths: Sequence[RecordingPath]) -> Iterator[Outcome]:
    """Read the recordings; files that take long must not end the claim on the others."""
    claimed = time.monotonic()
    for outcome in readers.run(paths):
        if time.monotonic() - claimed > desk.settings.worker_claim_s / 4:
            with desk.store.write_session() as session:
                queue.extend_claims(session, worker, desk.store.after(desk.settings.worker_claim_s))
            claimed = time.monotonic()
        yield outcome


def _store_results(desk: Desk, worker: str, found: Sequence[tuple[Result, StoredTrace | None]]) -> None:
    """Store a batch in one transaction; samples of what was erased meanwhile are removed."""
    store = desk.store
    with store.write_session() as session:
        waiting = {row.id: row for row in queue.read_claimed(session, worker)}
        for result, trace in found:
            queue.store_result(session, store.now(), worker, result, trace, desk.audit_sample)
            if result.id not in waiting and session.get(RecordingRow, result.id) is None:
                desk.files.trace_path(result.id).unlink(missing_ok=True)


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
    """Store the samples for the viewer, before `FileStore.sync_traces`; None if the recording could not be read."""
    if not isinstance(outcome, PreparedRecording) or outcome.whole is None:
        return None
    whole = outcome.whole
    desk.files.store_trace(recording_id, whole.signal)
    known = outcome.acquisition
    return StoredTrace(whole.rate_hz, whole.leads, whole.n_samples, desk.pseudonym(known.patient_id), known.time or "")
