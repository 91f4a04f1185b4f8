"""Predictions: closed forms, bounds and certificates for the training dynamics of attention.

Time is in SGD steps and a learning rate is per step, everywhere. The simulators in `dynamics` use nothing from here.

A paper is a room of its own, a folder with its formulas, statements, measures and proofs. What other people's code
relies on is in ``__init__.pyi``, imported when it is first asked for.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
