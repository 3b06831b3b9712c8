"""An ensemble as an ONNX graph: fitted signals in, probabilities and uncertainty out."""

import json
import logging
import warnings
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from ecgquorum._internal.atomic import write_atomic
from ecgquorum._internal.seeds import torch_generator
from ecgquorum.cohorts import Batch
from ecgquorum.ensemble.ensemble import Ensemble
from ecgquorum.ensemble.prediction import TOLERANCE, Prediction
from ecgquorum.errors import ExportError
from ecgquorum.metrics.calibration import MIN_PROBABILITY

OUTPUTS = ("probabilities", "raw_member_probabilities", "mutual_information", "uncertainty", "raw_probabilities")
_OPSET = 20


class _Graph(nn.Module):
    """What is exported: (batch, lead, time) -> the outputs, as `Prediction` derives them."""

    def __init__(self, ensemble: Ensemble) -> None:
        super().__init__()
        self.ensemble = ensemble

    def forward(self, signal: Tensor) -> tuple[Tensor, ...]:
        by_member = self.ensemble.member_log_probs(signal).double().exp()  # entropies are differences: float64
        together = by_member.mean(dim=1)
        information = torch.relu(_entropy(together) - _entropy(by_member).mean(dim=1))
        low, high = self.ensemble.information_range
        calibrated = (torch.log(together.clamp_min(MIN_PROBABILITY)) / self.ensemble.temperature).softmax(dim=-1)
        outputs = (calibrated, by_member, information, (information - low) / (high - low), together)
        return tuple(output.float() for output in outputs)


def _entropy(probs: Tensor) -> Tensor:
    return -(probs * torch.log(probs.clamp_min(1e-30))).sum(dim=-1)


def export_onnx(ensemble: Ensemble, path: str | Path) -> Path:
    """Write the ensemble as ONNX, and check it against onnxruntime before the file is there.

    Input: `signal`, (batch, lead, time) float32, as `ensemble.input` says: leads in order, rate, scale, one window,
    padding zero. Outputs: probabilities (calibrated) and raw_probabilities (batch, class), raw_member_probabilities
    (batch, member, class), and for each recording mutual_information in nats and uncertainty, normalised. What the
    input must be is in the file's metadata.
    """
    try:
        import onnx
        import onnxruntime
        import onnxscript  # noqa: F401 (PyTorch's exporter needs it)
    except ImportError as error:
        raise ExportError(
            f"expected the packages for export, found no {error.name}; get them with: pip install 'ecgquorum[export]'"
        ) from error
    path, spec = Path(path), ensemble.input
    signal = _signals(ensemble, 2)
    graph = _Graph(ensemble).cpu().eval()
    log = logging.getLogger("torch.onnx")
    level = log.level
    log.setLevel(logging.ERROR)  # it warns about optional packages
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the exporter, about its own future
        program = torch.onnx.export(
            graph,
            (signal,),
            input_names=["signal"],
            output_names=list(OUTPUTS),
            dynamic_shapes={"signal": {0: torch.export.Dim("batch")}},
            opset_version=_OPSET,
            dynamo=True,
            verbose=False,
        )
    log.setLevel(level)
    if program is None:
        raise ExportError(f"{path}: expected a graph from PyTorch's exporter, found none")
    model = program.model_proto
    described = {
        "classes": json.dumps(ensemble.classes),
        "leads": json.dumps(spec.leads),
        "rate_hz": f"{spec.rate_hz:g}",
        "scaling": spec.scaling,
        "window_s": f"{spec.window_s:g}",
        "weights_sha256": str(ensemble.card.get("weights_sha256", "")),
        "use": "research only, not a medical device",
    }
    onnx.helper.set_model_props(model, described)
    content = model.SerializeToString()
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    _check(ensemble, session, path)
    write_atomic(path, content)
    return path


def _signals(ensemble: Ensemble, n_records: int) -> Tensor:
    """Noise of the size of an ECG with padding of several lengths."""
    spec = ensemble.input
    size = 200.0 if spec.scaling == "microvolt" else 0.3
    generator = torch_generator(0, "export")
    signal = torch.randn(n_records, len(spec.leads), spec.n_window, generator=generator) * size
    for row in range(1, n_records):
        padding = spec.n_window * row // (3 * n_records)
        signal[row, :, :padding] = signal[row, :, spec.n_window - padding :] = 0
    return signal


def _check(ensemble: Ensemble, session: object, path: Path) -> None:
    """Refuse a graph that does not say what the ensemble says."""
    signal = _signals(ensemble, 5)
    found = session.run(list(OUTPUTS), {"signal": signal.numpy()})  # type: ignore[attr-defined]
    nothing = torch.zeros(len(signal), 1, signal.shape[2], dtype=torch.bool)
    probs = ensemble.cpu().member_probs(Batch(signal, nothing, torch.full((len(signal),), -1)))
    said = Prediction(("",) * len(signal), ensemble.classes, probs, ensemble.information_range, ensemble.temperature)
    expected = (said.probs, said.member_probs, said.mutual_information, said.uncertainty, said.raw_probs)
    low, high = ensemble.information_range  # a narrow one magnifies differences of uncertainty
    for name, one, other in zip(OUTPUTS, found, expected, strict=True):
        tolerance = TOLERANCE / min(1.0, high - low) if name == "uncertainty" else TOLERANCE
        difference = float(np.abs(one - other).max())
        if not difference <= tolerance:
            raise ExportError(
                f"{path}: expected {name} to agree to {tolerance:g}, found a difference of {difference:g}"
            )
