"""Projected gradient descent on the cross-entropy (METHOD, section 7)."""

from dataclasses import dataclass
from typing import final

from torch import Tensor
from torch.nn import functional as F

from ecgquorum.attacks.attack import Attack, Classifier, sign_steps
from ecgquorum.cohorts import Batch


@final
@dataclass(frozen=True)
class PGD(Attack):
    """x <- clip_eps(x + alpha sgn grad L), with alpha = epsilon / 10, from the recording itself."""

    n_steps: int = 20

    def perturb(self, classifier: Classifier, batch: Batch) -> Tensor:
        """The last of the steps."""

        def loss(x: Tensor) -> Tensor:
            return F.cross_entropy(classifier(x), batch.label, reduction="sum")

        return sign_steps(batch.signal, batch.valid, loss, epsilon=self.epsilon, n_steps=self.n_steps)
