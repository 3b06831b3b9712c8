"""The paper's network, its attacks and its losses against the published arithmetic."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from torch.nn import functional as F

from ecgquorum.attacks import SAP, input_gradient, pgd_steps
from ecgquorum.attacks.attack import cross_entropy
from ecgquorum.attacks.sap import PHYSIONET_KERNELS, smooth
from ecgquorum.losses import decorrelation
from ecgquorum.members import DilatedMember, freeze, rings
from ecgquorum.members.band_filter import BandFilter

from . import published
from .measuring import print_heading, print_row, ratios, seconds

N_SAMPLES, EPSILON, RATE_HZ = 18_000, 50.0, 300.0


def _make_pair() -> tuple[published.Published, DilatedMember]:
    """The published network and ours, with the same weights."""
    theirs, ours = published.Published(1, 4).eval(), DilatedMember(1, 4).eval()
    for block, conv, norm in zip(ours.blocks, theirs.convs, theirs.norms, strict=True):
        block.conv.load_state_dict(conv.state_dict())
        block.norm.load_state_dict(norm.state_dict())
    ours.head.load_state_dict(theirs.linear.state_dict())
    return theirs, ours


def compare_networks(rounds: int, peak: float) -> None:
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

    their_step, our_step = training_step(theirs, natural, label), training_step(ours, natural, label)
    rows: list[tuple[str, Callable[[], object], Callable[[], object], float]] = [
        ("inference", their_inference, our_inference, 7),
        ("PGD step", lambda: published.pgd_step(theirs, natural, natural, label, EPSILON), our_pgd, 9),
        ("SAP step", lambda: published.sap_step(theirs, natural, natural, label, EPSILON, kernels), our_sap, 8),
        ("training step", their_step, our_step, 6),
    ]
    print_heading(f"the paper's network, {N_SAMPLES} samples, batches of 4", "times as fast")
    for name, their_way, our_way, aim in rows:
        network_mode = name == "training step"
        theirs.train(network_mode)
        ours.train(network_mode)
        print_row(name, 1 / ratios({"published": their_way, "ours": our_way}, rounds)["ours"], aim)
    ours.eval()
    taken = seconds(our_inference)
    arithmetic = 2 * published.multiplications(N_SAMPLES) * len(natural)
    print_row("published arithmetic done a second, over the peak", arithmetic / taken / peak)


def training_step(network: torch.nn.Module, x: torch.Tensor, label: torch.Tensor) -> Callable[[], None]:
    optimiser = torch.optim.Adam(network.parameters())

    def step() -> None:
        optimiser.zero_grad()
        answer = network(x)
        F.cross_entropy(answer[0] if isinstance(answer, tuple) else answer, label).backward()
        optimiser.step()

    return step


def compare_small_parts(rounds: int) -> None:
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
    print_heading("beside the network", "times as fast")
    for name, (their_way, our_way) in comparisons.items():
        print_row(name, 1 / ratios({"published": their_way, "ours": our_way}, rounds)["ours"])


def compare_memory() -> None:
    """Compare the peak memory of a training step, each measured in its own process."""
    peaks = {}
    for which in ("published", "ours"):
        command = [sys.executable, "-m", "benchmarks", "--memory-of", which]
        done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
        peaks[which] = float(done.stdout)
    print_heading("peak memory of a training step, for one recording", "ratio")
    print_row("ours over the published", peaks["ours"] / peaks["published"], 0.45, digits=2, most=True)


def training_step_peak(which: str) -> float:
    """Peak memory per recording in megabytes, from batches of 2 and 8."""
    theirs, ours = _make_pair()
    network = theirs.train() if which == "published" else ours.train()
    peaks = []
    for size in (2, 8):
        training_step(network, torch.randn(size, 1, N_SAMPLES) * 200, torch.arange(size) % 4)()
        peaks.append(_peak_memory())
    return (peaks[1] - peaks[0]) / 6


def _peak_memory() -> float:
    """Peak memory of this process in megabytes. (`getrusage` would start with the parent's.)"""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
