"""Evaluation: `evaluate` classifies natural and attacked recordings; the `Scorecard` holds all metrics."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
