"""Write a bundle for others: the weights, and a card with their results."""

from pathlib import Path

from ecgquorum.ensemble import read_card
from ecgquorum.ensemble.bundle import add_to_card
from ecgquorum.evaluation import Scorecard
from ecgquorum.report import select_results


def pack(model: str | Path, scorecard: Scorecard, out: str | Path) -> Path:
    """Write the bundle of `model` to the new folder `out`, with its results from the scorecard in its card."""
    return add_to_card(model, out, {"results": select_results(scorecard, read_card(model))})
