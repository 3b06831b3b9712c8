"""Members that answer together: the ensemble, its predictions, its bundle on disk."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
