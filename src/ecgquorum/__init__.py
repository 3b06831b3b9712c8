"""Small ensembles of ECG classifiers whose disagreement tells when not to trust them.

The public names, in the order that data flows. Each is imported when it is first asked for, so that the command line
answers at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ecgquorum.cohorts import Batch, Cohort, build_cohort, fetch, open_source
    from ecgquorum.ensemble import (
        Attribution,
        Ensemble,
        Prediction,
        Result,
        attribute,
        export_onnx,
        load_ensemble,
        predict_files,
        save_bundle,
    )
    from ecgquorum.errors import EcgQuorumError
    from ecgquorum.evaluation import Scorecard, evaluate, name_ensembles
    from ecgquorum.members import BandFilter, build_member
    from ecgquorum.preprocessing import InputSpec, PreparedRecording, ReadOptions, read_recordings
    from ecgquorum.recipes import Recipe, Study, load_recipe, load_study
    from ecgquorum.recordings import FileDefaults, ReadFailure, Recording, read, reader, write
    from ecgquorum.report import model_card, write_report, write_results
    from ecgquorum.simulation import Simulation, simulate
    from ecgquorum.study import pack, run_study
    from ecgquorum.training import train_ensemble
    from ecgquorum.triage import triage_files

_HOMES = {
    "errors": ("EcgQuorumError",),
    "recipes": ("Recipe", "Study", "load_recipe", "load_study"),
    "recordings": ("FileDefaults", "ReadFailure", "Recording", "read", "reader", "write"),
    "simulation": ("Simulation", "simulate"),
    "preprocessing": ("InputSpec", "PreparedRecording", "ReadOptions", "read_recordings"),
    "cohorts": ("Batch", "Cohort", "build_cohort", "fetch", "open_source"),
    "members": ("BandFilter", "build_member"),
    "ensemble": (
        "Ensemble",
        "Attribution",
        "Prediction",
        "Result",
        "predict_files",
        "export_onnx",
        "load_ensemble",
        "attribute",
        "save_bundle",
    ),
    "training": ("train_ensemble",),
    "evaluation": ("Scorecard", "evaluate", "name_ensembles"),
    "report": ("model_card", "write_report", "write_results"),
    "study": ("pack", "run_study"),
    "triage": ("triage_files",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [  # noqa: RUF022 (in pipeline order)
    "EcgQuorumError",
    "Recipe",
    "Study",
    "load_recipe",
    "load_study",
    "Recording",
    "Simulation",
    "ReadFailure",
    "FileDefaults",
    "read",
    "reader",
    "write",
    "simulate",
    "InputSpec",
    "PreparedRecording",
    "ReadOptions",
    "read_recordings",
    "Batch",
    "Cohort",
    "build_cohort",
    "fetch",
    "open_source",
    "BandFilter",
    "build_member",
    "Ensemble",
    "Prediction",
    "Result",
    "predict_files",
    "export_onnx",
    "load_ensemble",
    "save_bundle",
    "Attribution",
    "attribute",
    "train_ensemble",
    "Scorecard",
    "evaluate",
    "name_ensembles",
    "model_card",
    "write_report",
    "write_results",
    "pack",
    "run_study",
    "triage_files",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
