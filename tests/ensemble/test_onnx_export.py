"""ONNX graphs agree with the ensemble, uncertainty included."""

import json

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

from ecgquorum import export_onnx, load_ensemble, simulate
from ecgquorum.cohorts import Batch
from ecgquorum.cohorts.batch import make_batch
from ecgquorum.ensemble import Ensemble, Prediction
from ecgquorum.ensemble.onnx_export import OUTPUTS
from ecgquorum.ensemble.prediction import TOLERANCE
from ecgquorum.errors import ExportError
from ecgquorum.members import BandFilter, CompactMember, DilatedMember, build_member, rings
from ecgquorum.preprocessing import InputSpec


def ensemble_of(kind, width, n_leads=1, scaling="microvolt"):
    """Two members, of which the second sees some bands; PyTorch takes seconds to export each."""
    torch.manual_seed(0)
    leads = ("ECG",) if n_leads == 1 else tuple(f"V{i}" for i in range(n_leads))
    members = [
        build_member(kind, n_leads=n_leads, n_classes=3, rate_hz=300.0, options={"width": width}) for _ in range(2)
    ]
    members[1] = BandFilter(rings(300.0, 0), 300.0).then(members[1])
    return Ensemble(members, ("a", "b", "c"), InputSpec(leads, 300.0, scaling, 3.3), (0.01, 0.2)).eval()


def all_frequencies(n_leads, n_classes, rate_hz, width):
    return CompactMember(n_leads, n_classes, rate_hz, width=width, low_pass=False)


@pytest.mark.parametrize(
    ("kind", "width", "n_leads", "scaling"),
    [
        pytest.param(all_frequencies, 0.125, 1, "microvolt", marks=pytest.mark.long),
        pytest.param(CompactMember, 0.125, 2, "unit", marks=pytest.mark.long),
        (DilatedMember, 0.05, 2, "microvolt"),
        pytest.param(CompactMember, 0.125, 1, "microvolt", marks=pytest.mark.slow),
    ],
)
def test_the_graph_agrees_with_the_ensemble(kind, width, n_leads, scaling, tmp_path):
    ensemble = ensemble_of(kind, width, n_leads, scaling)
    ensemble.temperature = 1.7
    path = export_onnx(ensemble, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(str(path))
    n_window = ensemble.input.n_window
    for n_records in (1, 7):
        signal = torch.randn(n_records, n_leads, n_window) * (300 if scaling == "microvolt" else 0.3)
        signal[0, :, :100] = signal[0, :, 700:] = 0
        valid = torch.ones(n_records, 1, n_window, dtype=torch.bool)
        probs = ensemble.member_probs(Batch(signal, valid, torch.zeros(n_records)))
        said = Prediction(("",) * n_records, ensemble.classes, probs, ensemble.information_range, ensemble.temperature)
        names = [*OUTPUTS]
        found = dict(zip(names, session.run(names, {"signal": signal.numpy()}), strict=True))
        np.testing.assert_allclose(found["raw_probabilities"], said.raw_probs, atol=TOLERANCE)
        np.testing.assert_allclose(found["probabilities"], said.probs, atol=TOLERANCE)
        np.testing.assert_allclose(found["raw_member_probabilities"], said.member_probs, atol=TOLERANCE)
        np.testing.assert_allclose(found["mutual_information"], said.mutual_information, atol=TOLERANCE)
        np.testing.assert_allclose(found["uncertainty"], said.uncertainty, atol=TOLERANCE / 0.19)  # its range


@pytest.fixture(scope="module")
def trained(tiny_study, tmp_path_factory):
    """A trained ensemble with frequency bands, and its graph."""
    ensemble = load_ensemble(tiny_study / "runs" / "dec+part")
    return ensemble, export_onnx(ensemble, tmp_path_factory.mktemp("graph") / "model.onnx")


@pytest.mark.long
@pytest.mark.parametrize("name", ["physionet2017", pytest.param("cpsc2018", marks=pytest.mark.slow)])
def test_shipped_ensembles_export(name, tmp_path):
    ensemble = load_ensemble(name)
    check_graph(ensemble, export_onnx(ensemble, tmp_path / "model.onnx"))


@pytest.mark.long
def test_ensembles_with_frequency_bands_export(trained):
    check_graph(*trained)


def check_graph(ensemble, path):
    session = onnxruntime.InferenceSession(str(path))
    recordings = [simulate(label, seed=1, leads=ensemble.input.leads).recording for label in ensemble.classes[:2]]
    batch = make_batch([ensemble.input.fit(one) for one in recordings], ensemble.input.n_window)
    found = session.run(["raw_member_probabilities"], {"signal": batch.signal.numpy()})[0]
    np.testing.assert_allclose(found, ensemble.member_probs(batch), atol=TOLERANCE)


@pytest.mark.long
def test_the_metadata_describe_the_input(trained):
    ensemble, path = trained
    model = onnx.load(path)
    metadata = {entry.key: entry.value for entry in model.metadata_props}
    assert json.loads(metadata["classes"]) == ["N", "A", "O", "~"]
    assert (metadata["rate_hz"], metadata["scaling"], metadata["window_s"]) == ("300", "microvolt", "6")
    assert metadata["weights_sha256"] == ensemble.card["weights_sha256"]
    assert ensemble.training is False


@pytest.mark.long
def test_a_graph_that_disagrees_is_not_written(tmp_path, monkeypatch):
    ensemble = ensemble_of(DilatedMember, 0.05)
    monkeypatch.setattr("ecgquorum.ensemble.onnx_export.TOLERANCE", -1.0)
    with pytest.raises(ExportError, match="probabilities to agree"):
        export_onnx(ensemble, tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


def test_missing_packages_give_an_error_with_the_install_command(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "onnxruntime", None)
    with pytest.raises(ExportError, match="ecgquorum.export."):
        export_onnx(ensemble_of(CompactMember, 0.125), tmp_path / "model.onnx")
