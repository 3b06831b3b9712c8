"""Ratios, not seconds: variants alternate in one process, and the median of their rounds' ratios is what counts."""
