"""A desk to look at: simulated recordings, the same at every time, and simulated readers who have read some of them."""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

from ecgquorum._internal.seeds import numpy_generator
from ecgquorum.recordings import write
from ecgquorum.service.desk import Desk
from ecgquorum.service.store import reviews, worklist
from ecgquorum.service.store.tokens import Actor
from ecgquorum.service.store.worklist import Filter
from ecgquorum.service.uploads import receive
from ecgquorum.simulation import LABELS, simulate

N_RECORDINGS = 48
AUDIT_SHARE = 0.2
_SEED = 7
_SECONDS = 10.0
_RATE_HZ = 500.0
_READ_SHARE = 0.5
_WRONG_SHARE, _SWAYED_SHARE = 0.1, 0.4
_READERS = ("simulated reader 1", "simulated reader 2")
_UPLOADER = "demo"
_PATIENCE_S = 600.0
_ODD_FILES = {
    "demo-broken.edf": b"This was a recording once. " * 20,
    "demo-half.hea": b"demo-half 1 500 5000\ndemo-half.dat 16 1000(0)/mV 16 0 0 0 0 II\n",
}


def fill(desk: Desk) -> None:
    """Upload the recordings, unless something is there, and have simulated readers read half of what is open."""
    with desk.store.reading() as session:
        if any(worklist.counts(session).values()):
            return
    truth = {}
    for number in range(N_RECORDINGS):
        label = _labels(desk)[number % len(_labels(desk))]
        truth[_uploaded(desk, number, label)] = label
    for name, content in _ODD_FILES.items():
        asyncio.run(receive(desk, _UPLOADER, name, _chunks(content)))
    started = time.monotonic()
    while _waiting(desk) and time.monotonic() - started < _PATIENCE_S:
        time.sleep(1.0)
    _read(desk, truth)


def _labels(desk: Desk) -> tuple[str, ...]:
    return tuple(label for label in desk.classes if label in LABELS) or ("N",)


def _uploaded(desk: Desk, number: int, label: str) -> str:
    """Simulate a recording, upload it as a user would, and give its id; some in two files, some disturbed."""
    leads = desk.ensemble.input.leads
    noise = (1.0, 1.0, 1.0, 4.0)[number % 4]
    recording = simulate(
        label, seed=_SEED + number, seconds=_SECONDS, rate_hz=_RATE_HZ, leads=leads, noise=noise
    ).recording
    if number % 12 == 5 and len(leads) > 1:
        recording.signal[-1] = 0.0  # an electrode that fell off
    ending = ".hea" if number % 6 == 0 else ".npz"
    ids = set()
    with tempfile.TemporaryDirectory(prefix="ecgquorum-") as folder:
        write(recording, Path(folder) / f"demo-{number:02d}{ending}")
        for path in sorted(Path(folder).iterdir()):
            done = asyncio.run(receive(desk, _UPLOADER, path.name, _chunks(path.read_bytes())))
            ids.add(done.row.id)
    return ids.pop()


async def _chunks(content: bytes) -> AsyncIterator[bytes]:
    yield content


def _waiting(desk: Desk) -> int:
    with desk.store.reading() as session:
        return worklist.counts(session)["waiting"]


def _read(desk: Desk, truth: dict[str, str]) -> None:
    """Half of the open cases, from the top: mostly right, sometimes wrong, sometimes swayed by the ensemble."""
    rng = numpy_generator(_SEED, "demo", "readers")
    with desk.store.reading() as session:
        rows, total = worklist.listed(session, Filter(state=worklist.OPEN), limit=500)
    for number, (row, _) in enumerate(rows[: round(_READ_SHARE * total)]):
        reader = Actor(_READERS[number % len(_READERS)], frozenset())
        with desk.store.writing() as session:
            case = session.merge(row)
            right = truth.get(row.id, desk.classes[0])
            wrong = desk.classes[int(rng.integers(len(desk.classes)))]
            first = wrong if rng.random() < _WRONG_SHARE else right
            answered = reviews.result_of(session, row.id).label
            final = answered if rng.random() < _SWAYED_SHARE else first
            reviews.claim(session, case, desk.reviewer(reader))
            reviews.judge(session, case, desk.reviewer(reader), first, desk.classes)
            reviews.judge(session, case, desk.reviewer(reader), final, desk.classes)
