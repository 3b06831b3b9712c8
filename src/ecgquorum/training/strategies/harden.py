"""Hardening: adversarial training from the start, with an attack of few steps."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import torch
from torch import Tensor, nn

from ecgquorum.attacks import PGD
from ecgquorum.cohorts import Batch
from ecgquorum.errors import TrainingError
from ecgquorum.members import freeze
from ecgquorum.training.step import Step
from ecgquorum.training.strategies.strategy import RunFacts, Strategy, check_numbers, default_epsilon

OVERFITTED = 0.3
"""Accuracy that many steps may take beyond one step before `check_members` warns."""

_AT_ONCE = 16


@final
@dataclass(frozen=True)
class Harden(Strategy):
    """Change a share of every batch by a short attack on the member in its present state.

    Its steps go along the sign of the gradient from a random change: steps from the recording itself teach members to
    mask their gradients (Wong, Rice & Kolter 2020). A single step is a quarter longer than the bound; n steps are 2/n
    of it each. The bound of each recording is drawn between 0 and epsilon. Checkpoints are chosen on unchanged
    recordings.

    share:   of every batch, at least one recording
    epsilon: the largest change, in the units of the input; None: 50 for microvolts, 0.05 for unit scaling
    steps:   of the attack. Members that are hardened by one step withstand one step, and far less an attack of many
    members: numbers of the members that are hardened, from 0; None: all
    """

    share: float = 0.5
    epsilon: float | None = None
    steps: int = 1
    members: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        check_numbers(self, "share", above=0, high=1)
        check_numbers(self, "epsilon", above=0)
        check_numbers(self, "steps", low=1, whole=True)
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
        step_size = 1.25 if self.steps == 1 else 2 / self.steps
        attack = PGD(bounds[:n_chosen], n_steps=self.steps, step=step_size, start=start)
        moved = attack(step.member, chosen.signal, chosen.label, chosen.valid)
        return batch._replace(signal=torch.cat([moved, batch.signal[n_chosen:]]))

    def check_members(self, members: Sequence[nn.Module], batch: Batch) -> dict[str, Any]:
        """Compare one step of half of epsilon with 20: withstanding only the first is catastrophic overfitting."""
        if self.epsilon is None:
            raise ValueError("epsilon is filled in by prepare")
        attacks = {
            "natural": None,
            "one_step": PGD(self.epsilon / 2, n_steps=1, step=1.0),
            "twenty_steps": PGD(self.epsilon / 2),
        }
        found = {
            str(index): {name: _accuracy(member, batch, attack) for name, attack in attacks.items()}
            for index, member in enumerate(members)
            if self.members is None or index in self.members
        }
        facts: dict[str, Any] = {"epsilon": self.epsilon / 2, "n_recordings": len(batch.label), "accuracy": found}
        overfitted = [name for name, one in found.items() if one["one_step"] - one["twenty_steps"] > OVERFITTED]
        if overfitted:
            facts["warning"] = (
                f"member {', '.join(overfitted)} withstands one step of an attack, but not 20 (catastrophic "
                "overfitting); train with a smaller epsilon or more steps in [strategies.harden]"
            )
        return facts


def _accuracy(member: nn.Module, batch: Batch, attack: PGD | None) -> float:
    """Return the member's accuracy, under an attack on itself if one is given."""
    correct = 0
    for start in range(0, len(batch.label), _AT_ONCE):
        rows = slice(start, start + _AT_ONCE)
        signal, label = batch.signal[rows], batch.label[rows]
        attacked: Tensor = signal if attack is None else attack(member, signal, label, batch.valid[rows])
        with freeze(member), torch.no_grad():
            correct += int((member(attacked).argmax(dim=1) == label).sum())
    return correct / len(batch.label)
