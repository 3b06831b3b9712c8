"""Damaged files of every format: one clear line each; no crash, no hang over 2 s, no allocation over 1 GiB."""

import multiprocessing
import os
import resource
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from ecgquorum import Recording, read, simulate
from ecgquorum.errors import EcgQuorumError
from ecgquorum.preprocessing.quality import assess_quality
from ecgquorum.recordings import STANDARD_LEADS

from .formats import WRITERS, defaults_for


def mutated(content: bytes, rng: np.random.Generator) -> bytes:
    """Change a few bytes, or remove, double or overwrite a segment; more often near the start."""
    data = bytearray(content)
    for _ in range(int(rng.integers(1, 6))):
        reach = len(data) if rng.random() < 0.4 else min(len(data), 600)
        place = int(rng.integers(reach)) if reach else 0
        kind = rng.integers(5)
        if kind == 0:
            data[place : place + 1] = bytes([int(rng.integers(256))])
        elif kind == 1:
            data[place : place + int(rng.integers(1, 200))] = b""
        elif kind == 2:
            data[place:place] = data[place : place + int(rng.integers(1, 200))]
        elif kind == 3:
            data[place : place + 8] = rng.choice([b"99999999", b"-1      ", b"\xff" * 8, b"\0" * 8, b"1e308   "])
        else:
            del data[place:]
    return bytes(data)


def limit_seconds(on_processor, on_clock):
    """End this process after so many seconds of work, which a busy machine does not change, or of waiting."""
    signal.setitimer(signal.ITIMER_PROF, on_processor)
    signal.alarm(on_clock)


def attempt(paths, n_tries, seed, connection):
    """Read mutations of each file within limits; return how many were read and refused, or what failed."""
    for path in paths:  # modules are loaded before the limit is set
        read(path, defaults_for(path))
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 30), used + (1 << 30)))
    counts = {}
    for path in paths:
        rng = np.random.default_rng([*seed, *path.parent.name.encode()])  # whichever other formats there are
        files = sorted(path.parent.iterdir())
        contents = [file.read_bytes() for file in files]
        counts[path.parent.name] = [0, 0]
        for number in range(n_tries):
            which = int(rng.integers(len(files)))
            files[which].write_bytes(mutated(contents[which], rng))
            limit_seconds(2.0, 60)
            try:
                assess_quality(read(path, defaults_for(path)))
                counts[path.parent.name][0] += 1
            except EcgQuorumError as error:
                if isinstance(error.__cause__, MemoryError):
                    connection.send(f"{path}, try {number}: an allocation over 1 GiB: {error}")
                    return
                assert "\n" not in str(error) and len(str(error)) < 1000  # noqa: PT017
                counts[path.parent.name][1] += 1
            except BaseException as error:
                connection.send(f"{path}, try {number}: {type(error).__name__}: {error}")
                raise
            finally:
                limit_seconds(0.0, 0)
            files[which].write_bytes(contents[which])
    connection.send(counts)


def survive(tmp_path, n_tries, seed=(1,)):
    made = simulate("AF", seed=4, seconds=1.0, rate_hz=250.0).recording
    recording = Recording("made", np.round(made.signal, 3), 250.0, STANDARD_LEADS)
    paths = []
    for write_it in WRITERS:
        (tmp_path / write_it.__name__).mkdir()
        paths.append(write_it(recording, tmp_path / write_it.__name__))
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=attempt, args=(paths, n_tries, seed, theirs))
    process.start()
    theirs.close()
    try:
        found = ours.recv()
    except EOFError:
        process.join()
        found = f"the reader died (exit code {process.exitcode})"
    process.join()
    assert isinstance(found, dict), found
    assert len(found) == len(WRITERS)
    assert all(read + refused == n_tries and refused > 0 for read, refused in found.values()), found


def test_a_few_damaged_files(tmp_path):
    survive(tmp_path, 25)


@pytest.mark.slow
@pytest.mark.timeout(4 * 3600)
def test_many_damaged_files(tmp_path, record_property):
    """10,000 of each format, 250 at a time, or as many as the campaign's time allows.

    ECGQUORUM_MUTATIONS and ECGQUORUM_MUTATION_SEED give another number and seed.
    """
    n_tries = int(os.environ.get("ECGQUORUM_MUTATIONS", "10000"))
    seed = int(os.environ.get("ECGQUORUM_MUTATION_SEED", "1"))
    until, done = float(os.environ.get("ECGQUORUM_CAMPAIGN_UNTIL", "inf")), 0
    while done < n_tries and (done == 0 or time.time() < until):
        some = min(250, n_tries - done)
        (tmp_path / str(done)).mkdir()
        survive(tmp_path / str(done), some, seed=[seed, done])
        done += some
    record_property("done", done)
