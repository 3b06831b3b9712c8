"""Metrics of predictions: pure functions of arrays."""
