"""The compact network: a training epoch, the cost of decorrelation, and inference."""

import tempfile
from pathlib import Path

import torch

from ecgquorum.cohorts import Batch, build_cohort, open_source
from ecgquorum.ensemble import Ensemble
from ecgquorum.members import CompactMember, rings
from ecgquorum.members.band_filter import BandFilter
from ecgquorum.preprocessing import InputSpec

from .measuring import print_heading, print_row, seconds
from .paper_network import RATE_HZ, training_step
from .training import N_EARLIER, measure_steps

EPOCH_RECORDS, EPOCH_BATCH = 7_760, 64
_RECORDS = 32


def make_ensemble(n_members: int, window_s: float = 30.0) -> Ensemble:
    """Return an ensemble of untrained members, of which two in three see half of the frequencies."""
    bands = (None, rings(RATE_HZ, 0), rings(RATE_HZ, 1))
    members: list[torch.nn.Module] = []
    for k in range(n_members):
        network, edges = CompactMember(1, 4, RATE_HZ), bands[k % 3]
        members.append(network if edges is None else BandFilter(edges, RATE_HZ).then(network))
    return Ensemble(members, ("N", "A", "O", "~"), InputSpec(("ECG",), RATE_HZ, "microvolt", window_s)).eval()


def make_batch(n_records: int, length_s: float) -> Batch:
    """Return a batch of noise."""
    x = torch.randn(n_records, 1, round(length_s * RATE_HZ)) * 200
    valid = torch.ones(n_records, 1, x.shape[2], dtype=torch.bool)
    return Batch(x, valid, torch.zeros(n_records, dtype=torch.long))


def measure(rounds: int) -> None:
    """Print the rows."""
    print_heading("compact", "")
    member = CompactMember(1, 4, RATE_HZ, dropout=0.2).train()
    x, label = torch.randn(EPOCH_BATCH, 1, 9000) * 200, torch.arange(EPOCH_BATCH) % 4
    epoch = seconds(training_step(member, x, label), 8) * EPOCH_RECORDS / EPOCH_BATCH
    print_row(f"an epoch of {EPOCH_RECORDS} records of 30 s, by its steps (s)", epoch, 30, most=True)
    with tempfile.TemporaryDirectory() as folder:
        cohort, _ = build_cohort(open_source("synthetic:physionet2017", records=100, seconds=2.0), Path(folder) / "c")
        ratio = measure_steps("compact", cohort, rounds, ("baseline", "dec by logits"))["dec by logits"]
    each = 1 + (ratio - 1) / N_EARLIER
    print_row("a step with one earlier member, over one without", each, 1.15, digits=2, most=True)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    ensemble, batch = make_ensemble(3), make_batch(_RECORDS, 30.0)
    taken = 1000 * seconds(lambda: ensemble.member_probs(batch), rounds) / _RECORDS
    torch.set_num_threads(threads)
    print_row("30 s by three members, one of a batch of 32, on one core (ms)", taken, 4.5, most=True)
