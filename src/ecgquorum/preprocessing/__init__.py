"""Prepare recordings for a model: leads, rate, scale, windows, quality."""

from ecgquorum.preprocessing.input_spec import InputSpec, Windowing
from ecgquorum.preprocessing.prepare import PreparedRecording, ReadOptions, read_recordings

__all__ = ["InputSpec", "PreparedRecording", "ReadOptions", "Windowing", "read_recordings"]
