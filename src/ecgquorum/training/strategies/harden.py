"""Hardening: one-step adversarial training from the start."""

from dataclasses import dataclass, replace
from typing import Any, final

import torch

from ecgquorum.attacks import PGD
from ecgquorum.cohorts import Batch
from ecgquorum.errors import TrainingError
from ecgquorum.training.step import Step
from ecgquorum.training.strategies.strategy import RunFacts, Strategy, check_numbers, default_epsilon


@final
@dataclass(frozen=True)
class Harden(Strategy):
    """Change a share of every batch by one step of an attack on the member in its present state.

    The step goes along the sign of the gradient from a random change, and is a quarter longer than the bound: a single
    step from the recording itself teaches members to mask their gradients (Wong, Rice & Kolter 2020). The bound of each
    recording is drawn between 0 and epsilon. Checkpoints are chosen on unchanged recordings.

    share:   of every batch, at least one recording
    epsilon: the largest change, in the units of the input; None: 50 for microvolts, 0.05 for unit scaling
    members: numbers of the members that are hardened, from 0; None: all
    """

    share: float = 0.5
    epsilon: float | None = None
    members: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        check_numbers(self, "share", above=0, high=1)
        check_numbers(self, "epsilon", above=0)
        if self.members is not None:
            if not isinstance(self.members, list | tuple) or not all(type(one) is int for one in self.members):
                raise TrainingError(f"strategy harden: members: expected numbers of members, found {self.members!r}")
            object.__setattr__(self, "members", tuple(self.members))

    def prepare(self, run: RunFacts) -> Strategy:
        """Check that the members exist, and fill in epsilon."""
        strange = next((one for one in self.members or () if not 0 <= one < run.n_members), None)
        if strange is not None:
            raise TrainingError(
                f"strategy harden: members: expected numbers from 0 to {run.n_members - 1}, found {strange}"
            )
        return replace(self, epsilon=self.epsilon or default_epsilon(self, run, {"microvolt": 50.0, "unit": 0.05}))

    def describe(self, member: int) -> dict[str, Any] | None:
        """A hardened member is trained alike whichever others are hardened; the others as without this strategy."""
        if self.members is not None and member not in self.members:
            return None
        return {name: value for name, value in self.parameters.items() if name != "members"}

    def change_batch(self, step: Step) -> Batch:
        """Attack the first recordings of the batch, which is in random order."""
        if self.members is not None and step.index not in self.members:
            return step.batch
        if self.epsilon is None:
            raise ValueError("epsilon is filled in by prepare")
        batch = step.batch
        n_attacked = max(1, round(self.share * step.n_records))
        bounds = self.epsilon * step.draw(lambda n, generator: torch.rand(n, generator=generator))
        noise = step.draw(lambda n, generator: 2 * torch.rand(n, *batch.signal.shape[1:], generator=generator) - 1)
        chosen = batch.of(step.rows < n_attacked)
        if len(chosen.label) == 0:
            return batch
        n_chosen = len(chosen.label)
        start = noise[:n_chosen] * bounds[:n_chosen, None, None] * chosen.valid
        attack = PGD(bounds[:n_chosen], n_steps=1, step=1.25, start=start)
        moved = attack(step.member, chosen.signal, chosen.label, chosen.valid)
        return batch._replace(signal=torch.cat([moved, batch.signal[n_chosen:]]))
