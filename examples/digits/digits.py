"""Decorrelation and Fourier bands on images: ensembles of small networks that read handwritten digits.

The method is not about ECGs alone. This script trains three small convolutional networks per ensemble on scikit-learn's
8 x 8 digits, with and without feature decorrelation and 2-D Fourier bands, attacks the first network and the whole
ensemble, and prints a table. It takes less than a minute on one core:

    python examples/digits/digits.py
"""

import argparse
from collections.abc import Sequence

import torch
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score
from torch import Tensor, nn
from torch.nn import functional as F

import ecgquorum as eq

PIXELS = 8
BANDS = [None, [(0, 1), (2, 3)], [(1, 2), (3, 4)]]
"""What each member sees: all, then two complementary sets of rings of the radial frequency (cycles per image)."""

EPSILON = 2.0
"""Largest change of a pixel, which is from 0 to 16."""


class SmallCNN(nn.Module):
    """Two convolutions, mean over the image, one linear layer. It knows nothing of ecgquorum."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, padding=1, stride=2),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.Flatten(),
        )
        self.head = nn.Linear(32 * (PIXELS // 2) ** 2, 10)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(self.body(x))
        return logits


def train_member(x: Tensor, y: Tensor, earlier: Sequence[nn.Module], bands, weight: float, epochs: int) -> nn.Module:
    """Train one network; features that are linearly predictable from an earlier member cost `weight`."""
    member: nn.Module = SmallCNN()
    if bands is not None:
        member = eq.BandFilter(bands, rate_hz=PIXELS, dims=2).then(member)
    optimiser = torch.optim.Adam(member.parameters(), lr=3e-3)
    for _ in range(epochs):
        member.train()
        for rows in torch.randperm(len(x)).split(64):
            logits, features = eq.members.forward_with_features(member, x[rows])
            loss = F.cross_entropy(logits, y[rows])
            if weight and earlier:
                with torch.no_grad():
                    others = [eq.members.embed(other, x[rows]) for other in earlier]
                loss = loss + weight * eq.losses.decorrelation(features, others)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return member.eval()


def train_ensemble(x: Tensor, y: Tensor, *, weight: float = 0.0, use_bands: bool = False, epochs: int) -> eq.Ensemble:
    """Train three networks one after another."""
    members: list[nn.Module] = []
    for bands in BANDS:
        members.append(train_member(x, y, members, bands if use_bands else None, weight, epochs))
    shape = eq.InputSpec(leads=("pixels",), rate_hz=PIXELS, scaling="none")  # only needed to predict from files
    return eq.Ensemble(members, classes=[str(digit) for digit in range(10)], input=shape).eval()


def measure(ensemble: eq.Ensemble, x: Tensor, y: Tensor) -> dict[str, float]:
    """Accuracy on clean and attacked images, and how well two scores rank the errors under attack (AUROC)."""
    on_first = eq.attacks.PGD(epsilon=EPSILON)(ensemble.members[0], x, y)
    on_all = eq.attacks.PGD(epsilon=EPSILON)(ensemble, x, y)

    def predict(images: Tensor) -> eq.Prediction:
        with torch.no_grad():
            probs = ensemble.member_log_probs(images).exp().double().numpy()
        return eq.Prediction(("",) * len(images), ensemble.classes, probs, ensemble.information_range)

    def accuracy(found: eq.Prediction) -> float:
        return 100 * float((found.label_index == y.numpy()).mean())

    clean, first, whole = predict(x), predict(on_first), predict(on_all)
    wrong = first.label_index != y.numpy()
    ranks = [
        roc_auc_score(wrong, score) if 0 < wrong.sum() < len(wrong) else float("nan")
        for score in (first.mutual_information, first.risk)
    ]
    return {
        "clean %": accuracy(clean),
        "PGD, member 0 %": accuracy(first),
        "PGD, all %": accuracy(whole),
        "AUROC, mutual information": ranks[0],
        "AUROC, 1 - max p": ranks[1],
    }


def main() -> None:
    """Train and measure four ensembles and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    data = load_digits()
    order = torch.randperm(len(data.target), generator=torch.Generator().manual_seed(0))
    x = torch.tensor(data.images, dtype=torch.float32)[order, None]
    y = torch.tensor(data.target)[order]
    x_train, y_train, x_test, y_test = x[:1200], y[:1200], x[1200:], y[1200:]
    rows = {}
    for name, options in {
        "baseline": {},
        "dec": {"weight": 0.2},
        "part": {"use_bands": True},
        "dec+part": {"weight": 0.2, "use_bands": True},
    }.items():
        torch.manual_seed(arguments.seed)
        ensemble = train_ensemble(x_train, y_train, epochs=arguments.epochs, **options)
        rows[name] = measure(ensemble, x_test, y_test)
    columns = list(next(iter(rows.values())))
    print(f"{'':10}" + "".join(f"{column:>{len(column) + 3}}" for column in columns))
    for name, row in rows.items():
        cells = (f"{row[column]:>{len(column) + 3}.{1 if '%' in column else 2}f}" for column in columns)
        print(f"{name:10}" + "".join(cells))
    print(
        f"\n{len(y_test)} test images, attacks of up to {EPSILON:g} of 16 grey levels. One seed: an example, no proof."
    )


if __name__ == "__main__":
    main()
