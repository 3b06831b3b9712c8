"""Paths of version 0.1, to measure against: `wfdb` reads recordings, and they share a batch in the order they come.

Both give what the present paths give, up to rounding; tests/test_benchmarks.py says so.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import wfdb

from ecgquorum.cohorts import make_batch
from ecgquorum.ensemble import Ensemble
from ecgquorum.preprocessing.input_spec import Signal

_BATCH = 32


def read_wfdb(header: Path) -> np.ndarray:
    """Return the samples in millivolts, (lead, time)."""
    record = wfdb.rdrecord(str(header.with_suffix("")), physical=True)
    return np.asarray(record.p_signal.T, dtype=np.float32)


def predict_in_order(ensemble: Ensemble, signals: Sequence[Signal]) -> np.ndarray:
    """Return probabilities (recording, member, class) of prepared signals."""
    batches = [signals[start : start + _BATCH] for start in range(0, len(signals), _BATCH)]
    return np.concatenate([ensemble.member_outputs(make_batch(b, ensemble.input.n_window))[0] for b in batches])
