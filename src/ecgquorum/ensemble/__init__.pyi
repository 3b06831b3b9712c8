from .attribution import Attribution as Attribution, attribute as attribute
from .bundle import load_ensemble as load_ensemble, save_bundle as save_bundle
from .card import bundle_names as bundle_names, find_bundle as find_bundle, read_card as read_card
from .ensemble import Ensemble as Ensemble
from .onnx_export import export_onnx as export_onnx
from .predict_files import predict_files as predict_files
from .prediction import Prediction as Prediction, information_range as information_range
from .result import Result as Result
from .scores import SCORES as SCORES, entropy as entropy
