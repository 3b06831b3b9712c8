"""The batches of an epoch: recordings in random order, cropped, stretched, scaled and flipped, drawn from one seed."""

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from scipy.ndimage import map_coordinates

from ecgquorum._internal.seeds import numpy_generator
from ecgquorum.cohorts import Batch, Cohort, make_batch
from ecgquorum.errors import TrainingError
from ecgquorum.preprocessing import InputSpec
from ecgquorum.preprocessing.input_spec import Signal
from ecgquorum.recipes import TrainingRecipe


def epoch_order(cohort: Cohort, recipe: TrainingRecipe, rng: np.random.Generator) -> np.ndarray:
    """Return the indices of the train part in random order, each as often as the recipe repeats its class."""
    unknown = set(recipe.repeat) - set(cohort.classes)
    if unknown:
        raise TrainingError(
            f"training.repeat: the cohort has no class {', '.join(sorted(unknown))}; it has {', '.join(cohort.classes)}"
        )
    train = cohort.part("train")
    times = np.array([recipe.repeat.get(name, 1) for name in cohort.classes])
    return rng.permutation(np.repeat(train, times[cohort.labels[train]]))


def make_training_batches(
    cohort: Cohort,
    spec: InputSpec,
    recipe: TrainingRecipe,
    *,
    seed: int,
    stream: tuple[str | int, ...],
    epoch: int,
) -> Iterator[tuple[Batch, np.ndarray]]:
    """Yield the batches of one epoch, each with the indices of its recordings.

    A last batch of one recording is left out, because batch norm cannot use it.
    """
    order = epoch_order(cohort, recipe, numpy_generator(seed, *stream, "epoch", epoch, "order"))
    rng = numpy_generator(seed, *stream, "epoch", epoch, "augmentation")
    n_window = spec.n_window if recipe.crop_s is None else round(recipe.crop_s * spec.rate_hz)
    for start in range(0, len(order), recipe.batch_size):
        indices = order[start : start + recipe.batch_size]
        if len(indices) > 1:
            signals = [_vary(spec.scale(cohort.signal(int(i))), n_window, recipe, rng) for i in indices]
            yield make_batch(signals, n_window, cohort.labels[indices].tolist()), indices


def prefetch(batches: Iterator[tuple[Batch, np.ndarray]], pinned: bool) -> Iterator[tuple[Batch, np.ndarray]]:
    """Yield the same batches in the same order, and prepare the next one in a thread meanwhile.

    pinned: in page-locked memory, which a GPU can copy from asynchronously
    """

    def fetch_next() -> tuple[Batch, np.ndarray] | None:
        found = next(batches, None)
        return (Batch(*(part.pin_memory() for part in found[0])), found[1]) if found and pinned else found

    with ThreadPoolExecutor(max_workers=1) as worker:
        pending = worker.submit(fetch_next)
        while (ready := pending.result()) is not None:
            pending = worker.submit(fetch_next)
            yield ready


def n_batches(cohort: Cohort, recipe: TrainingRecipe) -> int:
    """Return the number of batches in an epoch."""
    n_records = len(epoch_order(cohort, recipe, np.random.default_rng(0)))
    whole, rest = divmod(n_records, recipe.batch_size)
    return whole + (rest > 1)


def _vary(signal: Signal, n_window: int, recipe: TrainingRecipe, rng: np.random.Generator) -> Signal:
    """Cut a random stretch that fills the window, change its length, scale it, and flip it, each where asked for."""
    stretch = _draw_factor(recipe.stretch, rng)
    if recipe.crop_s is not None:
        signal = _crop(signal, math.ceil(n_window / stretch), rng)
    if stretch != 1:
        signal = stretch_signal(signal, min(n_window, math.ceil(signal.shape[1] * stretch)), stretch)
    gain = _draw_factor(recipe.gain, rng)
    if recipe.flip > 0 and rng.random() < recipe.flip:
        gain = -gain
    return signal if gain == 1 else signal * np.float32(gain)


def stretch_signal(signal: Signal, n_samples: int, factor: float) -> Signal:
    """Return `n_samples` of the signal (lead, time) slowed down by `factor`, by cubic splines.

    y(t) = x(t / factor)
    """
    times = np.minimum(np.arange(n_samples) / factor, signal.shape[1] - 1)
    return np.stack([map_coordinates(lead, times[None], order=3, mode="nearest") for lead in signal])


def _crop(signal: Signal, n_samples: int, rng: np.random.Generator) -> Signal:
    """Cut a random part of `n_samples`; a shorter signal stays as it is."""
    spare = signal.shape[1] - n_samples
    if spare <= 0:
        return signal
    start = int(rng.integers(spare + 1))
    return signal[:, start : start + n_samples]


def _draw_factor(largest: float, rng: np.random.Generator) -> float:
    """Draw a factor from 1 / largest to largest, evenly on a logarithmic scale."""
    return float(np.exp(rng.uniform(-1, 1) * np.log(largest))) if largest > 1 else 1.0
