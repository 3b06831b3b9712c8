"""A bundle to give to others: the weights, and a card that says how they did."""

from pathlib import Path

from ecgquorum.ensemble import load_ensemble
from ecgquorum.ensemble.bundle import add_to_card
from ecgquorum.errors import BundleError
from ecgquorum.evaluation import Scorecard
from ecgquorum.report import published_results


def pack(model: str | Path, scorecard: Scorecard, out: str | Path) -> Path:
    """Write the bundle of `model` to the folder `out`, with what the scorecard says of it in its card."""
    digest = load_ensemble(model).card["weights_sha256"]
    if digest not in {one.model for one in scorecard.ensembles}:
        raise BundleError(f"{model}: expected a scorecard of these weights ({digest[:12]}...), found one of others")
    return add_to_card(model, out, {"results": published_results(scorecard, digest)})
