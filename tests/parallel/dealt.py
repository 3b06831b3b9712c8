"""What several ranks do in `test_ranks.py`, as one process would: `python -m tests.parallel.dealt COHORT OUT`.

Everything is in double precision, where a difference in method cannot hide behind rounding.
"""

import dataclasses
import sys
from pathlib import Path

import safetensors.torch
import torch
from torch import nn

from ecgquorum import Cohort
from ecgquorum.parallel import distributed
from ecgquorum.parallel.batch_layers import shard_network
from ecgquorum.preprocessing import InputSpec
from ecgquorum.recipes import parse_recipe
from ecgquorum.strategies import Decorrelation, Harden, Step
from ecgquorum.training import PhaseContext, check_trainable, plan_jobs
from ecgquorum.training.loop import fit_job
from ecgquorum.training.step import EpochStats

RECIPE = """
name = "dealt"
members = 2
strategy = "dec+part+adv+dverge"
[input]
window_s = 5.0
[member]
kind = "KIND"
width = 0.05
[training]
epochs = 1
batch_size = 9
gain = 1.2
label_smoothing = 0.05
[strategies.dec]
projected = 4
[strategies.adv]
steps = 2
epochs = 1
[strategies.dverge]
steps = 2
epochs = 1
different_classes = true
"""
CASES = [
    (kind, phase, decorrelated)
    for kind in ("compact", "dilated")
    for phase, decorrelated in (("base", False), ("base", True), ("hardened", False), ("adv", True), ("dverge", True))
]


class Precise(PhaseContext):
    """A setting whose recordings are in double precision."""

    def batches(self, epoch, *names):
        for batch, indices in super().batches(epoch, *names):
            yield doubled(batch), indices

    def tune_batches(self):
        return map(doubled, super().tune_batches())


def doubled(batch):
    return batch._replace(signal=batch.signal.double())


def trained(cohort, case, out):
    """The tensors of a job's checkpoint and, in `history`, its losses epoch by epoch."""
    kind, name, decorrelated = case
    plan = check_trainable(parse_recipe(RECIPE.replace("KIND", kind)), cohort)
    if name == "hardened":
        plan = dataclasses.replace(plan, strategy=plan.strategy + Harden(share=0.4, epsilon=50.0))
    phase = next(one for one in plan.phases() if one.name == name.replace("hardened", "base"))
    job = next(job for job in plan_jobs(plan, "data") if job.phase == phase.name)
    members = [plan.build_member(cohort, index).double() for index in job.members]
    stored = torch.randn(len(cohort.part("train")), 6, generator=torch.Generator().manual_seed(1))
    context = Precise(
        members=members,
        indices=job.members,
        phase=phase.name,
        cohort=cohort,
        spec=InputSpec(cohort.leads, cohort.rate_hz, "microvolt", plan.recipe.input.window_s),
        options=plan.recipe.training,
        strategy=plan.strategy,
        earlier=[[stored] if decorrelated else [] for _ in members],
        device=torch.device("cpu"),
        seed=0,
        stream=(name,),
    )
    path = out / f"{kind}-{name}-{decorrelated}.safetensors"
    state = fit_job(job, phase, context, path, lambda *_: None, lambda rows: None)
    rows = [
        [row["loss"], row["tune_loss"], row["tune_accuracy"], row.get("decorrelation", 0.0)] for row in state.history
    ]
    history = torch.tensor(rows, dtype=torch.float64)
    return {**{k: v.clone().contiguous() for k, v in state.weights.items()}, "history": history}


def normalised(dimensions):
    """A batch norm of a batch of 7 that is far from zero: outputs, all gradients and its running statistics."""
    generator = torch.Generator().manual_seed(2)
    shape = (7, 3, 5) if dimensions == 1 else (7, 3, 1, 5)
    x = 1000 + torch.randn(shape, generator=generator, dtype=torch.float64)
    direction = torch.randn(shape, generator=generator, dtype=torch.float64)
    norm = (nn.BatchNorm1d if dimensions == 1 else nn.BatchNorm2d)(3).double()
    nn.init.uniform_(norm.weight, generator=generator)
    share = distributed.shard_batch(len(x))
    mine = x[share.rows()].clone().requires_grad_()
    with shard_network(norm, share):
        y = norm(mine)
    (y.tanh() * direction[share.rows()]).sum().backward()
    share.add_up([norm.weight.grad, norm.bias.grad])
    tensors = {"y": share.gather(y), "x": x, "to_x": share.gather(mine.grad), "direction": direction}
    return {**tensors, "to_weight": norm.weight.grad, "to_bias": norm.bias.grad, **norm.state_dict()}


class AnyNet(nn.Module):
    """A network of plain PyTorch layers."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(1, 4, 3),
            nn.BatchNorm1d(4, momentum=None),
            nn.ReLU(),
            nn.Dropout(0.4),
            nn.Conv1d(4, 4, 3),
            nn.BatchNorm1d(4, affine=False),
            nn.Dropout1d(0.3),
            nn.Flatten(),
            nn.Linear(64, 3),
        )

    def forward(self, x):
        return self.layers(x)


def train_any_network(n_steps=3):
    """Weights and statistics of a network that knows nothing of ranks, after a few steps."""
    torch.manual_seed(4)
    network = AnyNet().double()
    optimiser = torch.optim.SGD(network.parameters(), lr=0.1)
    for _ in range(n_steps):
        x, y = torch.randn(8, 1, 20, dtype=torch.float64), torch.randint(3, (8,))
        share = distributed.shard_batch(len(x))
        optimiser.zero_grad()
        with shard_network(network, share):
            loss = nn.functional.cross_entropy(network(x[share.rows()]), y[share.rows()]) * share.weight
        loss.backward()
        share.add_up([p.grad for p in network.parameters()])
        optimiser.step()
    return network.state_dict()


def decorrelated(cohort):
    """The term of a batch of 11, summed over ranks, and its gradient with respect to all features."""
    generator = torch.Generator().manual_seed(3)
    features = torch.randn(11, 8, generator=generator, dtype=torch.float64)
    stored = torch.randn(len(cohort.part("train")), 8, generator=generator)
    share = distributed.shard_batch(11)
    mine = features[share.rows()].clone().requires_grad_()
    step = Step(
        member=nn.Identity(),
        index=1,
        phase="base",
        epoch=0,
        batch=cohort.batch(cohort.part("train")[:11], InputSpec(cohort.leads, cohort.rate_hz)).of(share.rows()),
        rows=torch.arange(11)[share.rows()],
        n_records=11,
        earlier=[stored[:11]],
        generator=generator,
        share=share,
        stats=EpochStats(),
        features=mine,
    )
    value = Decorrelation(projected=4).loss_terms(step) * share.weight
    value.backward()
    total = value.detach()[None]
    share.add_up([total])
    return {"value": total, "gradient": share.gather(mine.grad)}


def everything(cohort, out, cases):
    """Every tensor of every case by its name."""
    found = {f"norm{d}/{key}": tensor for d in (1, 2) for key, tensor in normalised(d).items()}
    found |= {f"any/{key}": tensor for key, tensor in train_any_network().items()}
    found |= {f"decorrelation/{key}": tensor for key, tensor in decorrelated(cohort).items()}
    for case in cases:
        found |= {f"{case[0]} {case[1]} {case[2]}/{key}": tensor for key, tensor in trained(cohort, case, out).items()}
    return found


def chosen(n_ranks):
    """All cases for two ranks; with more, whose last batch is smaller than they are many, some will do."""
    return CASES if n_ranks < 3 else [case for case in CASES if case[1:] in (("hardened", False), ("dverge", True))]


def main():
    torch.set_num_threads(1)
    out = Path(sys.argv[2])
    with distributed.join_ranks():
        found = everything(Cohort(sys.argv[1]), out / str(distributed.rank()), chosen(distributed.n_ranks()))
        safetensors.torch.save_file(found, out / f"rank{distributed.rank()}.safetensors")


if __name__ == "__main__":
    main()
