from .batch import Batch as Batch, make_batch as make_batch
from .build import BuildReport as BuildReport, build_cohort as build_cohort, open_source as open_source
from .cohort import PARTS as PARTS, Cohort as Cohort, Part as Part
from .fetch import fetch as fetch
from .split import SplitOptions as SplitOptions
