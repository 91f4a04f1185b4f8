"""Predictions: closed forms, bounds and certificates for the training dynamics of attention.

Time is in SGD steps and a learning rate is per step, everywhere. The simulators in `dynamics` use nothing from here.

Each paper has a room: a folder with its formulas, statements, measures and proofs. ``__init__.pyi`` lists the public
names, which are imported on first use.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
