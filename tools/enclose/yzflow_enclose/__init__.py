"""Enclosures: bounds of flows at every time, proved in ball arithmetic instead of measured at some times."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
