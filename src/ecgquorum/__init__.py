"""Small ensembles of ECG classifiers whose disagreement and confidence tell when not to trust them.

The public names are listed in `__init__.pyi`. Each is imported when it is first used, so that importing ecgquorum
and starting the command line do not wait for PyTorch.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
