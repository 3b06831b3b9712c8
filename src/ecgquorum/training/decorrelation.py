"""The decorrelation term of a member in training."""

import time

import numpy as np
import torch
from torch import Tensor

from ecgquorum.cohorts import Cohort
from ecgquorum.losses import decorrelation, fewest_records
from ecgquorum.parallel import distributed
from ecgquorum.recipes import DecorrelationRecipe


class Decorrelation:
    """The decorrelation term of one member, with a clock and a count of the batches that were too small for it.

    stored: each earlier member's features, one row a recording of the train part
    """

    def __init__(self, recipe: DecorrelationRecipe, stored: list[Tensor], cohort: Cohort) -> None:
        self._recipe, self._stored = recipe, stored
        self._row_of = np.full(len(cohort), -1)
        self._row_of[cohort.part("train")] = np.arange(len(cohort.part("train")))
        self._values: list[Tensor] = []
        self._seconds, self._skipped = 0.0, 0

    def __call__(self, features: Tensor, indices: np.ndarray, generator: torch.Generator) -> Tensor | float:
        """lambda · L for the batch of these recordings; 0 where there is no earlier member, or no fit.

        features: of this rank's rows; each rank works out the whole term, and answers for its rows and its share of L
        """
        if not self._stored:
            return 0.0
        started = _now(features.device)
        rows = torch.from_numpy(self._row_of[indices])
        share = distributed.shard_batch(len(indices))
        leaf = share.gather(features).requires_grad_()
        needed = fewest_records(leaf.shape[1], self._recipe.projected, self._recipe.projection)
        if len(leaf) < needed:
            self._skipped += 1
            return 0.0
        term = decorrelation(
            leaf,
            [stored[rows].to(features.device) for stored in self._stored],
            generator=generator,
            n_projected=self._recipe.projected,
            projection=self._recipe.projection,
            whiten=self._recipe.whiten,
        )
        # the term's own backward pass runs here, inside the clock; what goes on is linear in the features, with the
        # term's value and gradient
        (gradient,) = torch.autograd.grad(term, leaf)
        linear = (gradient[share.rows()] * features).sum()
        result = self._recipe.weight * (term.detach() / share.n_ranks + linear - linear.detach())
        self._values.append(term.detach())
        self._seconds += _now(features.device) - started
        return result

    def taken(self) -> dict[str, float]:
        """The epoch's mean of the term, the time it took and the batches it skipped; begins anew."""
        row = {
            "decorrelation": float(torch.stack(self._values).mean()) if self._values else 0.0,
            "decorrelation_seconds": self._seconds,
            "decorrelation_skipped": self._skipped,
        }
        self._values, self._seconds, self._skipped = [], 0.0, 0
        return row


def _now(device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()
