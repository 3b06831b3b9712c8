"""Decorrelation of features between members."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final, get_args

from torch import Tensor

from ecgquorum.errors import TrainingError
from ecgquorum.losses import Projection, decorrelation, fewest_records
from ecgquorum.training.step import Step
from ecgquorum.training.strategies.strategy import RunFacts, Strategy, check_numbers


@final
@dataclass(frozen=True)
class Decorrelation(Strategy):
    """Penalise features that are linearly predictable from an earlier member's: adds weight * L to the loss.

    L is `losses.decorrelation`, averaged over all earlier members, whose features are those of their own training.

    weight:     lambda
    projected:  r, the number of random directions that predict
    projection: what is projected: "regressor" (the published code), "regressor-with-ones" (the paper's algorithm) or
                "regressand" (its displayed equation)
    whiten:     predict directions of equal variance, so that inflating one does not lower the loss (beyond the paper)
    """

    uses_earlier_members: ClassVar[bool] = True

    weight: float = 0.2
    projected: int = 32
    projection: Projection = "regressor"
    whiten: bool = False

    def __post_init__(self) -> None:
        check_numbers(self, "weight")
        check_numbers(self, "projected", low=1, whole=True)
        if self.projection not in get_args(Projection):
            known = ", ".join(get_args(Projection))
            raise TrainingError(f"strategy dec: projection: expected one of {known}, found {self.projection!r}")
        if not isinstance(self.whiten, bool):
            raise TrainingError(f"strategy dec: whiten: expected true or false, found {self.whiten!r}")

    def prepare(self, run: RunFacts) -> Strategy:
        """Check that batches are large enough for the regression."""
        if run.n_features == 0:
            raise TrainingError(
                "strategy dec needs the members' features: give their class a method embed(x) -> (batch, feature) "
                "or let it end in nn.Linear"
            )
        needed = fewest_records(run.n_features, self.projected, self.projection)
        if run.batch_size < needed:
            raise TrainingError(
                f"strategy dec: expected batches of at least {needed} recordings for its regression, found "
                f"a batch_size of {run.batch_size}; raise it, or lower projected"
            )
        return self

    def describe(self, member: int) -> dict[str, Any] | None:
        """The first member has no earlier one, and is trained as without this strategy."""
        return self.parameters if member > 0 else None

    def loss_terms(self, step: Step) -> Tensor | float:
        """Return weight * L of the whole batch's features against those of the earlier members."""
        if not step.earlier:
            return 0.0

        def loss(features: Tensor, earlier: Sequence[Tensor]) -> Tensor:
            return decorrelation(
                features,
                earlier,
                generator=step.generator,
                n_projected=self.projected,
                projection=self.projection,
                whiten=self.whiten,
            )

        return self.weight * step.batch_loss(loss, "decorrelation")
