"""Members that answer together: the ensemble, its predictions, its bundle on disk."""

from ecgquorum.ensemble.bundle import bundled_names, load_ensemble, save_bundle
from ecgquorum.ensemble.classifying import classify_files
from ecgquorum.ensemble.ensemble import Ensemble
from ecgquorum.ensemble.exporting import export_onnx
from ecgquorum.ensemble.looking import Looks, looked_at
from ecgquorum.ensemble.prediction import Prediction, entropy, information_range

__all__ = [
    "Ensemble",
    "Looks",
    "Prediction",
    "bundled_names",
    "classify_files",
    "entropy",
    "export_onnx",
    "information_range",
    "load_ensemble",
    "looked_at",
    "save_bundle",
]
