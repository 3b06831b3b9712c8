"""A desk with a tiny model, its databases, and running servers."""

import os
import pwd
import shutil
import socket
import subprocess
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
import uvicorn

from ecgquorum import load_ensemble, simulate
from ecgquorum.ensemble import Ensemble, save_bundle
from ecgquorum.ensemble.prediction import information_range
from ecgquorum.members import build_member
from ecgquorum.preprocessing import InputSpec
from ecgquorum.preprocessing.prepare import ReadOptions, reading_sandbox
from ecgquorum.recordings import SandboxLimits, write
from ecgquorum.service.application import desk_application
from ecgquorum.service.server import open_desk, server_config
from ecgquorum.service.settings import Settings
from ecgquorum.service.store import Store, tokens
from ecgquorum.service.worker import TRACE_BYTES, classify_some
from ecgquorum.triage import Threshold
from tests.commands import free_port

try:
    import playwright.sync_api as playwright
except ImportError:
    playwright = None

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None or playwright is None, reason="no chromium or no playwright here; install them to test with them"
)
PATIENCE_MS = 60_000
SERVERS = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)


FAST_IN_CHROMIUM = "test_from_upload_to_export"


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(items):
    """Tests in a browser are long, except for one that goes through the whole desk."""
    for item in items:
        if "chromium" in item.fixturenames and item.name != FAST_IN_CHROMIUM:
            item.add_marker("long")


class Clock:
    """A clock that tests set."""

    def __init__(self):
        self.now = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

    def __call__(self):
        self.now += timedelta(microseconds=1)
        return self.now

    def passes(self, seconds):
        self.now += timedelta(seconds=seconds)


@pytest.fixture
def clock():
    return Clock()


def _unprivileged():
    """The user to run the server as: it refuses root."""
    if os.getuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            found = pwd.getpwnam(name)
            return {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}
        except KeyError:
            continue
    pytest.skip("PostgreSQL refuses to run as root, and there is no other account")


@pytest.fixture(scope="session")
def postgresql(tmp_path_factory):
    """The URL of a real PostgreSQL server, started for these tests alone."""
    binaries = SERVERS[0] if SERVERS else shutil.which("initdb") and Path(shutil.which("initdb")).parent
    if not binaries:
        pytest.skip("no PostgreSQL server here; install the package postgresql to test with it")
    account = _unprivileged()
    folder = Path(subprocess.run(["mktemp", "-d"], capture_output=True, text=True, check=True).stdout.strip())
    if account:
        os.chown(folder, account["user"], account["group"])
    place, port = folder / "data", free_port()
    run = {"cwd": folder, "capture_output": True, "check": True, "timeout": 240, **account}
    subprocess.run([binaries / "initdb", "-D", place, "-U", "desk", "-A", "trust", "--no-sync"], **run)
    settings = ("listen_addresses=127.0.0.1", "fsync=off", "synchronous_commit=off", "full_page_writes=off")
    options = [word for setting in settings for word in ("-c", setting)]
    server = subprocess.Popen(
        [binaries / "postgres", "-D", place, "-p", str(port), "-k", folder, *options],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        **account,
    )
    try:
        for _ in range(600):
            if (
                subprocess.run(
                    [binaries / "pg_isready", "-h", "127.0.0.1", "-p", str(port)], capture_output=True
                ).returncode
                == 0
            ):
                break
            assert server.poll() is None, "PostgreSQL has ended"
            time.sleep(0.2)
        else:
            pytest.fail("PostgreSQL has not started within two minutes")
        yield f"postgresql://desk@127.0.0.1:{port}/postgres"
    finally:
        server.terminate()
        server.wait(60)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request):
    """The URL of an empty database."""
    if request.param == "sqlite":
        folder = request.getfixturevalue("tmp_path")
        yield f"sqlite:///{folder}/store.sqlite"
        return
    import psycopg

    server = request.getfixturevalue("postgresql")
    name = f"desk{time.monotonic_ns()}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    yield server.removesuffix("/postgres") + f"/{name}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def store(database, clock):
    made = Store(Settings(data=Path(), model="", database=database).database_url, clock)
    made.migrate()
    yield made
    made.close()


@pytest.fixture(scope="session")
def model(tiny_recipe, tmp_path_factory):
    """Two tiny untrained members with a policy that defers some recordings."""
    built = {"n_leads": 1, "n_classes": 4, "rate_hz": 300.0, "options": tiny_recipe.member.options}
    members = [build_member(tiny_recipe.member.kind, seed=i, **built).eval() for i in range(2)]
    ensemble = Ensemble(members, "NAO~", InputSpec(("ECG",), 300.0, tiny_recipe.input.scaling, 6.0))
    seen = [simulate("NAO"[i % 3], seed=i, seconds=6, leads=("ECG",)).recording for i in range(6)]
    ensemble.information_range = information_range(ensemble.predict(seen))
    out = tmp_path_factory.mktemp("desk-model") / "model"
    return save_bundle(ensemble, out, recipe=tiny_recipe, facts={"policy": Threshold(0.3).card()})


@pytest.fixture(scope="session")
def readers(model):
    """Processes that read recordings, shared by all desks of these tests."""
    options = ReadOptions(load_ensemble(model).input, recording_bytes=TRACE_BYTES, identify=True)
    with reading_sandbox(options, SandboxLimits(1, seconds=60.0)) as running:
        yield running


@pytest.fixture
def make_desk(model, tmp_path):
    """A desk, its settings changed as asked."""
    made = []

    def make(**changes):
        desk = open_desk(replace(Settings(data=tmp_path / "desk", model=str(model)), **changes))
        made.append(desk)
        return desk

    yield make
    for desk in made:
        desk.close()


@pytest.fixture
def desk(make_desk):
    return make_desk()


@contextmanager
def listening(desk, with_worker=False):
    """The desk's address, on a server of its own thread."""
    application, changes = desk_application(desk, with_worker=with_worker)
    with socket.socket(proto=socket.IPPROTO_TCP) as listener:  # else answers wait 40 ms for an acknowledgement
        listener.bind(("127.0.0.1", 0))
        config = server_config(application, behind_proxy=desk.settings.is_behind_proxy)
        config.timeout_graceful_shutdown = 50  # on a busy machine, measuring a recording for an open page takes longer
        server = uvicorn.Server(config)
        server.install_signal_handlers = lambda: None
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.02)
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            changes.stopping.set()
            server.should_exit = True
            thread.join(60)
            assert not thread.is_alive(), "the server has not stopped within a minute"


@pytest.fixture
def client(desk):
    """A program that talks to the desk."""
    with listening(desk) as address, httpx.Client(base_url=address, timeout=60) as made:
        yield made


@pytest.fixture
def classify(readers):
    """Classify all waiting recordings in this process."""

    def run(desk, worker="here"):
        while classify_some(desk, readers, worker):
            pass

    return run


@pytest.fixture(scope="session")
def examples(tmp_path_factory):
    """Simulated recordings in files, by name."""
    folder = tmp_path_factory.mktemp("examples")
    for number in range(6):
        made = simulate("NAO"[number % 3], seed=number, seconds=6, leads=("ECG",)).recording
        write(made, folder / f"r{number}.npz")
    write(simulate("A", seed=9, seconds=6, leads=("ECG",)).recording, folder / "pair.hea")
    return folder


def put(client, path, name=None, **options):
    """Upload a file; gives the answer."""
    return client.put("/api/recordings", params={"name": name or path.name}, content=path.read_bytes(), **options)


def give_token(desk, name, role):
    with desk.store.write_session() as session:
        return tokens.add_token(session, desk.store.now(), name, role)


@pytest.fixture(scope="module")  # while it runs its process has an event loop, which other tests cannot have
def chromium():
    if CHROMIUM is None or playwright is None:
        pytest.skip("no chromium or no playwright here; install them to test with them")
    playwright.expect.set_options(timeout=PATIENCE_MS)
    arguments = ["--no-sandbox", "--disable-gpu", "--force-color-profile=srgb"]
    with playwright.sync_playwright() as running:
        made = running.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield made
        made.close()


@pytest.fixture
def browser(chromium):
    """Chromium, whose windows are closed after the test."""
    before = chromium.contexts
    yield chromium
    for context in chromium.contexts:
        if context not in before:
            context.close()


@pytest.fixture
def page(browser):
    context = browser.new_context(viewport={"width": 1400, "height": 900}, accept_downloads=True)
    context.set_default_timeout(PATIENCE_MS)
    made = context.new_page()
    problems = []
    made.on("pageerror", lambda error: problems.append(str(error)))
    made.on("console", lambda said: problems.append(said.text) if said.type == "error" else None)
    yield made
    context.close()
    # A test may stop its desk while the page is still open: the page then tries to connect again.
    expected = ("409", "404", "net::ERR_CONNECTION_REFUSED")
    assert [text for text in problems if not any(one in text for one in expected)] == []
