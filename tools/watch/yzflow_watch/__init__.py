"""Trainings that others run: what is recorded of them, and which theorems say something about them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
