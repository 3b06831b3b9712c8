"""kill -9 under load: nothing that was acknowledged is lost, nothing is classified twice."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time

import httpx
import numpy as np
import pytest

from ecgquorum import simulate
from ecgquorum.recordings import write
from ecgquorum.service.store import Store, audit

from .conftest import _free_port


class Killed:
    """A desk as a process of its own, killed and started again; uploads go on all the while."""

    def __init__(self, folder, model):
        self.folder, self.port = folder, _free_port()
        self.command = [sys.executable, "-m", "ecgquorum", "serve", "--data", str(folder), "--model", str(model)]
        self.command += ["--port", str(self.port)]
        self.process = None

    def start(self):
        self.process = subprocess.Popen(
            self.command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
        )
        started = time.monotonic()
        while True:
            try:
                httpx.get(f"http://127.0.0.1:{self.port}/api/health", timeout=5).raise_for_status()
                return
            except httpx.HTTPError:
                assert self.process.poll() is None, self.process.stderr.read().decode()
                assert time.monotonic() - started < 240
                time.sleep(0.1)

    def answers(self):
        with sqlite3.connect(self.folder / "desk.sqlite") as connection:
            (count,) = connection.execute("SELECT count(*) FROM results").fetchone()
        connection.close()
        return count

    def wait_for_an_answer(self):
        before, started = self.answers(), time.monotonic()
        while self.answers() == before:
            assert time.monotonic() - started < 240
            time.sleep(0.05)

    def kill(self):
        os.killpg(self.process.pid, signal.SIGKILL)  # the worker and its readers as well
        self.process.wait()
        self.process.stderr.close()


def under_load(desk, folder, n_kills, seconds_between):
    """Upload without pause while the desk is killed; gives what was acknowledged: name -> id."""
    acknowledged, stop = {}, threading.Event()
    rng = random.Random(0)  # noqa: S311 (when to kill, not whom to trust)

    def upload(worker):
        number = 0
        while not stop.is_set():
            name = f"{worker}-{number}.npz"
            made = simulate("NAO"[number % 3], seed=1000 * worker + number, seconds=3, leads=("ECG",)).recording
            write(made, folder / name, overwrite=True)
            try:
                answer = httpx.put(
                    f"http://127.0.0.1:{desk.port}/api/recordings",
                    params={"name": name},
                    content=(folder / name).read_bytes(),
                    timeout=60,
                )
                if answer.status_code in (200, 201):
                    acknowledged[name] = answer.json()["id"]
                    number += 1
            except httpx.HTTPError:
                time.sleep(0.05)  # it is dead at the moment; the same file again

    threads = [threading.Thread(target=upload, args=(worker,)) for worker in range(2)]
    desk.start()
    for thread in threads:
        thread.start()
    for number in range(n_kills):
        if number % 3 == 2:
            desk.wait_for_an_answer()  # so that some are killed in the midst of classifying
        time.sleep(rng.uniform(*seconds_between))
        desk.kill()
        desk.start()
    stop.set()
    for thread in threads:
        thread.join()
    return acknowledged


def survives(model, tmp_path, n_kills, seconds_between, patience_s):
    (tmp_path / "sent").mkdir()
    desk = Killed(tmp_path / "desk", model)
    try:
        acknowledged = under_load(desk, tmp_path / "sent", n_kills, seconds_between)
        database = tmp_path / "desk" / "desk.sqlite"
        with sqlite3.connect(database) as connection:  # claims of the dead end now, not in two minutes
            connection.execute("UPDATE recordings SET worker_until = '2000' WHERE worker IS NOT NULL")
        connection.close()
        client = httpx.Client(base_url=f"http://127.0.0.1:{desk.port}", timeout=60)
        started = time.monotonic()
        while client.get("/api/recordings", params={"state": "waiting"}).json()["total"]:
            assert time.monotonic() - started < patience_s
            time.sleep(0.5)
        for name, recording_id in acknowledged.items():
            again = client.put(
                "/api/recordings", params={"name": name}, content=(tmp_path / "sent" / name).read_bytes()
            )
            assert (again.status_code, again.json()["id"]) == (200, recording_id)
            assert again.json()["state"] in ("open", "certain", "unreadable")
            samples = np.frombuffer(client.get(f"/api/recordings/{recording_id}/samples").content, "<f4")
            assert len(samples) == 900
        client.close()
        with sqlite3.connect(database) as connection:
            per_recording = [n for (n,) in connection.execute("SELECT count(*) FROM results GROUP BY recording_id")]
            classified = "SELECT count(*) FROM audit WHERE action = 'classified' GROUP BY subject"
            in_log = [n for (n,) in connection.execute(classified)]
        connection.close()
        assert len(acknowledged) >= n_kills
        assert len(per_recording) >= len(acknowledged)
        assert set(per_recording) == {1} and set(in_log) == {1}
        store = Store(f"sqlite:///{database}")
        with store.read_session() as session:
            assert audit.verify_log(session).problem == ""
        store.close()
    finally:
        desk.kill()


@pytest.mark.timeout(900)
def test_a_killed_desk_loses_nothing_acknowledged(model, tmp_path):
    survives(model, tmp_path, n_kills=1, seconds_between=(0.5, 2.5), patience_s=300)


@pytest.mark.slow
@pytest.mark.timeout(5400)
def test_thirty_kills_lose_nothing_acknowledged(model, tmp_path):
    survives(model, tmp_path, n_kills=30, seconds_between=(0.5, 6.0), patience_s=1800)
