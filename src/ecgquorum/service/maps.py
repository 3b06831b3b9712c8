"""Attribution maps of the members, for the viewer."""

import threading
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from ecgquorum.ensemble.attribution import attribute
from ecgquorum.errors import FittingError
from ecgquorum.service.desk import Desk
from ecgquorum.service.http_errors import NotFoundError
from ecgquorum.service.store.recordings import find_recording
from ecgquorum.service.store.tables import RecordingRow

_MAX_POINTS = 1000
_MAX_S = 120.0
_CACHE_SIZE = 64
_lock = threading.Lock()


class MemberMap(BaseModel):
    """Attribution of one member over time for each lead, from 0 to 1."""

    name: str
    leads: dict[str, list[float]]


class Maps(BaseModel):
    """Attribution maps from `start_s` to `stop_s`."""

    start_s: float
    stop_s: float
    members: list[MemberMap]


def make_maps(desk: Desk, row: RecordingRow) -> Maps:
    """Attribution maps of a recording that has been read, of its first two minutes at most."""
    try:
        with _lock:
            return _maps(desk, row.id)
    except FittingError as error:
        raise NotFoundError(f"the model cannot process this recording: {error}") from error


@lru_cache(maxsize=_CACHE_SIZE)
def _maps(desk: Desk, recording_id: str) -> Maps:
    with desk.store.read_session() as session:
        recording = desk.recording(find_recording(session, recording_id))
    stop_s = min(recording.seconds, _MAX_S)
    attribution = attribute(desk.ensemble, recording, "gradient", desk.settings.lead, span_s=(0.0, stop_s))
    n_shown = min(recording.n_samples, round(stop_s * recording.rate_hz))
    members = [
        MemberMap(
            name=f"member {number} ({attribution.classes[number]})",
            leads={
                lead: _downsample(values[:n_shown]) for lead, values in zip(attribution.leads, by_lead, strict=True)
            },
        )
        for number, by_lead in enumerate(attribution.values)
    ]
    return Maps(start_s=0.0, stop_s=stop_s, members=members)


def _downsample(values: NDArray[np.float64]) -> list[float]:
    """At most `_MAX_POINTS` values, each the maximum of its segment."""
    parts = np.array_split(np.nan_to_num(values), min(len(values), _MAX_POINTS))
    return [round(float(np.clip(part.max(), 0.0, 1.0)), 4) for part in parts]
