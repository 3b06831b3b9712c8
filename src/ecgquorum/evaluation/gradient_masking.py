"""Does a defence only hide its gradients? Signs that it does (Athalye et al. 2018).

Where gradients are honest, more steps raise the loss until it levels off, no recording has a gradient of zero, and who
knows the model (white box) does at least as well as who attacks through another one (transfer), who does at least as
well as who only asks for answers (black box).
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
from ecgquorum.evaluation.metric_rows import Measured
from ecgquorum.members import freeze
from ecgquorum.metrics import measures
from ecgquorum.metrics.measures import bootstrap

STEPS = (0, 1, 2, 5, 10, 20, 50, 100)
"""After how many steps of PGD on the ensemble the loss is read."""


def check_gradient_masking(ensemble: Ensemble, batch: Batch, epsilon: float, seed: int) -> Iterator[Measured]:
    """The loss after so many steps, shares of errors by what the attacker knows, and of gradients that are zero.

    What one attacker achieves less than the one who knows less is measured on the same recordings.
    """
    loss = cross_entropy(ensemble, batch.label)
    attacked, done = batch.signal, 0
    try:
        with freeze(ensemble):
            _, gradient = input_gradient(loss, batch.signal)
    except AttackError:
        yield Measured("zero_gradients", "", _share(np.ones(len(batch.label), dtype=bool)))
        return
    with freeze(ensemble):
        dead = (gradient * batch.valid).abs().amax(dim=(1, 2)) == 0
        lost = ~torch.isfinite(gradient).all(dim=2).all(dim=1)
        bound = PGD(epsilon).bound(batch.signal)
        for steps in STEPS:
            attacked = pgd_steps(
                loss, batch.signal, batch.valid, bound, start=attacked - batch.signal, n_steps=steps - done
            )
            done = steps
            with torch.no_grad():
                values = loss(attacked).double().cpu().numpy()
            yield Measured("loss", f"{steps} steps", _mean(values))
    generator = torch.Generator().manual_seed(seed)
    through = PGD(epsilon, n_steps=STEPS[-1])(ensemble.members[0], batch.signal, batch.label, batch.valid)
    asked = Square(epsilon, n_queries=2 * STEPS[-1])(
        ensemble, batch.signal, batch.label, batch.valid, generator=generator
    )
    signals = {"white box": attacked, "transfer": through, "black box": asked}
    wrong = {name: _wrong(ensemble, signal, batch.label) for name, signal in signals.items()}
    for name, flags in wrong.items():
        yield Measured("error_rate", name, _share(flags))
    for knows, knows_less in combinations(wrong, 2):
        advantage = wrong[knows].astype(float) - wrong[knows_less]
        yield Measured("advantage", f"{knows} over {knows_less}", _mean(advantage))
    yield Measured("zero_gradients", "", _share((dead | lost).cpu().numpy()))


def _wrong(ensemble: Ensemble, signal: Tensor, label: Tensor) -> np.ndarray:
    with freeze(ensemble), torch.no_grad():
        return np.asarray((ensemble(signal).argmax(dim=1) != label).cpu().numpy())


def _share(flags: np.ndarray) -> measures.Estimate:
    return bootstrap(partial(measures.accuracy, flags), len(flags))


def _mean(values: np.ndarray) -> measures.Estimate:
    return bootstrap(lambda weights: weights @ values / weights.sum(axis=1), len(values))
