"""What tests share: the real recordings where they are, and a tiny cohort and run that are made once."""

import fcntl
import multiprocessing
import os
import shutil
import signal
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

if "PYTEST_XDIST_WORKER" in os.environ:  # before PyTorch is loaded: as many processes as cores, one thread each
    os.environ["OMP_NUM_THREADS"] = "1"

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as of a shell's background job; tests send Ctrl-C to commands
    signal.signal(signal.SIGINT, signal.default_int_handler)

if Path("/dev/shm").is_dir() and shutil.disk_usage("/dev/shm").free > 4 << 30:  # noqa: S108 (with a folder of its own)
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", "/dev/shm")  # noqa: S108 (tests of a desk half wait for a disk)

os.environ.setdefault("RAY_worker_niceness", "0")  # else other tests starve Ray's processes for minutes

from contextlib import contextmanager

import numpy as np
import pytest
import torch
import wfdb
from hypothesis import settings

from ecgquorum import Cohort, build_cohort, load_ensemble, open_source, run_study, train_ensemble
from ecgquorum.cli import main
from ecgquorum.parallel import worker_process
from ecgquorum.recipes import parse_recipe, parse_study

from . import commands

settings.register_profile("ecgquorum", deadline=None, max_examples=50, derandomize=True)
settings.load_profile("ecgquorum")

REPOSITORY = Path(__file__).parent.parent
REAL_DATA = Path(os.environ.get("ECGQUORUM_DATA", REPOSITORY.parent / "shared" / "data"))

RAY_FILES = [
    f"tests/parallel/test_{name}.py"
    for name in ("executors", "on_two_machines", "ray_connection", "ray_train", "without_shared_disk")
]

TINY_RECIPE = """
name = "tiny"
members = 2
[input]
window_s = 6.0
[member]
width = 0.125
pooling = "mean"     # learns something in two epochs
[training]
epochs = 2
batch_size = 16
crop_s = 4.0
gain = 1.2
flip = 0.5
label_smoothing = 0.05
repeat = { A = 2 }
"""

TINY_STUDY = (
    """
compare = ["baseline", "dec+part"]
"""
    + TINY_RECIPE
    + """
[cohort]
source = "synthetic:physionet2017"
records = 240
seconds = 5.0
[strategies.dec]
projected = 8
[evaluation]
masking_records = 8
[[evaluation.attacks]]
kind = "pgd"
[[evaluation.attacks]]
kind = "sap"
options = { n_steps = 4 }
[[evaluation.attacks]]
kind = "confident"
target = "ensemble"
records = 12
epsilons = [50.0]
options = { n_steps = 4 }
"""
)


LONGEST = ("parallel", "service", "tuning", "training", "triage", "study", "evaluation", "cli")
"""Folders whose tests come first, so that the last files of a parallel run are short ones."""


def pytest_collection_modifyitems(items):
    rank = {REPOSITORY / "tests" / name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: min((rank[place] for place in item.path.parents if place in rank), default=len(rank)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Tests of a file stay in one process, which has their fixtures, and all that share a Ray cluster do."""
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid):
            file = super()._split_scope(nodeid)
            return "tests/parallel on Ray" if file in RAY_FILES else file

    return Scheduling(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.fixture(scope="session", autouse=True)
def forked_workers():
    """Reading processes and local executors fork from the server of `commands`: loading modules is most of a start.

    Tests of such processes themselves use `spawned_workers`; commands in processes of their own start them as usual.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worker_process, "CONTEXT", commands.CONTEXT)
        yield


@pytest.fixture
def spawned_workers(forked_workers, monkeypatch):
    """Start processes as the package does: spawned, with this process's environment."""
    monkeypatch.setattr(worker_process, "CONTEXT", multiprocessing.get_context("spawn"))


@pytest.fixture(scope="session", autouse=True)
def few_masking_steps():
    """Checks for gradient masking with fewer steps, or else most evaluations would do little else.

    Their own tests take all steps.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ecgquorum.evaluation.gradient_masking.STEPS", (0, 1, 2, 5, 10))
        yield


class Recorder:
    """A `Progress` that records its reports."""

    def __init__(self):
        self.updates, self.lines = [], []

    def update(self, text, done, total):
        self.updates.append((text, done, total))

    def log(self, line):
        self.lines.append(line)


@pytest.fixture
def ecgquorum(monkeypatch, capsys):
    """Run the command line in this process; gives what it printed."""

    def run(*arguments, code=0):
        monkeypatch.setattr(sys, "argv", ["ecgquorum", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        assert (ended.value.code or 0) == code, printed.err
        return SimpleNamespace(stdout=printed.out, stderr=printed.err)

    return run


@pytest.fixture
def s3(monkeypatch, tmp_path):
    """An S3 server with the buckets `bucket` and `other`, the credentials for it, and a cache folder of this test."""
    pytest.importorskip("pyarrow.fs", reason="PyArrow is not installed")
    from ecgquorum.storage import retries
    from tests.storage.s3_server import S3Server

    monkeypatch.setattr(retries, "FIRST_WAIT_S", 0.01)
    with using(S3Server("bucket", "other"), monkeypatch, tmp_path / "cache") as server:
        yield server


@contextmanager
def using(server, monkeypatch, cache):
    """The credentials for an S3 server and a new cache folder, while the block runs; then the server is closed."""
    from ecgquorum.storage import backends

    for name, value in server.environment(cache).items():
        monkeypatch.setenv(name, value)
    backends.open_backend.cache_clear()
    forget_machine()
    yield server
    forget_machine()
    backends.open_backend.cache_clear()
    server.close()


def forget_machine():
    """Forget the cache folder that readers and opened folders know, as on another machine."""
    from ecgquorum.recordings.discovery import open_cached
    from ecgquorum.triage import distributed

    open_cached.cache_clear()
    distributed._sandbox.cache_clear()


@pytest.fixture
def one_thread():
    """As the processes of an executor have."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def real_data():
    """The folder of real recordings; the test is skipped where there is none."""
    if not REAL_DATA.is_dir():
        pytest.skip(f"no real recordings at {REAL_DATA}; set ECGQUORUM_DATA to test with them")
    return REAL_DATA


@pytest.fixture(scope="session")
def tiny_recipe():
    return parse_recipe(TINY_RECIPE)


def make_once(tmp_path_factory, name, make):
    """The folder `name` of this session, which the first of its processes to ask for it makes; the others wait."""
    place = tmp_path_factory.getbasetemp()
    place = place.parent if "PYTEST_XDIST_WORKER" in os.environ else place
    out, finished = place / name, place / f"{name}.finished"
    with (place / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not finished.exists():
            make(out)
            finished.touch()
    return out


@pytest.fixture(scope="session")
def tiny_cohort(tmp_path_factory):
    """60 simulated single-lead recordings of 5 s."""

    def make(out):
        build_cohort(open_source("synthetic:physionet2017", records=60, seconds=5.0), out)

    return Cohort(make_once(tmp_path_factory, "tiny-cohort", make))


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory, tiny_recipe, tiny_cohort):
    """The folder of a finished run: two tiny members, two epochs. Tests only read it."""
    return make_once(
        tmp_path_factory, "tiny-run", lambda out: train_ensemble(tiny_recipe, tiny_cohort, out, device="cpu")
    )


@pytest.fixture(scope="session")
def tiny_study(tmp_path_factory):
    """The folder of a finished study: two strategies, three attacks, a report without figures. Tests only read it."""

    def make(out):
        with pytest.MonkeyPatch.context() as patch:
            leave_out_figures(patch)
            run_study(parse_study(TINY_STUDY), out, device="cpu")

    return make_once(tmp_path_factory, "tiny-study", make)


def leave_out_figures(patch):
    """Reports without figures, whose drawing takes longer than most trainings here."""
    patch.setattr("ecgquorum.report.report_page.draw_figures", lambda card: {})


@pytest.fixture
def no_figures(monkeypatch):
    leave_out_figures(monkeypatch)


def try_one_weight(patch):
    """Fits of the risk that try one weight of natural recordings, which is most of their time."""
    patch.setattr("ecgquorum.training.risk_choice.NATURAL_WEIGHTS", ())


@pytest.fixture
def quick_risk(monkeypatch):
    try_one_weight(monkeypatch)


@pytest.fixture
def tiny_ensemble(tiny_run):
    return load_ensemble(tiny_run)


@pytest.fixture
def write_record(tmp_path):
    """Write a WFDB record and return its path without ending."""

    def write(
        name="rec", signal=None, *, rate_hz=300, units=("mV",), leads=("ECG",), fmt="16", comments=(), folder=None
    ):
        folder = folder or tmp_path
        folder.mkdir(parents=True, exist_ok=True)
        if signal is None:
            signal = np.sin(np.arange(3000) / 20)[None] * np.arange(1, len(leads) + 1)[:, None]
        wfdb.wrsamp(
            name,
            fs=rate_hz,
            units=list(units),
            sig_name=list(leads),
            p_signal=np.asarray(signal, dtype=np.float64).T,
            fmt=[fmt] * len(leads),
            comments=list(comments),
            write_dir=str(folder),
        )
        return folder / name

    return write


@pytest.fixture
def zipped():
    """Pack a folder into a zip archive beside it, with an inner folder of the same name."""

    def pack(folder, method=zipfile.ZIP_BZIP2):
        archive = folder.with_suffix(".zip")
        with zipfile.ZipFile(archive, "w", method) as file:
            for path in sorted(folder.rglob("*")):
                file.write(path, f"{folder.name}/{path.relative_to(folder)}")
        return archive

    return pack


@pytest.fixture
def open_cohort(tiny_cohort):
    """A second, independent view of the tiny cohort."""
    return Cohort(tiny_cohort.path)
