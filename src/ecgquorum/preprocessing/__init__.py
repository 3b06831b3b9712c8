"""Prepare recordings for a model: leads, rate, scale, windows, quality."""

from ecgquorum.preprocessing.input_spec import InputSpec

__all__ = ["InputSpec"]
