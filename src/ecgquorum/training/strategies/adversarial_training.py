"""Adversarial training: training of every member continues on attacked recordings."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, final

from ecgquorum.attacks import PGD
from ecgquorum.cohorts import Batch
from ecgquorum.training.phase import Phase
from ecgquorum.training.step import Step
from ecgquorum.training.strategies.strategy import RunFacts, Strategy, check_numbers, default_epsilon


@final
@dataclass(frozen=True)
class AdversarialTraining(Strategy):
    """After its training, train each member further on recordings attacked by PGD against itself.

    epsilon: of the attack, in the units of the input; None: 10 for microvolts, 0.025 for unit scaling
    steps:   of the attack
    step:    length of each of them, as a share of epsilon
    """

    epsilon: float | None = None
    steps: int = 20
    step: float = 0.1
    epochs: int = 10
    learning_rate: float = 1e-3

    def __post_init__(self) -> None:
        check_numbers(self, "epsilon", "learning_rate", above=0)
        check_numbers(self, "step", above=0, high=2)
        check_numbers(self, "steps", "epochs", low=1, whole=True)

    def prepare(self, run: RunFacts) -> Strategy:
        """Fill in epsilon."""
        return replace(self, epsilon=self.epsilon or default_epsilon(self, run))

    def describe(self, member: int) -> dict[str, Any] | None:  # noqa: ARG002 (a hook)
        """Members are first trained as without this strategy."""
        return None

    def after_training(self) -> Sequence[Phase]:
        """Return the phase on attacked recordings."""
        return (AdversarialPhase(self),)


@final
class AdversarialPhase(Phase):
    """One member on recordings attacked against itself, in its present state; validated under the same attack."""

    def __init__(self, strategy: AdversarialTraining) -> None:
        super().__init__("adv", strategy.epochs, strategy.learning_rate, parameters=strategy.parameters)
        if strategy.epsilon is None:
            raise ValueError("epsilon is filled in by prepare")
        self._attack = PGD(strategy.epsilon, n_steps=strategy.steps, step=strategy.step)

    def change_batch(self, step: Step) -> Batch:
        """Attack the recordings to train on."""
        batch = step.batch
        return batch._replace(signal=self._attack(step.member, batch.signal, batch.label, batch.valid))

    def change_tune_batch(self, step: Step) -> Batch:
        """Attack the recordings to validate on."""
        return self.change_batch(step)
