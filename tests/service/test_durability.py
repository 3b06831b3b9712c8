"""kill -9 under load, and 200 uploads at a time: nothing acknowledged is lost, nothing is classified twice."""

import os
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from .desk_process import DeskProcess, RestartedDesk, check_nothing_is_lost, run_desk, write_example


def under_load(desk, folder, kills, seconds_between, pause_s):
    """Upload, with a pause after each, while the desk is killed; gives what was acknowledged: name -> id.

    kills: one item for each kill
    """
    acknowledged, stop = {}, threading.Event()
    rng = random.Random(int(os.environ.get("ECGQUORUM_CAMPAIGN_SEED", "0")))  # noqa: S311 (when to kill)

    def upload(worker):
        number = 0
        while not stop.is_set():
            path = write_example(folder, f"{worker}-{number}.npz", 1000 * worker + number)
            try:
                answer = httpx.put(
                    f"{desk.address}/api/recordings",
                    params={"name": path.name},
                    content=path.read_bytes(),
                    timeout=60,
                )
                if answer.status_code in (200, 201):
                    acknowledged[path.name] = answer.json()["id"]
                    number += 1
                    time.sleep(pause_s)
            except httpx.HTTPError:
                time.sleep(0.05)  # it is dead at the moment; the same file again

    threads = [threading.Thread(target=upload, args=(worker,)) for worker in range(2)]
    desk.start()
    for thread in threads:
        thread.start()
    try:
        for number in kills:
            if number % 3 == 2:
                desk.wait_for_an_answer()  # so that some are killed in the midst of classifying
            time.sleep(rng.uniform(*seconds_between))
            desk.kill()
            desk.start()
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    return acknowledged


def survives(desk, folder, n_kills, seconds_between, pause_s=0.0):
    """Kill the desk so often, or until the campaign's time is over; gives the numbers of kills and uploads."""
    until, killed = float(os.environ.get("ECGQUORUM_CAMPAIGN_UNTIL", "inf")), []

    def kills():
        while len(killed) < n_kills and (not killed or time.time() < until):
            yield len(killed)
            killed.append(time.time())

    folder.mkdir()
    try:
        acknowledged = under_load(desk, folder, kills(), seconds_between, pause_s)
        desk.wait_until_classified(1800)
        assert len(acknowledged) >= len(killed)
        check_nothing_is_lost(desk, folder, acknowledged)
    finally:
        desk.kill()
    return len(killed), len(acknowledged)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_killed_desk_loses_nothing_acknowledged(model, database, tmp_path):
    survives(DeskProcess(tmp_path / "desk", model, database), tmp_path / "sent", 1, (0.5, 2.5))


@pytest.mark.slow
@pytest.mark.timeout(5400)
def test_many_kills_lose_nothing_acknowledged(model, database, tmp_path, record_property):
    """ECGQUORUM_KILLS_DESK gives another number than 30; most starts are forked from a process that is warm."""
    desk = RestartedDesk(tmp_path / "desk", model, database)
    n_kills = int(os.environ.get("ECGQUORUM_KILLS_DESK", "30"))
    done, uploads = survives(desk, tmp_path / "sent", n_kills, (0.1, 2.5), pause_s=1.0)
    record_property("done", done)
    record_property("uploads", uploads)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_two_hundred_uploads_at_a_time_are_all_classified(model, database, tmp_path):
    """While the worker classifies; each file is sent twice."""
    folder = tmp_path / "sent"
    folder.mkdir()
    paths = [write_example(folder, f"{number}.npz", number) for number in range(200)]
    with run_desk(tmp_path / "desk", model, database) as desk:

        def upload(path):
            sent = {"params": {"name": path.name}, "content": path.read_bytes()}
            return httpx.put(f"{desk.address}/api/recordings", **sent, timeout=300)

        with ThreadPoolExecutor(200) as pool:
            answers = list(pool.map(upload, [path for path in paths for _ in range(2)]))
        assert sorted(answer.status_code for answer in answers) == [200] * 200 + [201] * 200
        desk.wait_until_classified(900)
        acknowledged = {path.name: answer.json()["id"] for path, answer in zip(paths, answers[::2], strict=True)}
        assert len({*acknowledged.values()}) == 200 and desk.ask("SELECT count(*) FROM results") == [(200,)]
        check_nothing_is_lost(desk, folder, acknowledged)
