"""Recipes: a training run, or a whole study, written in TOML.

An unknown key is an error that names the nearest known one. `Recipe.toml()` writes a recipe back with its defaults.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
