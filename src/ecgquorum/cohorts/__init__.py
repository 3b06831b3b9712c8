"""Cohorts: many labelled recordings, their sources and their split."""

from ecgquorum.cohorts.batch import Batch, make_batch
from ecgquorum.cohorts.build import BuildReport, build_cohort, open_source
from ecgquorum.cohorts.cohort import PARTS, Cohort, Part
from ecgquorum.cohorts.fetch import fetch
from ecgquorum.cohorts.split import SplitOptions

__all__ = [
    "PARTS",
    "Batch",
    "BuildReport",
    "Cohort",
    "Part",
    "SplitOptions",
    "build_cohort",
    "fetch",
    "make_batch",
    "open_source",
]
