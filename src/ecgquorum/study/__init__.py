"""A study: every strategy of a recipe trained, attacked, measured and reported."""

from ecgquorum.study.pack_bundle import pack
from ecgquorum.study.progress import StudyProgress, study_progress
from ecgquorum.study.run_study import run_study

__all__ = ["StudyProgress", "pack", "run_study", "study_progress"]
