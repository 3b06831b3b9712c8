"""Many labelled recordings: a cohort on disk, what it is built from, how it is split."""

from ecgquorum.cohorts.batch import Batch, batch_of
from ecgquorum.cohorts.build import BuildReport, build_cohort, open_source
from ecgquorum.cohorts.cohort import PARTS, Cohort, Part
from ecgquorum.cohorts.fetch import fetch

__all__ = [
    "PARTS",
    "Batch",
    "BuildReport",
    "Cohort",
    "Part",
    "batch_of",
    "build_cohort",
    "fetch",
    "open_source",
]
