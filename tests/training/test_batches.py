import numpy as np
import pytest

from ecgquorum.errors import TrainingError
from ecgquorum.preprocessing import InputSpec
from ecgquorum.recipes import TrainingRecipe
from ecgquorum.training.batches import epoch_order, make_training_batches, n_batches, stretch_signal


@pytest.fixture
def spec(tiny_cohort):
    return InputSpec(tiny_cohort.leads, tiny_cohort.rate_hz, "microvolt", 6.0)


def batches(cohort, spec, plan, **names):
    found = make_training_batches(cohort, spec, plan, **({"seed": 0, "stream": ("member", 0), "epoch": 0} | names))
    return [batch for batch, _ in found]


def test_an_epoch_sees_every_recording_as_often_as_its_class_is_repeated(tiny_cohort):
    order = epoch_order(tiny_cohort, TrainingRecipe(repeat={"A": 3}), np.random.default_rng(0))
    for index, count in zip(*np.unique(order, return_counts=True), strict=True):
        assert count == (3 if tiny_cohort.rows[index].label == "A" else 1)
    assert set(order) == set(tiny_cohort.part("train"))
    with pytest.raises(TrainingError, match="no class XX"):
        epoch_order(tiny_cohort, TrainingRecipe(repeat={"XX": 3}), np.random.default_rng(0))


@pytest.mark.parametrize("size", [2, 5, 16, 47, 48, 100])
def test_the_number_of_batches_is_as_announced_and_none_has_one_recording(tiny_cohort, spec, size):
    plan = TrainingRecipe(batch_size=size)
    found = batches(tiny_cohort, spec, plan)
    assert len(found) == n_batches(tiny_cohort, plan)
    assert min(len(batch.label) for batch in found) > 1


def test_batches_are_fixed_by_seed_and_names(tiny_cohort, spec):
    plan = TrainingRecipe(crop_s=2.0, gain=1.5, flip=0.5)
    first = batches(tiny_cohort, spec, plan)
    for names, same in (({}, True), ({"epoch": 1}, False), ({"stream": ("member", 1)}, False), ({"seed": 1}, False)):
        other = batches(tiny_cohort, spec, plan, **names)
        assert np.array_equal(first[0].signal.numpy(), other[0].signal.numpy()) == same


def test_crops_are_segments_of_the_recording(tiny_cohort, spec):
    (batch, *_) = batches(tiny_cohort, spec, TrainingRecipe(crop_s=2.0, batch_size=48))
    assert batch.signal.shape[2] == 600
    assert batch.valid.all()
    whole = [tiny_cohort.signal(int(i))[0] * np.float32(1000) for i in tiny_cohort.part("train")]
    stretch = batch.signal[0, 0].numpy()
    assert any(np.isin(stretch[:5], signal).all() and stretch.tobytes() in signal.tobytes() for signal in whole)


def test_gain_and_flip_stay_in_their_bounds(tiny_cohort, spec):
    plain = batches(tiny_cohort, spec, TrainingRecipe(batch_size=48))[0]
    varied = batches(tiny_cohort, spec, TrainingRecipe(batch_size=48, gain=1.5, flip=0.5))[0]
    factor = (varied.signal / plain.signal).nanmedian(dim=2).values[:, 0]
    assert ((factor.abs() > 1 / 1.51) & (factor.abs() < 1.51)).all()
    assert 0.2 < (factor < 0).float().mean() < 0.8
    assert factor.abs().std() > 0.05


def test_a_stretched_sine_is_a_slower_sine():
    seconds = np.arange(3000) / 300
    signal = np.stack([np.sin(2 * np.pi * hertz * seconds) for hertz in (1, 40)]).astype(np.float32)
    slower = stretch_signal(signal, 3300, 1.1)
    expected = np.stack([np.sin(2 * np.pi * hertz * np.arange(3300) / 300 / 1.1) for hertz in (1, 40)])
    np.testing.assert_allclose(slower[:, 50:-50], expected[:, 50:-50], atol=0.02)
    assert slower.dtype == np.float32


def test_stretching_fills_crops_and_changes_the_length_of_whole_recordings(tiny_cohort, spec):
    cropped = batches(tiny_cohort, spec, TrainingRecipe(crop_s=2.0, batch_size=48, stretch=1.2))[0]
    assert cropped.valid.all()
    whole = batches(tiny_cohort, spec, TrainingRecipe(batch_size=48, stretch=1.2))[0]
    plain = batches(tiny_cohort, spec, TrainingRecipe(batch_size=48))[0]
    ratio = (whole.valid.sum(dim=2) / plain.valid.sum(dim=2)).numpy()
    assert ratio.min() < 0.95
    assert ratio.min() > 1 / 1.21
    assert ratio.max() <= 1.21
    assert np.isfinite(whole.signal.numpy()).all()
