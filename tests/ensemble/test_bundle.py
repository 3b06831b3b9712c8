import json
import shutil

import numpy as np
import pytest
import safetensors.torch
import torch

from ecgquorum import Ensemble, load_ensemble, save_bundle, simulate, train_ensemble
from ecgquorum.ensemble.bundle import round_weights
from ecgquorum.errors import BundleError
from ecgquorum.metrics.calibration import fit_temperature
from ecgquorum.preprocessing import InputSpec
from ecgquorum.training import check_trainable


@pytest.fixture
def bundle(tiny_run, tmp_path):
    """A copy that may be damaged."""
    return shutil.copytree(tiny_run, tmp_path / "bundle")


def test_a_saved_bundle_loads_unchanged(tiny_run, tiny_recipe, tmp_path):
    ensemble = load_ensemble(tiny_run)
    save_bundle(ensemble, tmp_path / "copy", recipe=tiny_recipe, facts={"note": "copied"})
    again = load_ensemble(tmp_path / "copy")
    recording = simulate("A", seed=3, leads=("ECG",)).recording
    np.testing.assert_array_equal(again.predict(recording).member_probs, ensemble.predict(recording).member_probs)
    assert again.information_range == ensemble.information_range
    assert again.robust_information_range == ensemble.robust_information_range is not None
    assert again.card["note"] == "copied"
    assert not again.training


def test_the_card_describes_the_weights(tiny_run, tiny_cohort):
    card = json.loads((tiny_run / "card.json").read_text())
    assert card["classes"] == ["N", "A", "O", "~"]
    assert (card["leads"], card["rate_hz"], card["scaling"], card["window_s"]) == (["ECG"], 300.0, "microvolt", 6.0)
    assert card["data_hash"] == tiny_cohort.data_hash
    assert card["n_recordings"] == {"train": 48, "tune": 6, "test": 6}
    assert card["versions"].keys() >= {"python", "torch", "ecgquorum"}
    assert len(card["weights_sha256"]) == len(card["card_sha256"]) == 64
    low, high = card["information_range"]
    assert 0 <= low < high


@pytest.mark.parametrize("file", ["weights.safetensors", "card.json"])
def test_truncated_files_are_detected(bundle, file):
    content = (bundle / file).read_bytes()
    for length in (0, 1, 100, len(content) // 2, len(content) - 2):
        (bundle / file).write_bytes(content[:length])
        with pytest.raises(BundleError, match=file):
            load_ensemble(bundle)


def _parses_to(content, document):
    try:
        return json.loads(content) == document
    except ValueError:
        return False


@pytest.mark.parametrize("file", ["weights.safetensors", "card.json"])
def test_flipped_bits_are_detected(bundle, file):
    content = (bundle / file).read_bytes()
    for place in np.random.default_rng(0).integers(len(content) - 1, size=40):
        damaged = bytearray(content)
        damaged[place] ^= 1 << (int(place) % 7)
        if file == "card.json" and _parses_to(damaged, json.loads(content)):
            continue  # such as 1e-05 and 1E-05, or a digit beyond double precision
        (bundle / file).write_bytes(damaged)
        with pytest.raises(BundleError, match="bundle"):
            load_ensemble(bundle)


def add_checksum(bundle, **changes):
    """Change the card and compute its checksum again."""
    from ecgquorum._internal.checksums import add_checksum as resealed

    card = json.loads((bundle / "card.json").read_text()) | changes
    (bundle / "card.json").write_text(
        json.dumps(resealed({k: v for k, v in card.items() if v is not None}, "card_sha256"))
    )


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"weights_sha256": "0" * 64}, "belongs to another card"),
        ({"format": 3}, "format 2, found 3"),
        ({"format": 1}, "this bundle is of ecgquorum 0.1"),
        ({"classes": None}, "classes"),
        ({"classes": ["a", "b"]}, "weights of the card's network"),
        ({"leads": ["I", "II"]}, "weights of the card's network"),
        ({"information_range": [0.5, 0.5]}, "range of information"),
        ({"information_range": [0.0, float("nan")]}, "range of information"),
        ({"information_range": "x"}, "its card describes"),
        ({"robust_information_range": [0.0, 0.0]}, "range of information"),
        ({"temperature": 0.0}, "temperature above 0"),
        ({"temperature": float("inf")}, "temperature above 0"),
        ({"members": [{"kind": "no_such_package:Net", "options": {}}] * 2}, "not built in; name their class"),
        ({"members": [{"kind": "compact", "options": {"depth": 3}}] * 2}, "unknown option depth"),
        ({"members": 3}, "its card describes"),
        ({"rate_hz": "fast"}, "its card describes"),
    ],
)
def test_a_card_that_does_not_match_is_refused(bundle, changes, reason):
    add_checksum(bundle, **changes)
    with pytest.raises(BundleError, match=reason):
        load_ensemble(bundle)


def test_weights_of_another_network_are_refused(bundle):
    import hashlib

    other = safetensors.torch.save({"0.head.weight": torch.zeros(3)})
    (bundle / "weights.safetensors").write_bytes(other)
    add_checksum(bundle, weights_sha256=hashlib.sha256(other).hexdigest())
    with pytest.raises(BundleError, match="weights of the card's network"):
        load_ensemble(bundle)


def test_a_folder_that_is_not_a_bundle_is_refused_with_a_reason(bundle, tmp_path):
    with pytest.raises(BundleError, match="nowhere: expected the folder of a bundle, or the name of one"):
        load_ensemble("nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(BundleError, match="this is no bundle"):
        load_ensemble(tmp_path / "empty")
    (bundle / "card.json").unlink()
    with pytest.raises(BundleError, match="has not finished"):
        load_ensemble(bundle)


def test_a_bundle_that_ships_is_found_by_its_name(bundle, tmp_path, monkeypatch):
    package = tmp_path / "package"
    shutil.copytree(bundle, package / "bundles" / "some-model")
    monkeypatch.setattr("ecgquorum.ensemble.card.files", lambda name: package)
    assert load_ensemble("some-model").classes == ("N", "A", "O", "~")
    with pytest.raises(BundleError, match="some-model"):
        load_ensemble("other-model")


def test_rounded_weights_take_half_the_bytes_and_load_exactly(tiny_recipe, tiny_cohort, tmp_path):
    plan = check_trainable(tiny_recipe, tiny_cohort)
    members = [plan.build_member(tiny_cohort, index) for index in range(tiny_recipe.members)]
    spec = InputSpec(tiny_cohort.leads, tiny_cohort.rate_hz, "microvolt", 6.0)
    ensemble = Ensemble(members, tiny_cohort.classes, spec, temperature=1.5)
    members[0].blocks[0].last.norm.running_var.fill_(1e6 + 1 / 3)  # beyond half precision
    whole = save_bundle(ensemble, tmp_path / "whole", recipe=tiny_recipe) / "weights.safetensors"
    round_weights(ensemble)
    rounded = save_bundle(ensemble, tmp_path / "rounded", recipe=tiny_recipe) / "weights.safetensors"
    assert rounded.stat().st_size < 0.75 * whole.stat().st_size
    again = load_ensemble(tmp_path / "rounded")
    assert again.temperature == 1.5
    assert (again.members[0].blocks[0].last.norm.running_var == np.float32(1e6 + 1 / 3)).all()
    for (name, one), other in zip(ensemble.state_dict().items(), again.state_dict().values(), strict=True):
        assert one.dtype == other.dtype and torch.equal(one, other), name


def test_the_card_holds_the_effect_of_rounding(tiny_run):
    card = json.loads((tiny_run / "card.json").read_text())
    assert card["precision"] == "half" and 0 < card["rounding_moved"] <= 1e-3


def test_the_temperature_is_fitted_on_the_tune_part(tiny_run, tiny_cohort, bundle):
    ensemble = load_ensemble(tiny_run)
    probs = ensemble.predict_part(tiny_cohort, "tune").raw_probs
    expected = fit_temperature(probs, tiny_cohort.labels[tiny_cohort.part("tune")])
    assert ensemble.temperature == pytest.approx(expected, rel=1e-3)
    add_checksum(bundle, temperature=None)  # a bundle of an earlier version
    assert load_ensemble(bundle).temperature == 1.0


def test_weights_are_not_rounded_if_probabilities_change_too_much(tiny_recipe, tiny_cohort, tmp_path, monkeypatch):
    rounded = round_weights

    def overflown(ensemble):
        rounded(ensemble)
        with torch.no_grad():
            ensemble.members[0].head.weight.fill_(float("inf"))

    monkeypatch.setattr("ecgquorum.training.finish.round_weights", overflown)
    ensemble = train_ensemble(tiny_recipe, tiny_cohort, tmp_path / "run", device="cpu")
    assert ensemble.card["precision"] == "single" and "rounding_moved" not in ensemble.card
    assert not all(torch.equal(p.half().float(), p) for p in ensemble.parameters() if p.ndim > 1)
