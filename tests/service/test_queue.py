"""Batches of the worker: limited by size, extended while they take long, given back on a full disk."""

import errno
import signal

import httpx

from ecgquorum.service import worker
from ecgquorum.service.store import queue
from ecgquorum.service.store.recordings import IncomingFile
from ecgquorum.service.store.tables import RecordingRow
from ecgquorum.service.worker import classify_some

from .conftest import listening, put
from .test_growth import counting
from .test_store import admit, sha, single


def claim(store, worker_name="w", most_bytes=None, limit=8):
    with store.write_session() as session:
        rows = queue.claim_recordings(session, store.now(), store.after(60), worker_name, limit, most_bytes)
        return [row.id for row in rows]


def test_a_batch_has_files_of_limited_size_and_a_large_one_comes_alone(store):
    sizes = {"a": 60, "b": 60, "c": 500, "d": 10, "e": 10}
    ids = [admit(store, IncomingFile(sha(one), size, f"{one}.edf", ".edf"))[0] for one, size in sizes.items()]
    batches = [claim(store, most_bytes=125) for _ in range(3)]
    assert batches == [ids[:2], ids[2:3], ids[3:]]


def test_claims_are_extended_and_given_back(store, clock):
    (one, *_) = admit(store, single("a"))
    assert claim(store, "busy") == [one]
    clock.passes(50)
    with store.write_session() as session:
        queue.extend_claims(session, "busy", store.after(60))
    clock.passes(50)
    assert claim(store, "other") == []
    with store.write_session() as session:
        queue.release_claims(session, "busy")
    assert claim(store, "other") == [one]
    with store.read_session() as session:
        row = session.get_one(RecordingRow, one)
        assert (row.worker, row.attempts) == ("other", 1), "what was given back was not tried"


def test_a_batch_needs_as_many_statements_for_many_recordings_as_for_few(make_desk, examples, readers):
    counts = []
    for n_files in (2, 6):
        desk = make_desk(data=make_desk().files.folder.with_name(f"desk-{n_files}"), audit_share=0.0)
        with listening(desk) as address, httpx.Client(base_url=address, timeout=60) as client:
            for path in sorted(examples.glob("r*.npz"))[:n_files]:
                put(client, path).raise_for_status()
        with counting(desk) as statements:
            assert classify_some(desk, readers, "here") == n_files
        others = [one for one in statements if not one.startswith("INSERT INTO results")]  # SQLite numbers each
        counts.append(len(others))
    assert counts[0] == counts[1]


def test_a_worker_waits_while_the_disk_is_full_and_gives_its_claims_back(desk, client, examples, monkeypatch, caplog):
    made = put(client, examples / "r0.npz").json()["id"]
    attempts = []

    class Alive:
        """The desk lives for four rounds."""

        def poll(self, _):
            return len(attempts) >= 4

    def fail(running, _, name):
        attempts.append(claim(running.store, name))
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(worker, "classify_some", fail)
    before = signal.getsignal(signal.SIGINT)
    try:
        worker.run_worker(desk.settings, Alive())
    finally:
        signal.signal(signal.SIGINT, before)  # a worker ignores Ctrl-C, and so would all that this process starts later
    assert attempts == [[made]] * 4, "it did not end, and claimed the same recording again each time"
    assert [record.message for record in caplog.records if "space on the disk" in record.message] == [
        "the worker waits for space on the disk: OSError: [Errno 28] No space left on device"
    ]
