"""Recordings of trainings that others run, and the theorems that apply to them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
