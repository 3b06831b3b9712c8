"""Many labelled recordings: a cohort on disk, what it is built from, how it is split."""

from ecgquorum.cohorts.batch import Batch, make_batch
from ecgquorum.cohorts.build import BuildReport, build_cohort, open_source
from ecgquorum.cohorts.cohort import PARTS, Cohort, Part
from ecgquorum.cohorts.fetch import fetch

__all__ = [
    "PARTS",
    "Batch",
    "BuildReport",
    "Cohort",
    "Part",
    "build_cohort",
    "fetch",
    "make_batch",
    "open_source",
]
