"""Derive limb leads: any two of I, II and III determine all six (Einthoven, Goldberger)."""

from collections.abc import Container

import numpy as np
from numpy.typing import NDArray

from ecgquorum.recordings.recording import Recording

_FROM_I_AND_II = {"I": (1.0, 0.0), "II": (0.0, 1.0), "III": (-1.0, 1.0)}
_FROM_I_AND_II |= {"aVR": (-0.5, -0.5), "aVL": (1.0, -0.5), "aVF": (-0.5, 1.0)}
_MEASURED = ("I", "II", "III")


def derive_lead(recording: Recording, lead: str, usable: Container[str]) -> NDArray[np.float32] | None:
    """Compute a limb lead, (time,), from two usable ones of I, II and III; None if that is not possible."""
    sources = [name for name in _MEASURED if name in usable][:2]
    if lead not in _FROM_I_AND_II or len(sources) < 2:
        return None
    rows = recording.signal[[recording.leads.index(name) for name in sources]]
    mixing = np.array([_FROM_I_AND_II[name] for name in sources])
    weights = np.array(_FROM_I_AND_II[lead]) @ np.linalg.inv(mixing)
    return np.asarray(weights @ rows, dtype=np.float32)
