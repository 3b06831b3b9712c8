"""Time a training step with decorrelation and with a band filter, relative to the baseline.

    python -m benchmarks.training [--rounds N]

The third member is trained, decorrelated from two earlier ones, with batches of 64. `compact` gets 30 s at 300 Hz. The
paper's network gets 3 s, a twentieth of its window, so that a round takes seconds. The decorrelation term costs the
same at every length, so its ratio at 60 s is closer to 1 than the one printed.
"""

import argparse
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from ecgquorum.cohorts import Batch, Cohort, build_cohort, open_source
from ecgquorum.members import count_features
from ecgquorum.preprocessing import InputSpec
from ecgquorum.recipes import Recipe, parse_recipe
from ecgquorum.training import PhaseContext, check_trainable

from .measuring import ratios

BATCH, N_EARLIER = 64, 2
STRATEGIES = ("baseline", "dec", "dec by logits", "part", "dec+part")
AIMS = {"compact": {"dec": 1.05, "part": 1.02}, "dilated": {"dec": 1.02, "part": 1.01}}
SECONDS = {"compact": 30.0, "dilated": 3.0}


def make_step(recipe: Recipe, cohort: Cohort, batch: Batch) -> Callable[[], None]:
    """Make a function that runs a training step of the recipe's third member."""
    plan = check_trainable(recipe, cohort)
    member = plan.build_member(cohort, 2)
    spec = InputSpec(cohort.leads, cohort.rate_hz, "microvolt", SECONDS[recipe.member.kind])
    n_features = count_features(member, cohort.batch([0], spec).signal)
    earlier: list[torch.Tensor | torch.nn.Module] = []
    if "dec" in recipe.parts:
        by_logits = any(part.uses_earlier_logits for part in plan.strategy.parts)
        stored = torch.randn(len(cohort.part("train")), n_features)
        earlier = [plan.build_member(cohort, k) if by_logits else stored for k in range(N_EARLIER)]
    context = PhaseContext(
        members=[member],
        indices=[2],
        phase="base",
        cohort=cohort,
        spec=spec,
        options=recipe.training,
        strategy=plan.strategy,
        earlier=[earlier],
        device=torch.device("cpu"),
        seed=0,
        stream=("benchmark",),
    )
    phase = plan.phases()[0]
    optimiser = torch.optim.AdamW(member.parameters())
    indices = cohort.part("train")[:BATCH]
    context.begin_epoch(0)
    member.train()

    def step() -> None:
        optimiser.zero_grad(set_to_none=True)
        for term in phase.losses(context, batch, indices):
            term.backward()
        optimiser.step()

    return step


def measure_steps(kind: str, cohort: Cohort, rounds: int, strategies: Sequence[str] = STRATEGIES) -> dict[str, float]:
    """Return the step time of each strategy, divided by the first one's.

    "dec" has the paper's form, with stored features; "dec by logits" runs the earlier members in every step.
    """

    def load(strategy: str) -> Recipe:
        name, _, form = strategy.partition(" by ")
        text = f'name = "benchmark"\n[member]\nkind = "{kind}"\n[strategies.dec]\nform = "{form or "paper"}"'
        return parse_recipe(text).with_strategy(name)

    signal = torch.randn(BATCH, 1, round(SECONDS[kind] * cohort.rate_hz)) * 200
    valid = torch.ones(BATCH, 1, signal.shape[2], dtype=torch.bool)
    batch = Batch(signal, valid, torch.arange(BATCH) % 4)
    return ratios({strategy: make_step(load(strategy), cohort, batch) for strategy in strategies}, rounds)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=16, help="rounds for compact; the paper's network gets half")
    rounds = parser.parse_args().rounds
    print(f"training step relative to the baseline, {torch.get_num_threads()} threads, batch {BATCH}, medians")
    with tempfile.TemporaryDirectory() as folder:
        cohort, _ = build_cohort(open_source("synthetic:physionet2017", records=100, seconds=2.0), Path(folder) / "c")
        for kind, n_rounds in (("compact", rounds), ("dilated", max(1, rounds // 2))):
            for strategy, ratio in measure_steps(kind, cohort, n_rounds).items():
                aim = AIMS[kind].get(strategy)
                note = "" if aim is None else f"  (aim <= {aim:.2f}{', met' if ratio <= aim else ', missed'})"
                print(f"{kind:8s} {strategy:13s} {ratio:6.3f}{note}")


if __name__ == "__main__":
    main()
