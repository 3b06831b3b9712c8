"""Data sets that a cohort can be built from, one module each."""
