"""Compare the speed of networks, attacks and losses with the published arithmetic, as ratios.

python -m benchmarks [--rounds N]
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
import wfdb
from torch.nn import functional as F

from ecgquorum.attacks import SAP, input_gradient, pgd_steps
from ecgquorum.attacks.attack import cross_entropy
from ecgquorum.attacks.sap import PHYSIONET_KERNELS, smooth
from ecgquorum.cohorts import Batch
from ecgquorum.ensemble import Ensemble, predict_files
from ecgquorum.losses import decorrelation
from ecgquorum.members import CompactMember, DilatedMember, freeze, rings
from ecgquorum.members.band_filter import BandFilter
from ecgquorum.preprocessing import InputSpec
from ecgquorum.simulation import simulate

from . import published
from .alternating import ratios

N_SAMPLES, EPSILON, RATE_HZ = 18_000, 50.0, 300.0
EPOCH_RECORDS, EPOCH_BATCH = 7_760, 64


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each comparison; their median is printed")
    parser.add_argument("--memory-of", choices=("published", "ours"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.memory_of:
        print(_training_step_peak(arguments.memory_of))
        return
    torch.manual_seed(0)
    started = time.perf_counter()
    print(f"{torch.get_num_threads()} threads, PyTorch {torch.__version__}, medians of {arguments.rounds} rounds\n")
    peak = _matmul_peak()
    _compare_with_published(arguments.rounds, peak)
    _compare_small_parts(20 * arguments.rounds)
    _compare_memory()
    _time_compact()
    _time_growth()
    print(
        f"\nmatrix products reach {peak / 1e9:.0f} GFLOP/s here; all of this took {time.perf_counter() - started:.0f} s"
    )


# --- the paper's network ---------------------------------------------------------------------------------------------


def _make_pair() -> tuple[published.Published, DilatedMember]:
    """The published network and ours, with the same weights."""
    theirs, ours = published.Published(1, 4).eval(), DilatedMember(1, 4).eval()
    for block, conv, norm in zip(ours.blocks, theirs.convs, theirs.norms, strict=True):
        block.conv.load_state_dict(conv.state_dict())
        block.norm.load_state_dict(norm.state_dict())
    ours.head.load_state_dict(theirs.linear.state_dict())
    return theirs, ours


def _compare_with_published(rounds: int, peak: float) -> None:
    theirs, ours = _make_pair()
    natural, label = torch.randn(4, 1, N_SAMPLES) * 200, torch.arange(4)
    valid = torch.ones(4, 1, N_SAMPLES, dtype=torch.bool)
    bound, sap = torch.full((4, 1, 1), EPSILON), SAP(EPSILON)
    kernels, kernel = published.sap_kernels(*PHYSIONET_KERNELS), sap.kernel().float()
    loss = cross_entropy(ours, label)

    def their_inference() -> None:
        with torch.no_grad():
            theirs(natural)

    def our_inference() -> None:
        with torch.inference_mode():
            ours(natural)

    def our_pgd() -> None:
        with freeze(ours):
            pgd_steps(loss, natural, valid, bound, n_steps=1)

    def our_sap() -> None:
        with freeze(ours):
            theta = torch.zeros_like(natural)
            input_gradient(lambda t: loss(natural + smooth(t, kernel)), theta)

    their_step, our_step = _training_step(theirs, natural, label), _training_step(ours, natural, label)
    rows: list[tuple[str, Callable[[], object], Callable[[], object], float]] = [
        ("inference", their_inference, our_inference, 5),
        ("PGD step", lambda: published.pgd_step(theirs, natural, natural, label, EPSILON), our_pgd, 7),
        ("SAP step", lambda: published.sap_step(theirs, natural, natural, label, EPSILON, kernels), our_sap, 8),
        ("training step", their_step, our_step, 4),
    ]
    print(f"the paper's network, {N_SAMPLES} samples, batches of 4    times as fast   aim")
    for name, their_way, our_way, aim in rows:
        network_mode = name == "training step"
        theirs.train(network_mode)
        ours.train(network_mode)
        faster = 1 / ratios({"published": their_way, "ours": our_way}, rounds)["ours"]
        print(f"  {name:54s} {faster:5.1f}          {aim:g}  {'met' if faster >= aim else 'missed'}")
    ours.eval()
    taken = _seconds(our_inference)
    arithmetic = 2 * published.multiplications(N_SAMPLES) * len(natural)
    print(f"  {'published arithmetic done a second, over the peak':54s} {arithmetic / taken / peak:5.1f}")


def _training_step(network: torch.nn.Module, x: torch.Tensor, label: torch.Tensor) -> Callable[[], None]:
    optimiser = torch.optim.Adam(network.parameters())

    def step() -> None:
        optimiser.zero_grad()
        answer = network(x)
        F.cross_entropy(answer[0] if isinstance(answer, tuple) else answer, label).backward()
        optimiser.step()

    return step


def _compare_small_parts(rounds: int) -> None:
    """Compare the parts beside the network: SAP's smoothing, band filters, decorrelation."""
    theta = torch.randn(4, 1, N_SAMPLES, requires_grad=True)
    kernels, kernel = published.sap_kernels(*PHYSIONET_KERNELS), SAP(EPSILON).kernel().float()
    band, bins = BandFilter(rings(RATE_HZ, 0), RATE_HZ), torch.fft.fftfreq(N_SAMPLES, 1 / RATE_HZ).abs()
    full = (bins % 30 < 15).to(torch.float32)
    features, stored = torch.randn(64, 64, requires_grad=True), torch.randn(64, 64)
    projection = torch.randn(64, 32) / 8
    draw = torch.Generator().manual_seed(0)

    def smooth_with_25_kernels() -> None:
        total = sum(F.conv1d(theta, one, padding=one.shape[2] // 2) for one in kernels)
        torch.autograd.grad(total.sum(), theta)  # type: ignore[union-attr]

    def published_decorrelation() -> None:
        torch.autograd.grad(published.decorrelation(features, stored, projection), features)

    def our_decorrelation() -> None:
        torch.autograd.grad(decorrelation(features, stored, generator=draw), features)

    comparisons = {
        "SAP's smoothing, forward and backward": (
            smooth_with_25_kernels,
            lambda: torch.autograd.grad(smooth(theta, kernel).sum(), theta),
        ),
        "a Fourier band": (lambda: published.band(theta.detach(), full), lambda: band(theta.detach())),
        "the decorrelation term, forward and backward": (published_decorrelation, our_decorrelation),
    }
    print("\nbeside the network                                       times as fast")
    for name, (their_way, our_way) in comparisons.items():
        print(f"  {name:54s} {1 / ratios({'published': their_way, 'ours': our_way}, rounds)['ours']:5.1f}")


def _compare_memory() -> None:
    """Compare the peak memory of a training step, each measured in its own process."""
    peaks = {}
    for which in ("published", "ours"):
        command = [sys.executable, "-m", "benchmarks", "--memory-of", which]
        done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
        peaks[which] = float(done.stdout)
    share = peaks["ours"] / peaks["published"]
    print("\npeak memory of a training step")
    print(f"  {'ours over the published, a recording':54s} {share:5.2f}          0.5  {_met(share <= 0.5)}")


def _training_step_peak(which: str) -> float:
    """Peak memory per recording in megabytes, from batches of 2 and 8."""
    theirs, ours = _make_pair()
    network = theirs.train() if which == "published" else ours.train()
    peaks = []
    for size in (2, 8):
        _training_step(network, torch.randn(size, 1, N_SAMPLES) * 200, torch.arange(size) % 4)()
        peaks.append(_peak_memory())
    return (peaks[1] - peaks[0]) / 6


def _peak_memory() -> float:
    """Peak memory of this process in megabytes. (`getrusage` would start with the parent's.)"""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


# --- compact ---------------------------------------------------------------------------------------------------------


def _ensemble(n_members: int, window_s: float = 30.0) -> Ensemble:
    bands = (None, rings(RATE_HZ, 0), rings(RATE_HZ, 1))
    members: list[torch.nn.Module] = []
    for k in range(n_members):
        network, edges = CompactMember(1, 4, RATE_HZ), bands[k % 3]
        members.append(network if edges is None else BandFilter(edges, RATE_HZ).then(network))
    return Ensemble(members, ("N", "A", "O", "~"), InputSpec(("ECG",), RATE_HZ, "microvolt", window_s)).eval()


def _time_compact() -> None:
    print("\ncompact                                                       took   aim")
    member = CompactMember(1, 4, RATE_HZ, dropout=0.2).train()
    x, label = torch.randn(EPOCH_BATCH, 1, 9000) * 200, torch.arange(EPOCH_BATCH) % 4
    epoch = _seconds(_training_step(member, x, label), 8) * EPOCH_RECORDS / EPOCH_BATCH
    name = f"an epoch of {EPOCH_RECORDS} records of 30 s, by its steps (s)"
    print(f"  {name:54s} {epoch:7.1f}   30  {_met(epoch <= 30)}")
    ensemble = _ensemble(3)
    recording = simulate("A", seed=0, seconds=30, leads=("ECG",)).recording
    one = 1000 * _seconds(lambda: ensemble.predict(recording), 20)
    print(f"  {'one recording of 30 s by three members (ms)':54s} {one:7.1f}   15  {_met(one <= 15)}")
    with tempfile.TemporaryDirectory() as folder:
        for number in range(200):
            signal = simulate("N", seed=number, seconds=30, leads=("ECG",)).recording.signal
            wfdb.wrsamp(
                f"r{number:03d}",
                fs=250,
                units=["mV"],
                sig_name=["ECG"],
                p_signal=signal.T.astype("float64"),
                fmt=["16"],
                write_dir=folder,
            )
        rate = 200 / _seconds(lambda: list(predict_files(ensemble, [Path(folder)])), 3)
    print(f"  {'WFDB files of 250 Hz, read, resampled and classified (1/s)':54s} {rate:7.0f}  100  {_met(rate >= 100)}")


def _time_growth() -> None:
    """Time predictions of more and longer recordings by more members, as multiples of the first of each line."""
    print("\ngrowth of prediction: time over the first, where the size is 1, 2, 4 times the first's")
    ensemble, three = _ensemble(3), _ensemble(3, 120.0)

    def line(name: str, runs: list[Callable[[], object]]) -> None:
        times = ratios({str(i): run for i, run in enumerate(runs)}, 5)
        print(f"  {name:54s} " + "  ".join(f"{times[str(i)]:4.2f}" for i in range(len(runs))))

    def predicting(by: Ensemble, n_records: int, seconds: float) -> Callable[[], object]:
        x = torch.randn(n_records, 1, round(seconds * RATE_HZ)) * 200
        batch = Batch(
            x, torch.ones(n_records, 1, x.shape[2], dtype=torch.bool), torch.zeros(n_records, dtype=torch.long)
        )
        return lambda: [by.member_probs(Batch(*(part[i : i + 16] for part in batch))) for i in range(0, n_records, 16)]

    line("recordings: 16, 32, 64", [predicting(ensemble, n, 30) for n in (16, 32, 64)])
    line("length: 30, 60, 120 s", [predicting(three, 16, s) for s in (30, 60, 120)])
    line("members: 3, 6, 12", [predicting(_ensemble(k), 16, 30) for k in (3, 6, 12)])


# --- measuring -------------------------------------------------------------------------------------------------------


def _matmul_peak() -> float:
    """Floating-point operations per second of a large matrix product."""
    a = torch.randn(2048, 2048)
    return float(2 * 2048**3 / _seconds(lambda: a @ a, 10))


def _seconds(run: Callable[[], object], times: int = 3) -> float:
    """Median time of a run, after one to warm up."""
    run()
    taken = []
    for _ in range(times):
        started = time.perf_counter()
        run()
        taken.append(time.perf_counter() - started)
    return sorted(taken)[len(taken) // 2]


def _met(met: bool) -> str:
    return "met" if met else "missed"


if __name__ == "__main__":
    main()
