"""Fill a desk with simulated recordings, always the same, and with verdicts of simulated readers."""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

from ecgquorum._internal.seeds import numpy_generator
from ecgquorum.recordings import write
from ecgquorum.service.desk import Desk
from ecgquorum.service.store import reviews, worklist
from ecgquorum.service.store.judgements import CLASS, Judgement
from ecgquorum.service.store.tokens import Actor
from ecgquorum.service.store.worklist import WorklistFilter
from ecgquorum.service.uploads import receive_upload
from ecgquorum.simulation import LABELS, simulate

N_RECORDINGS = 48
AUDIT_SHARE = 0.2
_SEED = 7
_SECONDS = 10.0
_RATE_HZ = 500.0
_REVIEWED_SHARE = 0.5
_WRONG_SHARE, _FOLLOWING_SHARE = 0.1, 0.4
_READERS = ("simulated reader 1", "simulated reader 2")
_UPLOADER = "demo"
_TIMEOUT_S = 600.0
_BROKEN_FILES = {
    "demo-broken.edf": b"This was a recording once. " * 20,
    "demo-half.hea": b"demo-half 1 500 5000\ndemo-half.dat 16 1000(0)/mV 16 0 0 0 0 II\n",
}


def fill_demo(desk: Desk) -> None:
    """Upload recordings unless the desk has some already, and let simulated readers review half of the open cases."""
    with desk.store.read_session() as session:
        if any(worklist.count_states(session).values()):
            return
    truth = {}
    for number in range(N_RECORDINGS):
        label = _labels(desk)[number % len(_labels(desk))]
        truth[_upload_recording(desk, number, label)] = label
    for name, content in _BROKEN_FILES.items():
        asyncio.run(receive_upload(desk, _UPLOADER, name, _chunks(content)))
    started = time.monotonic()
    while _n_waiting(desk) and time.monotonic() - started < _TIMEOUT_S:
        time.sleep(1.0)
    _review_cases(desk, truth)


def _labels(desk: Desk) -> tuple[str, ...]:
    return tuple(label for label in desk.classes if label in LABELS) or ("N",)


def _upload_recording(desk: Desk, number: int, label: str) -> str:
    """Simulate a recording, upload it as a user would, and return its id; some are in two files, some are noisy."""
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
            done = asyncio.run(receive_upload(desk, _UPLOADER, path.name, _chunks(path.read_bytes())))
            ids.add(done.row.id)
    return ids.pop()


async def _chunks(content: bytes) -> AsyncIterator[bytes]:
    yield content


def _n_waiting(desk: Desk) -> int:
    with desk.store.read_session() as session:
        return worklist.count_states(session)["waiting"]


def _review_cases(desk: Desk, truth: dict[str, str]) -> None:
    """Review half of the open cases: mostly right, sometimes wrong, sometimes following the ensemble."""
    rng = numpy_generator(_SEED, "demo", "readers")
    with desk.store.read_session() as session:
        rows, total = worklist.query_worklist(session, WorklistFilter(state=worklist.OPEN), limit=500)
    for number, (row, _) in enumerate(rows[: round(_REVIEWED_SHARE * total)]):
        reader = Actor(_READERS[number % len(_READERS)], frozenset())
        with desk.store.write_session() as session:
            case = session.merge(row)
            right = truth.get(row.id, desk.classes[0])
            wrong = desk.classes[int(rng.integers(len(desk.classes)))]
            first = wrong if rng.random() < _WRONG_SHARE else right
            label = reviews.latest_result(session, row.id).label
            final = label if rng.random() < _FOLLOWING_SHARE else first
            reviews.claim_case(session, case, desk.reviewer(reader))
            for answer in (first, final):
                reviews.add_verdict(session, case, desk.reviewer(reader), Judgement(CLASS, (answer,)))
