"""Limb leads from one another: any two of I, II and III determine all six (Einthoven, Goldberger)."""

from collections.abc import Container

import numpy as np
from numpy.typing import NDArray

from ecgquorum.recordings.recording import Recording

_FROM_I_AND_II = {"I": (1.0, 0.0), "II": (0.0, 1.0), "III": (-1.0, 1.0)}
_FROM_I_AND_II |= {"aVR": (-0.5, -0.5), "aVL": (1.0, -0.5), "aVF": (-0.5, 1.0)}
_MEASURED = ("I", "II", "III")


def derived(recording: Recording, lead: str, sound: Container[str]) -> NDArray[np.float32] | None:
    """The lead's samples, computed from two sound ones; None where these are not there, or it is no limb lead."""
    there = [name for name in _MEASURED if name in sound][:2]
    if lead not in _FROM_I_AND_II or len(there) < 2:
        return None
    rows = recording.signal[[recording.leads.index(name) for name in there]]
    mixing = np.array([_FROM_I_AND_II[name] for name in there])
    shares = np.array(_FROM_I_AND_II[lead]) @ np.linalg.inv(mixing)
    return np.asarray(shares @ rows, dtype=np.float32)
