"""The batches of an epoch: recordings in random order, cropped, scaled and flipped, all drawn from one seed."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np

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
            signals = [
                _vary(_crop(spec.scale(cohort.signal(int(i))), n_window, recipe, rng), recipe, rng) for i in indices
            ]
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


def _crop(signal: Signal, n_window: int, recipe: TrainingRecipe, rng: np.random.Generator) -> Signal:
    """Cut a random stretch of `n_window` samples; without `crop_s`, return the signal as it is."""
    spare = signal.shape[1] - n_window
    if spare <= 0 or recipe.crop_s is None:
        return signal
    start = int(rng.integers(spare + 1))
    return signal[:, start : start + n_window]


def _vary(signal: Signal, recipe: TrainingRecipe, rng: np.random.Generator) -> Signal:
    """Scale the signal by a random factor, and flip it with the recipe's probability."""
    factor = 1.0
    if recipe.gain > 1:
        factor = float(np.exp(rng.uniform(-1, 1) * np.log(recipe.gain)))
    if recipe.flip > 0 and rng.random() < recipe.flip:
        factor = -factor
    return signal if factor == 1.0 else signal * np.float32(factor)
