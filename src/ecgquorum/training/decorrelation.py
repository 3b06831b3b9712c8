"""Decorrelation: a member pays for features that another member's features predict linearly (METHOD, section 4).

For a regressor A and a regressand B, both (record, feature), with P the orthogonal projector on the columns of the
projected regressor,
    L = log(SS_tot + 1e-5) - log(SS_res + 1e-5),  SS_res = |B - P B|^2,  SS_tot = |B - mean B|^2,
which is -log(1 - R^2) of the fit. P comes from a Cholesky factor in float64 with a tiny ridge, so gradients are finite
whatever the features' rank.
"""

import time
from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from ecgquorum.cohorts import Cohort
from ecgquorum.parallel import distributed
from ecgquorum.recipes import DecorrelationRecipe

Projection = Literal["regressor", "regressor-with-ones", "regressand"]
"""What is projected at random. "regressor": [A R, 1], as the published code does; "regressor-with-ones": [A, 1] R, as
the paper's algorithm says; "regressand": B R against [A, 1], as its displayed equation says."""

_FLOOR = 1e-5
_RIDGE = 1e-12


def fewest_records(n_features: int, n_projected: int, projection: Projection) -> int:
    """The smallest batch on which a fit means anything: two more records than regressors."""
    return (n_features if projection == "regressand" else n_projected) + 2


def decorrelation_loss(
    features: Tensor,
    stored: Sequence[Tensor],
    generator: torch.Generator,
    *,
    n_projected: int = 32,
    projection: Projection = "regressor",
    whiten: bool = False,
) -> Tensor | None:
    """The mean over earlier members of L, features against stored; None when the batch is too small for a fit.

    features: (record, feature) of the member in training
    stored:   the same records' features of each earlier member
    whiten:   predict random directions of the regressand, half as many as are projected on, at equal variance, so
              that inflating one direction does not pay (beyond the paper)

    For each earlier member, a coin decides which of the two predicts the other, and a fresh matrix projects.
    """
    n_records, n_features = features.shape
    if n_records < fewest_records(n_features, n_projected, projection):
        return None
    ours = features.double()
    terms = []
    for theirs in stored:
        pair = (ours, theirs.double())
        if torch.rand((), generator=generator) < 0.5:
            pair = pair[::-1]
        regressor, regressand = pair
        if whiten:
            regressand = whitened(_projected(regressand, max(1, n_projected // 2), generator))
        terms.append(_unlikeness(regressor, regressand, generator, n_projected, projection))
    return torch.stack(terms).mean().to(features.dtype)


def whitened(features: Tensor) -> Tensor:
    """Centred features with equal variance in every direction; wants several times more records than features."""
    centred = features - features.mean(dim=0)
    covariance = centred.T @ centred / len(features)
    ridge = _RIDGE * covariance.diagonal().mean().detach() + 1e-8
    factor = torch.linalg.cholesky(
        covariance + ridge * torch.eye(len(covariance), dtype=features.dtype, device=features.device)
    )
    white: Tensor = torch.linalg.solve_triangular(factor, centred.T, upper=False).T
    return white


def residual(regressor: Tensor, regressand: Tensor) -> Tensor:
    """B - P B, with P the projector on the regressor's columns."""
    gram = regressor.T @ regressor
    ridge = _RIDGE * gram.diagonal().mean().detach() + 1e-30
    factor = torch.linalg.cholesky(gram + ridge * torch.eye(len(gram), dtype=gram.dtype, device=gram.device))
    return regressand - regressor @ torch.cholesky_solve(regressor.T @ regressand, factor)


def _unlikeness(
    regressor: Tensor, regressand: Tensor, generator: torch.Generator, n_projected: int, projection: Projection
) -> Tensor:
    ones = torch.ones(len(regressor), 1, dtype=regressor.dtype, device=regressor.device)
    if projection == "regressor-with-ones":
        columns = _projected(torch.cat([regressor, ones], dim=1), n_projected, generator)
        left = residual(columns, regressand)
    else:
        if projection == "regressor":
            regressor = _projected(regressor, n_projected, generator)
        else:
            regressand = _projected(regressand, n_projected, generator)
        # a column of ones among the regressors is the same as centring both sides
        left = residual(regressor - regressor.mean(dim=0), regressand - regressand.mean(dim=0))
    total = (regressand - regressand.mean(dim=0)).square().sum()
    unlikeness: Tensor = torch.log(total + _FLOOR) - torch.log(left.square().sum() + _FLOOR)
    return unlikeness


def _projected(features: Tensor, n_projected: int, generator: torch.Generator) -> Tensor:
    """Features times a fresh matrix with entries N(0, 1 / features)."""
    n_features = features.shape[1]
    matrix = torch.randn(n_features, n_projected, generator=generator, dtype=torch.float64) / n_features**0.5
    projected: Tensor = features @ matrix.to(features.device, features.dtype)
    return projected


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
        term = decorrelation_loss(
            leaf,
            [stored[rows].to(features.device) for stored in self._stored],
            generator,
            n_projected=self._recipe.projected,
            projection=self._recipe.projection,
            whiten=self._recipe.whiten,
        )
        result: Tensor | float = 0.0
        if term is None:
            self._skipped += 1
        else:
            # the term's own backward pass runs here, inside the clock; what goes on is linear in the features, with
            # the term's value and gradient
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
