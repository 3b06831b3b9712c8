"""Independent random generators with names, derived from one seed."""

import hashlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch


def derive_seed(seed: int, *names: str | int) -> int:
    """Derive a 63-bit seed for the stream called `names`; streams with different names are independent."""
    text = "/".join(str(part) for part in (seed, *names))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def numpy_generator(seed: int, *names: str | int) -> np.random.Generator:
    """A NumPy generator for the stream called `names`."""
    return np.random.default_rng(derive_seed(seed, *names))


def torch_generator(seed: int, *names: str | int) -> "torch.Generator":
    """A PyTorch generator on the CPU for the stream called `names`."""
    import torch  # imported here: reading recordings does not need PyTorch, whose import takes a second

    return torch.Generator().manual_seed(derive_seed(seed, *names))
