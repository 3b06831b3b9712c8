"""The score "distance": how far a recording's features are from those of the training recordings."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from ecgquorum.errors import BundleError
from ecgquorum.metrics.distance import fit_mahalanobis, mahalanobis_distance
from ecgquorum.metrics.weighting import Array, Labels

FARTHEST = 1e9
"""The largest distance, also of features that overflow or are NaN: a risk has to grow with it, not become NaN."""


@dataclass(frozen=True, eq=False)
class FeatureDistance:
    """The mean over members of the Mahalanobis distance of their features from the nearest class of the training part.

    `fit_risk` scales it so that the median of natural tune recordings is 1.

    means:      for each member, (class, feature)
    whitenings: for each member, W (feature, feature) with W W^T = inverse covariance within classes
    """

    means: tuple[Array, ...]
    whitenings: tuple[Array, ...]

    @classmethod
    def fit(cls, features: Sequence[Array], labels: Labels) -> Self:
        """Fit it on training recordings; features: for each member, (record, feature) · labels: (record,)."""
        fitted = [fit_mahalanobis(one, labels) for one in features]
        means, whitenings = zip(*fitted, strict=True)
        return cls(tuple(map(_round, means)), tuple(map(_round, whitenings)))

    def rescale(self, divisor: float) -> "FeatureDistance":
        """Return the distance in another unit: divided by the divisor."""
        return FeatureDistance(self.means, tuple(_round(one / divisor) for one in self.whitenings))

    def measure(self, features: Sequence[Array]) -> Array:
        """(record,): the distance, at most `FARTHEST`; features: for each member, (record, feature)."""
        by_member = map(mahalanobis_distance, features, self.means, self.whitenings)
        return np.asarray(np.fmin(np.mean(list(by_member), axis=0), FARTHEST))  # fmin: NaN becomes FARTHEST too

    def to_bytes(self) -> bytes:
        """As safetensors, in single precision."""
        kinds = {"mean": self.means, "whitening": self.whitenings}
        return save(
            {f"{name}.{k}": one.astype(np.float32) for name, kind in kinds.items() for k, one in enumerate(kind)}
        )

    @property
    def sha256(self) -> str:
        """Of its bytes."""
        return hashlib.sha256(self.to_bytes()).hexdigest()

    @classmethod
    def from_bytes(cls, content: bytes, n_members: int) -> Self:
        """What `to_bytes` has written."""
        try:
            arrays = {name: array.astype(np.float64) for name, array in load(content).items()}
            found = [tuple(arrays[f"{kind}.{k}"] for k in range(n_members)) for kind in ("mean", "whitening")]
        except (SafetensorError, KeyError) as error:
            raise BundleError(f"expected the means and covariances of {n_members} members, found: {error}") from error
        return cls(*found)


def _round(values: Array) -> Array:
    """To single precision, as it is stored."""
    return np.asarray(values.astype(np.float32).astype(np.float64))
