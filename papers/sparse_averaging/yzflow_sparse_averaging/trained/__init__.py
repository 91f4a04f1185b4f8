"""Attention units: one or a few heads that a construction writes down, and one that is trained."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
