"""Maps of what members looked at, for the viewer."""

import threading
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from ecgquorum.ensemble.attribution import attribute
from ecgquorum.errors import FittingError
from ecgquorum.service.desk import Desk
from ecgquorum.service.http_errors import Missing
from ecgquorum.service.store.recordings import found
from ecgquorum.service.store.tables import RecordingRow

_MOST_POINTS = 1000
_LONGEST_S = 120.0
_KEPT = 64
_one_at_a_time = threading.Lock()


class MemberMap(BaseModel):
    """How much a member looked at each part of each lead, 0 to 1."""

    name: str
    leads: dict[str, list[float]]


class Maps(BaseModel):
    """Where members looked, from `start_s` to `stop_s`."""

    start_s: float
    stop_s: float
    members: list[MemberMap]


def maps_of(desk: Desk, row: RecordingRow) -> Maps:
    """The maps of a recording that has been read; of its first two minutes, if it is longer."""
    try:
        with _one_at_a_time:
            return _maps(desk, row.id)
    except FittingError as error:
        raise Missing(f"expected a recording that the model can look at, found: {error}") from error


@lru_cache(maxsize=_KEPT)
def _maps(desk: Desk, recording_id: str) -> Maps:
    with desk.store.reading() as session:
        recording = desk.recording(found(session, recording_id))
    stop_s = min(recording.seconds, _LONGEST_S)
    looks = attribute(desk.ensemble, recording, "gradient", desk.settings.lead, span_s=(0.0, stop_s))
    n_shown = min(recording.n_samples, round(stop_s * recording.rate_hz))
    members = [
        MemberMap(
            name=f"member {number} ({looks.classes[number - 1]})",
            leads={lead: _thinned(values[:n_shown]) for lead, values in zip(looks.leads, by_lead, strict=True)},
        )
        for number, by_lead in enumerate(looks.values, start=1)
    ]
    return Maps(start_s=0.0, stop_s=stop_s, members=members)


def _thinned(values: NDArray[np.float64]) -> list[float]:
    """At most a thousand points, each the largest of its stretch."""
    parts = np.array_split(np.nan_to_num(values), min(len(values), _MOST_POINTS))
    return [round(float(np.clip(part.max(), 0.0, 1.0)), 4) for part in parts]
