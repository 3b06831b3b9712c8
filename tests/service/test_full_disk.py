"""A full disk: uploads are refused, nothing acknowledged is lost, and the desk goes on when there is room again."""

import os
import subprocess
import tempfile
import time
from pathlib import Path

import httpx
import pytest

from .conftest import _unprivileged
from .desk_process import check_nothing_is_lost, run_desk, write_example

SECONDS = 30
_LEFT_BYTES = 900_000


@pytest.fixture
def small_disk():
    """A folder on a disk of 48 MiB; not below that of pytest, which the account of PostgreSQL must not enter."""
    folder = Path(tempfile.mkdtemp())
    mount = ["mount", "-t", "tmpfs", "-o", "size=48m,mode=0755", "tmpfs", str(folder)]
    if os.getuid() != 0 or subprocess.run(mount, capture_output=True).returncode:
        folder.rmdir()
        pytest.skip("only root can mount a small disk, and not in every container")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)
    folder.rmdir()


@pytest.fixture(params=["sqlite", "postgresql"])
def database_there(request, small_disk):
    """The URL of a database whose tables are on the small disk."""
    if request.param == "sqlite":
        yield f"sqlite:///{small_disk}/desk.sqlite"
        return
    import psycopg

    server, account = request.getfixturevalue("postgresql"), _unprivileged()
    tables = small_disk / "tables"
    tables.mkdir()
    os.chown(tables, account["user"], account["group"])
    name = f"full{time.monotonic_ns()}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE TABLESPACE {name} LOCATION '{tables}'")
        connection.execute(f"CREATE DATABASE {name} TABLESPACE {name}")
    yield server.removesuffix("/postgres") + f"/{name}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
        connection.execute(f"DROP TABLESPACE {name}")


def upload_all(desk, paths):
    """Send all files one after another; gives ids by name, and the status codes of refusals."""
    acknowledged, refused = {}, []
    for path in paths:
        sent = {"params": {"name": path.name}, "content": path.read_bytes()}
        answer = httpx.put(f"{desk.address}/api/recordings", **sent, timeout=120)
        if answer.status_code in (200, 201):
            acknowledged[path.name] = answer.json()["id"]
        else:
            assert answer.json()["detail"], "an error says why"
            refused.append(answer.status_code)
    return acknowledged, refused


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_full_disk_loses_nothing_acknowledged(model, database_there, small_disk, tmp_path):
    sent = tmp_path / "sent"
    sent.mkdir()
    paths = [write_example(sent, f"{number}.npz", number, SECONDS) for number in range(90)]
    with run_desk(small_disk / "desk", model, database_there) as desk:
        first, refused = upload_all(desk, paths[:10])
        assert not refused
        ballast = small_disk / "ballast"
        free = os.statvfs(small_disk).f_bavail * os.statvfs(small_disk).f_frsize
        ballast.write_bytes(bytes(free - _LEFT_BYTES))
        full, refused = upload_all(desk, paths[10:])
        assert refused and {*refused} <= {503, 507}, "it says so, and keeps serving"
        assert httpx.get(f"{desk.address}/api/recordings", timeout=60).json()["total"] >= len(first | full)
        ballast.unlink()
        again, refused = upload_all(desk, paths)
        assert not refused and again.items() >= (first | full).items()
        desk.wait_until_classified(900)
        check_nothing_is_lost(desk, sent, again, SECONDS)
        assert "Traceback" not in desk.said(), "a line for each part of the desk, not one for each request"
