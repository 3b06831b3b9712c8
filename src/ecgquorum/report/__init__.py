"""Reports: tables, figures, pages and model cards from scorecards, never from a model; recordings on ECG paper."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
