"""One recording: what it is, how to read it, how to fit it to a model, how to simulate it."""

from ecgquorum.recordings.fitting import InputSpec
from ecgquorum.recordings.hints import Hints
from ecgquorum.recordings.leads import STANDARD_LEADS, UNNAMED_LEAD
from ecgquorum.recordings.reading import Unreadable, read, read_all
from ecgquorum.recordings.recording import Recording
from ecgquorum.recordings.synthetic import LABELS, Simulation, simulate
from ecgquorum.recordings.writing import write

__all__ = [
    "LABELS",
    "STANDARD_LEADS",
    "UNNAMED_LEAD",
    "Hints",
    "InputSpec",
    "Recording",
    "Simulation",
    "Unreadable",
    "read",
    "read_all",
    "simulate",
    "write",
]
