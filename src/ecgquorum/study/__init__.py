"""A study: every strategy of a recipe trained, attacked, evaluated and reported."""

from ecgquorum.study.pack_bundle import pack
from ecgquorum.study.runner import run_study

__all__ = ["pack", "run_study"]
