"""Trainings that several ranks do in `test_ranks.py` as one process would.

`main` is what each rank runs, with the arguments COHORT OUT. Everything is in double precision, where a difference in
method cannot hide behind rounding.
"""

import sys
from pathlib import Path

import safetensors.torch
import torch
from torch import nn

from ecgquorum import Cohort
from ecgquorum.members import build_member, count_features
from ecgquorum.parallel import distributed
from ecgquorum.parallel.batch_layers import shard_network
from ecgquorum.recipes import parse_recipe
from ecgquorum.storage import LocalStore
from ecgquorum.training.checkpoint import CheckpointFile
from ecgquorum.training.jobs import plan_jobs
from ecgquorum.training.loop import fit_job
from ecgquorum.training.phase import PhaseContext
from ecgquorum.training.plan import resolve_recipe

RECIPE = """
name = "ranks"
members = 2
strategy = "STRATEGY"
[input]
window_s = 2.5
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
form = "FORM"
[strategies.harden]
share = 0.4
[strategies.adv]
steps = 2
epochs = 1
[strategies.dverge]
steps = 2
epochs = 1
different_classes = true
"""
STRATEGIES = ("part", "dec+part", "harden+part", "dec+part+adv", "dec+part+dverge")
FORMS = {"dec+part+adv": "conditional", "dec+part+dverge": "logits"}
LOWERED = ("compact", "dilated")
CASES = [(kind, strategy) for kind in ("compact", "dilated") for strategy in STRATEGIES] + [("compact", "gal+part")]


class DoubleContext(PhaseContext):
    """A context whose recordings are in double precision."""

    def batches(self, epoch, *names):
        for batch, indices in super().batches(epoch, *names):
            yield to_double(batch), indices

    def tune_batches(self):
        return map(to_double, super().tune_batches())


def to_double(batch):
    return batch._replace(signal=batch.signal.double())


def train_case(cohort, kind, strategy, out):
    """The tensors of the checkpoint of a run's last job, from initial weights, and its losses in `history`."""
    form = FORMS.get(strategy, "paper")
    recipe = parse_recipe(RECIPE.replace("KIND", kind).replace("STRATEGY", strategy).replace("FORM", form))
    plan = resolve_recipe(recipe).prepare(cohort)
    job = plan_jobs(plan, "data")[-1]
    phase = next(phase for phase in plan.phases() if phase.name == job.phase)
    members = [plan.build_member(cohort, index).double() for index in job.members]
    spec = plan.input_spec(cohort)
    n_features = count_features(members[0], cohort.batch([0], spec).signal.double())
    stored = torch.randn(len(cohort.part("train")), n_features, generator=torch.Generator().manual_seed(1))
    earlier = stored.double() if form == "paper" and "gal" not in strategy else plan.build_member(cohort, 0).double()
    context = DoubleContext(
        members=members,
        indices=job.members,
        phase=job.phase,
        cohort=cohort,
        spec=spec,
        options=recipe.training,
        strategy=plan.strategy,
        earlier=[[earlier] if "dec" in strategy or "gal" in strategy else [] for _ in members],
        device=torch.device("cpu"),
        seed=recipe.seed,
        stream=(strategy,),
    )
    file = CheckpointFile(LocalStore(out), f"{kind}-{strategy}.safetensors")
    state = fit_job(job, phase, context, file, lambda *_: None, lambda _: None)
    names = ["loss", "tune_loss", "tune_accuracy", *(["decorrelation"] if "dec" in strategy else [])]
    names += ["alignment"] if "gal" in strategy else []
    history = torch.tensor([[row[name] for name in names] for row in state.history], dtype=torch.float64)
    return {**{k: v.clone().contiguous() for k, v in state.weights.items()}, "history": history}


def normalise(dimensions, dtype=torch.float64):
    """A batch norm of a batch of 7 that is far from zero: outputs, all gradients and its running statistics."""
    precise = torch.promote_types(dtype, torch.float32)
    generator = torch.Generator().manual_seed(2)
    shape = (7, 3, 5) if dimensions == 1 else (7, 3, 1, 5)
    x = ((1000 if dtype == precise else 4) + torch.randn(shape, generator=generator, dtype=precise)).to(dtype)
    direction = torch.randn(shape, generator=generator, dtype=precise)
    norm = (nn.BatchNorm1d if dimensions == 1 else nn.BatchNorm2d)(3).to(precise)
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
    """Weights and statistics of a plain network after a few steps."""
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


def train_in_bfloat16(kind, n_steps=3):
    """The losses of a member whose activations are in bfloat16, and its first statistics."""
    torch.manual_seed(5)
    options = {"width": 0.05, "dropout": 0.1}
    member = build_member(kind, n_leads=1, n_classes=3, rate_hz=300.0, options=options)
    optimiser = torch.optim.SGD(member.parameters(), lr=0.01)
    losses = []
    for _ in range(n_steps):
        x, y = torch.randn(8, 1, 900), torch.randint(3, (8,))
        share = distributed.shard_batch(len(x))
        optimiser.zero_grad()
        with shard_network(member, share), torch.autocast("cpu", torch.bfloat16):
            logits = member(x[share.rows()])
        loss = nn.functional.cross_entropy(logits.float(), y[share.rows()]) * share.weight
        loss.backward()
        share.add_up([p.grad for p in member.parameters()])
        share.add_up([total := loss.detach().clone()])
        losses.append(total)
        if len(losses) == 1:
            norm = next(m for m in member.modules() if isinstance(m, nn.BatchNorm1d | nn.BatchNorm2d))
            first = {"mean": norm.running_mean.clone(), "variance": norm.running_var.clone()}
        optimiser.step()
    return {"losses": torch.stack(losses), **first}


def run_cases(cohort, out, cases):
    """Every tensor of every case by its name."""
    tensors = {f"norm{d}/{key}": tensor for d in (1, 2) for key, tensor in normalise(d).items()}
    tensors |= {f"lowered/{key}": tensor for key, tensor in normalise(1, torch.bfloat16).items()}
    tensors |= {f"{kind} lowered/{k}": v for kind in LOWERED for k, v in train_in_bfloat16(kind).items()}
    tensors |= {f"any/{key}": tensor for key, tensor in train_any_network().items()}
    for kind, strategy in cases:
        trained = train_case(cohort, kind, strategy, out)
        tensors |= {f"{kind} {strategy}/{key}": tensor for key, tensor in trained.items()}
    return tensors


def choose_cases(n_ranks):
    """All cases for two ranks; some for more, whose last batch has fewer recordings than ranks."""
    some = ("harden+part", "dec+part+dverge", "gal+part")
    return CASES if n_ranks < 3 else [case for case in CASES if case[1] in some]


def main():
    torch.set_num_threads(1)
    out = Path(sys.argv[2])
    with distributed.join_ranks():
        cases = choose_cases(distributed.n_ranks())
        tensors = run_cases(Cohort(sys.argv[1]), out / str(distributed.rank()), cases)
        safetensors.torch.save_file(tensors, out / f"rank{distributed.rank()}.safetensors")
