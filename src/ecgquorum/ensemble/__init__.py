"""Members that answer together: the ensemble, its predictions, its bundle on disk."""

from ecgquorum.ensemble.attribution import Attribution, attribute
from ecgquorum.ensemble.bundle import bundle_names, load_ensemble, save_bundle
from ecgquorum.ensemble.ensemble import Ensemble
from ecgquorum.ensemble.onnx_export import export_onnx
from ecgquorum.ensemble.predict_files import predict_files
from ecgquorum.ensemble.prediction import Prediction, entropy, information_range
from ecgquorum.ensemble.result import Result

__all__ = [
    "Attribution",
    "Ensemble",
    "Prediction",
    "Result",
    "attribute",
    "bundle_names",
    "entropy",
    "export_onnx",
    "information_range",
    "load_ensemble",
    "predict_files",
    "save_bundle",
]
