"""A desk as a process of its own, with its worker and readers, that tests kill and start again."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, suppress

import httpx
import numpy as np
from sqlalchemy import create_engine, text

from ecgquorum import simulate
from ecgquorum.recordings import write
from ecgquorum.service.files import FileStore
from ecgquorum.service.settings import Settings
from ecgquorum.service.store import Store, audit
from ecgquorum.service.store.verification import verify_data

from ..commands import Command, free_port, preload

PATIENCE_S = 240


class DeskProcess:
    """`ecgquorum serve` in a process group of its own."""

    def __init__(self, folder, model, database):
        self.folder, self.port = folder, free_port()
        self.database_url = Settings(data=folder, model="", database=database).database_url
        self.arguments = ["serve", "--data", folder, "--model", model, "--port", self.port, "--database", database]
        self.process = self._errors = None

    @property
    def address(self):
        return f"http://127.0.0.1:{self.port}"

    def launch(self):
        """Fork its process from one that has loaded what the desk needs, which is most of a start."""
        return Command(*self.arguments, new_session=True)

    def start(self):
        """Start it, and wait until it answers."""
        self.process = self.launch()
        started = time.monotonic()
        while True:
            try:
                httpx.get(f"{self.address}/api/health", timeout=5).raise_for_status()
                return
            except httpx.HTTPError:
                assert self.process.poll() is None, self.said()
                assert time.monotonic() - started < PATIENCE_S
                time.sleep(0.1)

    def kill(self):
        """Kill it, the worker and its readers."""
        with suppress(ProcessLookupError):  # it may not have a group yet
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()
        if self._errors:
            self._errors.close()
            self._errors = None

    def said(self):
        """What it has written to its standard error."""
        if not self._errors:
            return self.process.stderr
        self._errors.seek(0)
        return self._errors.read().decode()

    def ask(self, statement):
        """The rows that the database has for a statement."""
        engine = create_engine(self.database_url)
        with engine.begin() as connection:
            rows = connection.execute(text(statement))
            found = [tuple(row) for row in rows] if rows.returns_rows else []
        engine.dispose()
        return found

    def wait_for_an_answer(self):
        count = "SELECT count(*) FROM results"
        before, started = self.ask(count), time.monotonic()
        while self.ask(count) == before:
            assert time.monotonic() - started < PATIENCE_S
            time.sleep(0.05)

    def wait_until_classified(self, patience_s):
        """Wait until nothing waits; claims of workers that were killed end now, not in two minutes."""
        self.ask("UPDATE recordings SET worker_until = '2000' WHERE worker IS NOT NULL")
        started = time.monotonic()
        while self.ask("SELECT count(*) FROM recordings WHERE state = 'waiting'") != [(0,)]:
            assert time.monotonic() - started < patience_s
            time.sleep(0.5)


class RestartedDesk(DeskProcess):
    """A desk that is killed many times: one in ten starts is a command of its own, the others are forked."""

    def __init__(self, folder, model, database):
        super().__init__(folder, model, database)
        preload("ecgquorum.service.server")
        self._starts = 0

    def launch(self):
        """Start its process."""
        self._starts += 1
        if self._starts % 10:
            return super().launch()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (a pipe that nobody reads would stop it)
        command = [sys.executable, "-m", "ecgquorum", *map(str, self.arguments)]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=self._errors, start_new_session=True)


@contextmanager
def run_desk(folder, model, database):
    """A desk that is started, and killed at the end."""
    desk = DeskProcess(folder, model, database)
    try:
        desk.start()
        yield desk
    finally:
        desk.kill()


def write_example(folder, name, seed, seconds=3):
    """A simulated recording in a file; gives its path."""
    made = simulate("NAO"[seed % 3], seed=seed, seconds=seconds, leads=("ECG",)).recording
    write(made, folder / name, overwrite=True)
    return folder / name


def check_nothing_is_lost(desk, folder, acknowledged, seconds=3):
    """All that was acknowledged (name -> id) is there, classified once, and the log and the data are valid.

    folder: where the files are that were sent
    """
    with httpx.Client(base_url=desk.address, timeout=60) as client:
        for name, recording_id in acknowledged.items():
            content = (folder / name).read_bytes()
            again = client.put("/api/recordings", params={"name": name}, content=content)
            assert (again.status_code, again.json()["id"]) == (200, recording_id)
            assert again.json()["state"] in ("open", "certain", "unreadable")
            samples = np.frombuffer(client.get(f"/api/recordings/{recording_id}/samples").content, "<f4")
            assert len(samples) == 300 * seconds
    per_recording = [n for (n,) in desk.ask("SELECT count(*) FROM results GROUP BY recording_id")]
    classified = "SELECT count(*) FROM audit WHERE action = 'classified' GROUP BY subject"
    assert len(per_recording) >= len(acknowledged)
    assert set(per_recording) == {1} and {n for (n,) in desk.ask(classified)} == {1}
    store = Store(desk.database_url)
    with store.read_session() as session:
        assert audit.verify_log(session).problem == ""
        assert list(verify_data(session, FileStore(desk.folder).hash_file)) == []
    store.close()
