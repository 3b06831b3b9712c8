"""Losses that make members differ: decorrelation, gradient alignment, and DVERGE's feature distillation."""

import math
from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ecgquorum.attacks.attack import pgd_steps
from ecgquorum.errors import MemberError
from ecgquorum.members.contract import norm_output
from ecgquorum.members.kernels.freezing import freeze

Projection = Literal["regressor", "regressor-with-ones", "regressand"]
"""What is projected at random: "regressor", [A R, 1], as the published code does; "regressor-with-ones", [A, 1] R, as
the paper's algorithm says; "regressand", B R against [A, 1], as its displayed equation says."""

_FLOOR = 1e-5
_RIDGE = 1e-12
_WHITENING_RIDGE = 1e-9
_TINY = 1e-200


def fewest_records(n_features: int, n_projected: int = 32, projection: Projection = "regressor") -> int:
    """Return the smallest batch for which the regression has a meaning: two more records than regressors."""
    return (n_features if projection == "regressand" else n_projected) + 2


def decorrelation(
    features: Tensor,
    earlier: Tensor | Sequence[Tensor],
    *,
    generator: torch.Generator | None = None,
    n_projected: int = 32,
    projection: Projection = "regressor",
    whiten: bool = False,
) -> Tensor:
    """Penalise features that are linearly predictable from an earlier member, or predict it: a scalar to add to a loss.

    For a regressor A and a regressand B, both (record, feature), with P the orthogonal projector on the columns of the
    randomly projected regressor,
        L = log(SS_tot + 1e-5) - log(SS_res + 1e-5),  SS_res = |B - P B|^2,  SS_tot = |B - mean B|^2,
    which is -log(1 - R^2). For each earlier member a coin decides which of the two is A, and the projection is drawn
    anew; the result is the mean over the earlier members. Independent features give -log(1 - r / (N - 1)), not 0. A
    batch with fewer than `fewest_records` records gives 0.

    features:    (record, feature) of the member in training
    earlier:     the same records' features of one earlier member, or of several
    generator:   source of randomness; None: PyTorch's global generator
    n_projected: r, the number of random directions that predict
    whiten:      predict random directions of equal variance, half as many as n_projected, so that inflating one
                 direction does not lower the loss (beyond the paper)
    """
    members = _same_records(features, earlier)
    if not members or len(features) < fewest_records(features.shape[1], n_projected, projection):
        return features.new_zeros(())
    terms = []
    for theirs in members:
        pair = (features.double(), theirs.double())
        if torch.rand((), generator=generator) < 0.5:
            pair = pair[::-1]
        regressor, regressand = pair
        if whiten:
            regressand = whiten_features(_project(regressand, max(1, n_projected // 2), generator))
        terms.append(_negative_log_residual(regressor, regressand, generator, n_projected, projection))
    return torch.stack(terms).mean().to(features.dtype)


def fewest_conditional_records(n_features: int, n_classes: int, n_projected: int = 16) -> int:
    """Return the smallest batch for `conditional_decorrelation`: one more record than directions and classes."""
    return min(n_features, n_projected) + n_classes + 1


def conditional_decorrelation(
    features: Tensor,
    earlier: Tensor | Sequence[Tensor],
    labels: Tensor,
    *,
    generator: torch.Generator | None = None,
    n_projected: int = 16,
) -> Tensor:
    """Penalise what two members' features have in common within each class: a scalar to add to a loss.

    Class means are subtracted from the features of both, each is projected on q random directions and these are
    orthonormalised over the records to Q1 and Q2, (record, q) each:
        R^2 = |Q1' Q2|_F^2 / q,  the mean of the squared canonical correlations,  and  L = -log(1 - R^2 + 1e-5).
    The result is the mean over the earlier members. Every direction counts alike, whatever its variance, so that one
    that says something else (the sign or the gain of the recording, say) takes at most 1/q off R^2. Features that are
    independent within N records of C classes give R^2 = q / (N - C), not 0: 16 / 60 = 0.27 at N = 64, C = 4.

    With at most q features nothing is projected: R^2 does not change under invertible linear maps of either side, and
    is 1 if one side is such a map of the other. With more features, directions of large variance are in the projections
    of both, and count most. A batch with no more than q records beyond one per class gives 0.

    features:    (record, feature) of the member in training, of this view of the recordings
    earlier:     the same of one earlier member, or of several, of the same view
    labels:      (record,) classes
    generator:   source of randomness; None: PyTorch's global generator
    n_projected: q
    """
    members = _same_records(features, earlier)
    if labels.shape != features.shape[:1]:
        raise MemberError(
            f"conditional_decorrelation: expected a label for each of {len(features)} records, found "
            f"{tuple(labels.shape)}"
        )
    classes, class_of = torch.unique(labels, return_inverse=True)
    fewest = fewest_conditional_records(features.shape[1], len(classes), n_projected)
    if not members or len(features) < fewest:
        return features.new_zeros(())
    terms = []
    for theirs in members:
        one, other = (
            _orthonormal(_class_residual(side.double(), class_of), n_projected, generator)
            for side in (features, theirs)
        )
        r2 = (one.T @ other).square().sum() / min(one.shape[1], other.shape[1])
        terms.append(-torch.log(1 - r2 + _FLOOR))
    return torch.stack(terms).mean().to(features.dtype)


def _class_residual(features: Tensor, classes: Tensor) -> Tensor:
    """Subtract from each record the mean of its class; classes are numbered from 0 without gaps."""
    belongs = nn.functional.one_hot(classes).to(features)
    residuals: Tensor = features - belongs @ ((belongs.T @ features) / belongs.sum(dim=0)[:, None])
    return residuals


def _orthonormal(features: Tensor, n_directions: int, generator: torch.Generator | None) -> Tensor:
    """Return an orthonormal basis over the records of at most `n_directions` random directions of the features.

    A ridge leaves out directions below 3e-5 of the features' root mean square, whose gradients would be huge.
    """
    columns = _project(features, n_directions, generator) if features.shape[1] > n_directions else features
    gram = columns.T @ columns
    ridge = _WHITENING_RIDGE * gram.diagonal().mean().detach() + 1e-30
    factor = torch.linalg.cholesky(gram + ridge * torch.eye(len(gram), dtype=gram.dtype, device=gram.device))
    basis: Tensor = torch.linalg.solve_triangular(factor, columns.T, upper=False).T
    return basis


def _same_records(features: Tensor, earlier: Tensor | Sequence[Tensor]) -> list[Tensor]:
    """Return the earlier members' features as a list; raise unless all are (record, feature) of as many records."""
    members = [earlier] if isinstance(earlier, Tensor) else list(earlier)
    for theirs in members:
        if theirs.ndim != 2 or features.ndim != 2 or len(theirs) != len(features):
            raise MemberError(
                f"decorrelation: expected features (record, feature) of the same records, found "
                f"{tuple(features.shape)} and {tuple(theirs.shape)}"
            )
    return members


def whiten_features(features: Tensor) -> Tensor:
    """Return centred features with unit covariance; needs several times more records than features."""
    centred = features - features.mean(dim=0)
    covariance = centred.T @ centred / len(features)
    ridge = _RIDGE * covariance.diagonal().mean().detach() + 1e-8
    factor = torch.linalg.cholesky(
        covariance + ridge * torch.eye(len(covariance), dtype=features.dtype, device=features.device)
    )
    white: Tensor = torch.linalg.solve_triangular(factor, centred.T, upper=False).T
    return white


def residual(regressor: Tensor, regressand: Tensor) -> Tensor:
    """Return B - P B, with P the projector on the regressor's columns.

    P comes from a Cholesky factor with a tiny ridge: in float64 gradients are finite whatever the features' rank.
    """
    gram = regressor.T @ regressor
    ridge = _RIDGE * gram.diagonal().mean().detach() + 1e-30
    factor = torch.linalg.cholesky(gram + ridge * torch.eye(len(gram), dtype=gram.dtype, device=gram.device))
    return regressand - regressor @ torch.cholesky_solve(regressor.T @ regressand, factor)


def _negative_log_residual(
    regressor: Tensor, regressand: Tensor, generator: torch.Generator | None, n_projected: int, projection: Projection
) -> Tensor:
    if projection == "regressor-with-ones":
        ones = torch.ones(len(regressor), 1, dtype=regressor.dtype, device=regressor.device)
        columns = _project(torch.cat([regressor, ones], dim=1), n_projected, generator)
        left = residual(columns, regressand)
    else:
        if projection == "regressor":
            regressor = _project(regressor, n_projected, generator)
        else:
            regressand = _project(regressand, n_projected, generator)
        # a column of ones among the regressors is the same as centring both sides
        left = residual(regressor - regressor.mean(dim=0), regressand - regressand.mean(dim=0))
    total = (regressand - regressand.mean(dim=0)).square().sum()
    loss: Tensor = torch.log(total + _FLOOR) - torch.log(left.square().sum() + _FLOOR)
    return loss


def _project(features: Tensor, n_projected: int, generator: torch.Generator | None) -> Tensor:
    """Multiply features by a fresh matrix with entries N(0, 1 / n_features)."""
    n_features = features.shape[1]
    matrix = torch.randn(n_features, n_projected, generator=generator, dtype=torch.float64) / n_features**0.5
    projected: Tensor = features @ matrix.to(features.device, features.dtype)
    return projected


def gradient_alignment(gradients: Tensor, earlier: Tensor | Sequence[Tensor]) -> Tensor:
    """Penalise input gradients that point the same way as those of earlier members: a scalar to add to a loss.

    For the gradients g of the member in training and g_i of m earlier ones, for each record
        L = log( (1 / m) sum_i exp(cos(g, g_i)) ),  cos(a, b) = a . b / (|a| |b|),
    a smooth maximum of the cosines, between -1 and 1; the result is the mean over the records. With one earlier member
    it is the mean cosine. A perturbation that raises one member's loss then raises the other's less, to first order.
    The cosine does not depend on the length of the gradients; a record without a gradient has cosine 0.
    GAL: Kariyappa & Qureshi 2019, "Improving adversarial robustness of ensembles with diversity training".

    gradients: (record, ...) of the loss of each record by its input, as `input_gradients` returns them
    earlier:   the same of one earlier member, or of several
    """
    members = [earlier] if isinstance(earlier, Tensor) else list(earlier)
    for theirs in members:
        if theirs.shape != gradients.shape or gradients.ndim < 2:
            raise MemberError(
                f"gradient_alignment: expected gradients (record, ...) of the same inputs, found "
                f"{tuple(gradients.shape)} and {tuple(theirs.shape)}"
            )
    if not members or len(gradients) == 0:
        return gradients.new_zeros(())
    cosines = torch.stack([(_unit(gradients) * _unit(theirs)).sum(dim=1) for theirs in members])
    return (torch.logsumexp(cosines, dim=0) - math.log(len(members))).mean().to(gradients.dtype)


def input_gradients(
    member: nn.Module, x: Tensor, labels: Tensor, valid: Tensor | None = None, *, create_graph: bool = False
) -> Tensor:
    """Return the gradient of each record's cross-entropy by its samples, (record, lead, time), 0 on padding.

    The member is in the mode that it has. The softmax is in double precision: a member that is certain to seven digits
    still has a gradient.

    x:            (record, lead, time) · labels: (record,) · valid: True on the recording, such as (record, 1, time)
    create_graph: make the result differentiable by the member's parameters
    """
    x = x.detach().requires_grad_()
    with torch.enable_grad():
        loss = F.cross_entropy(member(x).double(), labels, reduction="sum")
        (gradients,) = torch.autograd.grad(loss, x, create_graph=create_graph)
    found: Tensor = gradients if valid is None else gradients * valid
    return found


def _unit(gradients: Tensor) -> Tensor:
    """Return each record's gradient at length 1, (record, value) in double precision; 0 where there is none."""
    flat = gradients.flatten(1).double()
    # scaled first: gradients per microvolt of certain records are so small that their squares vanish
    flat = flat / flat.detach().abs().amax(dim=1, keepdim=True).clamp_min(_TINY)
    return flat / flat.square().sum(dim=1, keepdim=True).clamp_min(_TINY).sqrt()


def distill_features(
    member: nn.Module,
    source: Tensor,
    target: Tensor,
    layer: int,
    *,
    epsilon: float,
    valid: Tensor | None = None,
    n_steps: int = 20,
    step: float = 0.1,
) -> Tensor:
    """Return the source, changed within epsilon so that a layer of the member responds as to the target (DVERGE).

    z = argmin |f_l(z) - f_l(target)|^2 over |z - source|_inf <= epsilon, by steps of `step` * epsilon along the sign of
    the gradient; f_l is the output of the member's batch-norm layer l.
    Train the other members on z with the labels of the source.

    source, target: (batch, lead, time)
    layer:          number of the batch-norm layer, as in `members.norm_layers`
    valid:          True where the source may be changed, such as (batch, 1, time) that is False on padding
    """
    valid = torch.ones_like(source[:1], dtype=torch.bool) if valid is None else valid
    with freeze(member):
        with torch.no_grad():
            wanted = norm_output(member, target, layer)

        def likeness(z: Tensor) -> Tensor:
            return -(norm_output(member, z, layer) - wanted).square().flatten(1).mean(dim=1)

        bound = torch.tensor(epsilon, dtype=source.dtype, device=source.device)
        return pgd_steps(likeness, source, valid, bound, n_steps=n_steps, step=step).detach()
