"""The time of the paper's table for one strategy: PGD and SAP on member 0 at four strengths, 853 recordings."""

import torch

from ecgquorum import load_ensemble
from ecgquorum.attacks import PGD, SAP

from .compact import make_batch
from .measuring import print_heading, print_row, seconds

_RECORDS, _TABLE_RECORDS, _STRENGTHS = 32, 853, 4


def measure() -> None:
    """Print the row. SAP starts from the result of PGD, which the evaluation keeps."""
    member = load_ensemble("physionet2017").members[0]
    batch, label = make_batch(_RECORDS, 30.0), torch.zeros(_RECORDS, dtype=torch.long)
    x = batch.signal
    pgd = seconds(lambda: PGD(50.0)(member, x, label, batch.valid), 1)
    sap = seconds(lambda: SAP(50.0, start=torch.zeros_like(x))(member, x, label, batch.valid), 1)
    minutes = (pgd + sap) * _STRENGTHS * _TABLE_RECORDS / _RECORDS / 60
    print_heading("attacks on physionet2017, recordings of 30 s", "")
    print_row("PGD and SAP at four strengths, 853 recordings, from 32 (min)", minutes, 25, most=True)
