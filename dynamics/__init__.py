"""Simulate the training dynamics of attention: data, layers, gradient flow, SGD, trajectories.

Time is in SGD steps everywhere; learning rates are per step.

The public names are those of ``__init__.pyi``; each is imported when it is first asked for, since numba, xarray and
scipy's integrators take longer to import than much of the work that needs only some of them.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
