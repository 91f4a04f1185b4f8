"""Ordinary transformers, trained by gradient steps, to test theorems on the Y/Z layer outside of the theory.

Runs on the CPU, or on the accelerator that jax finds. Time is in SGD
steps; learning rates are per step.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
