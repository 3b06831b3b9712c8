"""Evaluate ensembles: conditions, attacks and metrics, kept in a scorecard."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
