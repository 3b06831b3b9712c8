"""Checks for gradient masking: does a defence hide its gradients instead of being robust (Athalye et al. 2018)?

Without masking, more steps raise the loss until it levels off, every recording has a gradient, and a white-box attack
makes at least as many errors as a transferred one, which makes at least as many as a black-box one.
"""

from collections.abc import Iterator
from functools import partial
from itertools import combinations

import numpy as np
import torch
from torch import Tensor

from ecgquorum.attacks import PGD, Square, input_gradient, pgd_steps
from ecgquorum.attacks.attack import cross_entropy
from ecgquorum.cohorts import Batch
from ecgquorum.ensemble import Ensemble
from ecgquorum.errors import AttackError
from ecgquorum.evaluation.metric_values import MetricValue
from ecgquorum.members import freeze
from ecgquorum.metrics import Array, Estimate, Flags, bootstrap, weighted_mean

STEPS = (0, 1, 2, 5, 10, 20, 50, 100)
"""Steps of PGD on the ensemble after which the loss is recorded."""


def check_gradient_masking(ensemble: Ensemble, batch: Batch, epsilon: float, seed: int) -> Iterator[MetricValue]:
    """Loss after each number of steps, error rates by the attacker's knowledge, and the share of zero gradients."""
    x, y, valid = batch.signal, batch.label, batch.valid
    loss = cross_entropy(ensemble, y)
    try:
        with freeze(ensemble):
            _, gradient = input_gradient(loss, x)
    except AttackError:
        yield MetricValue("zero_gradients", "", _mean(np.ones(len(y), dtype=bool)))
        return
    white_box, done = x, 0
    with freeze(ensemble):
        for steps in STEPS:
            bound = PGD(epsilon).bound(x)
            white_box = pgd_steps(loss, x, valid, bound, start=white_box - x, n_steps=steps - done).detach()
            done = steps
            with torch.no_grad():
                values = loss(white_box).double().cpu().numpy()
            yield MetricValue("loss", f"{steps} steps", _mean(values))
    generator = torch.Generator().manual_seed(seed)
    attacked = {
        "white box": white_box,
        "transfer": PGD(epsilon, n_steps=STEPS[-1])(ensemble.members[0], x, y, valid),
    }
    if x.ndim == 3:  # Square changes stretches of time
        queries = Square(epsilon, n_queries=2 * STEPS[-1])
        attacked["black box"] = queries(ensemble, x, y, valid, generator=generator)
    errors = {name: _find_errors(ensemble, signal, y) for name, signal in attacked.items()}
    for name, flags in errors.items():
        yield MetricValue("error_rate", name, _mean(flags))
    for knows, knows_less in combinations(errors, 2):
        advantage = errors[knows].astype(float) - errors[knows_less]
        yield MetricValue("advantage", f"{knows} over {knows_less}", _mean(advantage))
    zero = (gradient * valid).flatten(1).abs().amax(dim=1) == 0
    not_finite = ~torch.isfinite(gradient).flatten(1).all(dim=1)
    yield MetricValue("zero_gradients", "", _mean((zero | not_finite).cpu().numpy()))


def _find_errors(ensemble: Ensemble, signal: Tensor, labels: Tensor) -> Flags:
    with freeze(ensemble), torch.no_grad():
        return np.asarray((ensemble(signal).argmax(dim=1) != labels).cpu().numpy())


def _mean(values: Array | Flags) -> Estimate:
    return bootstrap(partial(weighted_mean, values), len(values))
