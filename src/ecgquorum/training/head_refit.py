"""Fit the last layer of a trained member again, on the classes as frequent as they are."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ecgquorum.cohorts import Cohort
from ecgquorum.errors import MemberError
from ecgquorum.members import freeze, last_linear
from ecgquorum.preprocessing import InputSpec

PENALTY = 0.1
"""How much it costs to leave the trained weights, lambda below; chosen on the tune part of PhysioNet/CinC 2017."""

_BATCH = 64
_STEPS = 200


def refit_head(member: nn.Module, cohort: Cohort, spec: InputSpec) -> None:
    """Fit the member's last linear layer to the train part, each recording once, whole and unchanged.

    min over W, b of  mean_i CE(W h_i + b, y_i) + lambda / 2 |W - W_0|^2,  h the layer's frozen input, W_0 its weights
    now. Repeated classes and augmentation shape the features; this takes the frequencies of classes back to the natural
    ones (decoupled training, Kang et al. 2020).
    """
    device = next(member.parameters()).device
    train = cohort.part("train")
    head = last_linear(member, cohort.batch(train[:1], spec).signal.to(device))
    if head.out_features != len(cohort.classes):
        raise MemberError(
            f"{type(member).__name__}: expected the nn.Linear that runs last to give {len(cohort.classes)} logits, "
            f"found {head.out_features}; train it without training.refit_head"
        )
    inputs: list[Tensor] = []
    hook = head.register_forward_pre_hook(lambda _, given: inputs.append(given[0].double()))
    with freeze(member), torch.no_grad():
        for start in range(0, len(train), _BATCH):
            member(cohort.batch(train[start : start + _BATCH], spec).signal.to(device))
    hook.remove()
    labels = torch.from_numpy(cohort.labels[train]).to(device)
    weight, bias = fit_linear(torch.cat(inputs), labels, head.weight, head.bias)
    with torch.no_grad():
        head.weight.copy_(weight)
        if head.bias is not None:
            head.bias.copy_(bias)


def fit_linear(features: Tensor, labels: Tensor, weight: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return weight (class, feature) and bias (class,) of the layer that `refit_head` describes.

    features: (record, feature) float64 · labels: (record,) · weight, bias: where to start
    """
    start = weight.detach().double()
    w = start.clone().requires_grad_()
    b = (torch.zeros(len(start)).to(start) if bias is None else bias.detach().double()).clone()
    b.requires_grad_(bias is not None)
    free = [w, b] if bias is not None else [w]
    optimiser = torch.optim.LBFGS(free, max_iter=_STEPS, tolerance_grad=1e-9, line_search_fn="strong_wolfe")

    def compute_loss() -> Tensor:
        optimiser.zero_grad()
        loss = F.cross_entropy(features @ w.T + b, labels) + PENALTY / 2 * (w - start).square().sum()
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    optimiser.step(compute_loss)  # type: ignore[no-untyped-call]
    return w.detach(), b.detach()
