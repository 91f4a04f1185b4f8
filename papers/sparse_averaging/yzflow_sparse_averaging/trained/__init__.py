"""Attention units whose query is linear in the set: the unit, and its training on sparse averaging."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
