"""Decorrelation of what members compute."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, final, get_args

from torch import Tensor

from ecgquorum.errors import TrainingError
from ecgquorum.losses import (
    Projection,
    conditional_decorrelation,
    decorrelation,
    fewest_conditional_records,
    fewest_records,
)
from ecgquorum.training.step import Step
from ecgquorum.training.strategies.strategy import RunFacts, Strategy, check_numbers

Form = Literal["logits", "conditional", "paper"]
"""What is decorrelated: "logits", within each class; "conditional", features within each class; "paper", features as
published."""

_WEIGHT: dict[Form, float] = {"logits": 0.05, "conditional": 0.3, "paper": 0.2}
_PROJECTED: dict[Form, int] = {"logits": 16, "conditional": 16, "paper": 32}


@final
@dataclass(frozen=True)
class Decorrelation(Strategy):
    """Penalise what a member has in common with earlier ones: adds weight * L, the mean over them, to the loss.

    form "logits" (default): L is `losses.conditional_decorrelation` of differences of logits, that is of the directions
    of the features that the last layer reads. "conditional": the same loss of the features, which can be met in
    directions that the last layer ignores. "paper": L is `losses.decorrelation` of the features, which can also be met
    by one direction of large variance, such as the sign of the recording.

    Outputs of earlier members are those of the same view of the recordings (cropped, scaled and flipped alike), before
    anything attacks them.

    weight:     lambda; None: 0.05 for "logits", 0.3 for "conditional", 0.2 for "paper"
    projected:  number of random directions; None: 32 for "paper" (r, those that predict), else 16 (q)
    projection: "paper" only, what is projected: "regressor" (the published code), "regressor-with-ones" (the paper's
                algorithm) or "regressand" (its displayed equation)
    whiten:     "paper" only: predict directions of equal variance (beyond the paper)
    """

    uses_earlier_members: ClassVar[bool] = True

    form: Form = "logits"
    weight: float | None = None
    projected: int | None = None
    projection: Projection = "regressor"
    whiten: bool = False

    def __post_init__(self) -> None:
        check_numbers(self, "weight")
        check_numbers(self, "projected", low=1, whole=True)
        for name, kind in (("form", Form), ("projection", Projection)):
            if getattr(self, name) not in get_args(kind):
                known, found = ", ".join(get_args(kind)), getattr(self, name)
                raise TrainingError(f"strategy dec: {name}: expected one of {known}, found {found!r}")
        if not isinstance(self.whiten, bool):
            raise TrainingError(f"strategy dec: whiten: expected true or false, found {self.whiten!r}")
        if self.form != "paper" and (self.whiten or self.projection != "regressor"):
            raise TrainingError(
                f'strategy dec: whiten and projection are options of form = "paper", found form = "{self.form}"'
            )
        object.__setattr__(self, "weight", self._weight)  # so that recipes and cards say it
        object.__setattr__(self, "projected", self._n_directions)

    @property
    def uses_earlier_logits(self) -> bool:
        """Whether logits are what is decorrelated."""
        return self.form == "logits"

    def prepare(self, run: RunFacts) -> Strategy:
        """Check that batches are large enough for the regression."""
        if run.n_features == 0 and self.form != "logits":
            raise TrainingError(
                "strategy dec needs the members' features: give their class a method embed(x) -> (batch, feature), "
                'let it end in nn.Linear, or choose form = "logits"'
            )
        if self.form == "paper":
            needed = fewest_records(run.n_features, self._n_directions, self.projection)
        else:
            n_outputs = run.n_features if self.form == "conditional" else run.n_classes - 1
            needed = fewest_conditional_records(n_outputs, run.n_classes, self._n_directions)
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
        """Return weight * L of the whole batch against the earlier members."""
        if not (step.earlier or step.earlier_logits):
            return 0.0
        if self.form == "paper":
            return self._weight * step.batch_loss(partial(self._published_loss, step), "decorrelation")
        if self.form == "logits" and not step.earlier_logits:
            raise ValueError('form = "logits" needs the earlier members, not their stored features')
        labels = step.labels()

        def loss(outputs: Tensor, earlier: Sequence[Tensor]) -> Tensor:
            if self.form == "logits":  # softmax does not see what is added to all logits
                outputs, *earlier = (each[:, :-1] - each[:, -1:] for each in (outputs, *earlier))
            return conditional_decorrelation(
                outputs, earlier, labels, generator=step.generator, n_projected=self._n_directions
            )

        return self._weight * step.batch_loss(loss, "decorrelation", logits=self.form == "logits")

    def _published_loss(self, step: Step, features: Tensor, earlier: Sequence[Tensor]) -> Tensor:
        return decorrelation(
            features,
            earlier,
            generator=step.generator,
            n_projected=self._n_directions,
            projection=self.projection,
            whiten=self.whiten,
        )

    @property
    def _weight(self) -> float:
        return _WEIGHT[self.form] if self.weight is None else self.weight

    @property
    def _n_directions(self) -> int:
        return _PROJECTED[self.form] if self.projected is None else self.projected
