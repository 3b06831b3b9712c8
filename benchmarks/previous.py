"""The path of version 0.1, to measure against: recordings share a batch in the order they come.

It gives what the present path gives, up to rounding; tests/test_benchmarks.py says so.
"""

from collections.abc import Sequence

import numpy as np

from ecgquorum.cohorts import make_batch
from ecgquorum.ensemble import Ensemble
from ecgquorum.preprocessing.input_spec import Signal

_BATCH = 32


def predict_in_order(ensemble: Ensemble, signals: Sequence[Signal]) -> np.ndarray:
    """Return probabilities (recording, member, class) of prepared signals."""
    batches = [signals[start : start + _BATCH] for start in range(0, len(signals), _BATCH)]
    return np.concatenate([ensemble.member_outputs(make_batch(b, ensemble.input.n_window))[0] for b in batches])
