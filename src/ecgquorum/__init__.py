"""Small ensembles of ECG classifiers whose disagreement tells when not to trust them.

The public names, in the order that data flows.
"""

from ecgquorum.errors import EcgQuorumError
from ecgquorum.recipe import Recipe, load_recipe
from ecgquorum.recordings import Recording, Simulation, Unreadable, read, read_all, simulate

from ecgquorum.cohorts import Batch, Cohort, build_cohort, fetch, open_source  # isort: skip
from ecgquorum.members import Member, build_member  # isort: skip
from ecgquorum.ensemble import Ensemble, Prediction, classify_files, load_ensemble, save_bundle  # isort: skip
from ecgquorum.training import train_ensemble  # isort: skip
from ecgquorum.evaluation import Scorecard, evaluate  # isort: skip
from ecgquorum.report import write_report  # isort: skip

__all__ = [  # noqa: RUF022 (in pipeline order)
    "EcgQuorumError",
    "Recipe",
    "load_recipe",
    "Recording",
    "Simulation",
    "Unreadable",
    "read",
    "read_all",
    "simulate",
    "Batch",
    "Cohort",
    "build_cohort",
    "fetch",
    "open_source",
    "Member",
    "build_member",
    "Ensemble",
    "Prediction",
    "classify_files",
    "load_ensemble",
    "save_bundle",
    "train_ensemble",
    "Scorecard",
    "evaluate",
    "write_report",
]
