"""Measure the processor time that a worker of the review desk takes for one recording.

python -m benchmarks.desk_worker [--recordings 320] [--model NAME] [--database URL]

Simulated one-lead recordings of 30 s are uploaded and classified in this process and its readers, as by the worker of
`ecgquorum serve`. Start-up (imports, model, readers) does not count. Processor time hardly depends on what else the
machine does; on two idle cores a worker with two readers can classify 2000 / (ms per recording) a second at most.
"""

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

from benchmarks.triage import write_recordings
from ecgquorum.parallel.worker_process import processor_time
from ecgquorum.service.desk import Desk
from ecgquorum.service.server import open_desk
from ecgquorum.service.settings import Settings
from ecgquorum.service.uploads import receive_upload
from ecgquorum.service.worker import classify_some, worker_readers

AIM_PER_SECOND = 30.0
_WARM_UP = 64


async def _read(path: Path) -> AsyncIterator[bytes]:
    yield path.read_bytes()


async def upload(desk: Desk, folder: Path) -> None:
    """Upload all files; those of a record get a name of their own, so that no two are the same recording."""
    for path in sorted(folder.iterdir()):
        await receive_upload(desk, "benchmark", path.name, _read(path))


def measure_worker(desk: Desk, n_recordings: int) -> tuple[float, float, float]:
    """Processor time of the worker and of its readers, and time on the clock, in ms for each of the recordings."""
    n_done = 0
    with worker_readers(desk) as readers:
        while n_done < _WARM_UP:
            n_done += classify_some(desk, readers, "benchmark")
        n_before = n_done

        def now() -> tuple[float, float, float]:
            reading = sum(processor_time(pid)[1] for pid in readers.pids)
            return time.process_time(), reading, time.perf_counter()

        before = now()
        while n_some := classify_some(desk, readers, "benchmark"):
            n_done += n_some
        after = now()
    own, reading, clock = (1000 * (b - a) / (n_done - n_before) for a, b in zip(before, after, strict=True))
    if n_done != n_recordings:
        raise SystemExit(f"{n_done} of {n_recordings} recordings were classified")
    return own, reading, clock


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recordings", type=int, default=320)
    parser.add_argument("--model", default="physionet2017")
    parser.add_argument("--database", default="")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "sent"
        write_recordings(folder, asked.recordings)
        for number, path in enumerate(sorted(folder.glob("*.hea"))):
            path.write_text(path.read_text() + f"# {number}\n")
        desk = open_desk(Settings(Path(scratch) / "desk", asked.model, database=asked.database, reclassify=True))
        asyncio.run(upload(desk, folder))
        own, reading, clock = measure_worker(desk, asked.recordings)
        desk.close()
    total = own + reading
    print(f"{total:.1f} ms of processor time for each recording: {own:.1f} worker, {reading:.1f} readers")
    print(
        f"at most {2000 / total:.0f} a second on two cores (aim {AIM_PER_SECOND:g}); here {1000 / clock:.0f} a second"
    )
    print(f"load of this machine: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
