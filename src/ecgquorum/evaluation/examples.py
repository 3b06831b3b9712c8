"""Recordings to look at: what an attack does to a trace."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ecgquorum.metrics.measures import Flags, Labels
from ecgquorum.preprocessing import InputSpec

if TYPE_CHECKING:
    from ecgquorum.cohorts import Batch, Cohort

N_EXAMPLES, EXAMPLE_S = 3, 6.0


@dataclass(frozen=True, eq=False)
class Example:
    """The beginning of a recording on one lead, natural and attacked, in millivolts.

    place:    in the part
    crafted:  condition's number -> the attacked stretch
    drawn_of: condition's number -> the ensembles that were given exactly this; others were attacked through their own
    """

    place: int
    id: str
    lead: str
    rate_hz: float
    natural: NDArray[np.float32] = field(repr=False)
    crafted: dict[int, NDArray[np.float32]] = field(repr=False)
    drawn_of: dict[int, tuple[str, ...]]


def choose_examples(cohort: "Cohort", indices: Labels, eligible: Flags, all_right: Flags) -> list[Example]:
    """One a class: its first eligible recording that all ensembles get right when it is natural, else its first."""
    truth, lead = cohort.labels[indices], _lead(cohort)
    examples: list[Example] = []
    for label in range(len(cohort.classes)):
        places = np.flatnonzero((truth == label) & eligible)
        if len(places) and len(examples) < N_EXAMPLES:
            place = int(next((p for p in places if all_right[p]), places[0]))
            index = int(indices[place])
            natural = np.array(cohort.signal(index)[lead][: round(EXAMPLE_S * cohort.rate_hz)])
            examples.append(Example(place, cohort.rows[index].id, cohort.leads[lead], cohort.rate_hz, natural, {}, {}))
    return examples


def draw_attacked(example: Example, number: int, batch: "Batch", cohort: "Cohort", index: int, spec: InputSpec) -> None:
    """Keep how the example looks under condition `number`, as it is in the batch, alone."""
    lead, signal = _lead(cohort), cohort.signal(index)
    peak, scaled_peak = (float(np.abs(leads[lead]).max()) for leads in (signal, spec.scale(signal)))
    begin = int(batch.valid[0, 0].long().argmax())
    attacked = batch.signal[0, lead, begin : begin + len(example.natural)].cpu().numpy()
    example.crafted[number] = np.asarray(attacked * (peak / scaled_peak if peak else 1e-3), dtype=np.float32)


def _lead(cohort: "Cohort") -> int:
    """Lead II of the twelve, or the only one."""
    return min(1, len(cohort.leads) - 1)
