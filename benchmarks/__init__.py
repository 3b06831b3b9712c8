"""Benchmarks: variants run alternately in one process, and the median ratio of their times is printed."""
