"""Reports: figures, pages and model cards, drawn from scorecards and cards, never from a model; recordings on paper."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
