"""The recordings that ship."""

import numpy as np
import pytest

from ecgquorum import load_ensemble, read, simulate
from ecgquorum.errors import RecordingError
from ecgquorum.recordings import resolve_sample, sample_names
from ecgquorum.recordings.discovery import RecordingPath, discover_recordings

SIMULATED = {
    "af": ("A", {"seed": 2, "leads": ("ECG",)}),
    "lbbb": ("LBBB", {"seed": 0, "seconds": 10, "rate_hz": 500}),
}


def test_every_sample_is_known_here_and_they_are_small():
    assert sample_names() == sorted(SIMULATED)
    folder = resolve_sample("sample:af").parent
    assert sum(file.stat().st_size for file in folder.iterdir()) <= 200_000


@pytest.mark.parametrize("name", SIMULATED)
def test_a_sample_is_what_its_header_says(name):
    label, options = SIMULATED[name]
    found, expected = read(f"sample:{name}"), simulate(label, **options).recording
    assert (found.leads, found.rate_hz) == (expected.leads, expected.rate_hz)
    np.testing.assert_allclose(found.signal, expected.signal, atol=1e-3)
    assert f"simulate {label} --seed {options['seed']}" in resolve_sample(f"sample:{name}").read_text()


@pytest.mark.parametrize(("name", "model", "label"), [("af", "physionet2017", "A"), ("lbbb", "cpsc2018", "LBBB")])
def test_the_ensembles_that_ship_recognise_the_samples(name, model, label):
    assert load_ensemble(model).predict(f"sample:{name}").labels == (label,)


def test_samples_are_discovered_like_files():
    (found,) = discover_recordings(["sample:af"])
    assert isinstance(found, RecordingPath) and found.name == "af.hea"


def test_an_unknown_sample_is_an_error_that_names_the_known_ones():
    with pytest.raises(RecordingError, match="sample:af, sample:lbbb"):
        read("sample:vt")


def test_a_file_of_that_name_comes_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sample:af").write_text("mine")
    assert resolve_sample("sample:af").read_text() == "mine"
