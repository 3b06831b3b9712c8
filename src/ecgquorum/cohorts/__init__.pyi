from .batch import Batch as Batch, make_batch as make_batch
from .build import BuildReport as BuildReport, build_cohort as build_cohort, open_source as open_source
from .cohort import PARTS as PARTS, Cohort as Cohort, Part as Part
from .fetch import fetch as fetch
from .mapping import (
    LabelMap as LabelMap,
    MappedCohort as MappedCohort,
    hold_out_class as hold_out_class,
    load_label_map as load_label_map,
)
from .split import SplitOptions as SplitOptions
