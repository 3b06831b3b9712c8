"""Measure speed: against the published implementation, against the path of the previous release, and by itself.

python -m benchmarks [--rounds N] [--plot FILE]
"""

import argparse
import time
from pathlib import Path

import torch

from . import attack_table, compact, growth, paper_network, waiting
from .measuring import matmul_peak


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="rounds of each comparison; their median is printed")
    parser.add_argument("--plot", type=Path, help="also draw how time grows with files, length, members and cores")
    parser.add_argument("--memory-of", choices=("published", "ours"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.memory_of:
        print(paper_network.training_step_peak(arguments.memory_of))
        return
    torch.manual_seed(0)
    started = time.perf_counter()
    print(f"{torch.get_num_threads()} threads, PyTorch {torch.__version__}, medians of {arguments.rounds} rounds")
    peak = matmul_peak()
    paper_network.compare_networks(arguments.rounds, peak)
    paper_network.compare_small_parts(10 * arguments.rounds)
    paper_network.compare_memory()
    compact.measure(arguments.rounds)
    waiting.measure(arguments.rounds)
    attack_table.measure()
    if arguments.plot:
        growth.measure(arguments.plot)
    taken = time.perf_counter() - started
    print(f"\nmatrix products reach {peak / 1e9:.0f} GFLOP/s here; all of this took {taken:.0f} s")


if __name__ == "__main__":
    main()
