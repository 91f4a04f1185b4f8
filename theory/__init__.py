"""Predictions: closed forms, bounds and certificates for the training dynamics of attention.

Time is in SGD steps and a learning rate is per step, everywhere. The simulators in `dynamics` use nothing from here.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from theory import attention, averaging, balance, decoder, pruning, tokens

__all__ = ["attention", "averaging", "balance", "decoder", "pruning", "tokens"]


def __getattr__(name: str):
    # Each part when it is first asked for: some need numba, or scipy's linear programs.
    if name in __all__:
        return importlib.import_module(f"theory.{name}")
    raise AttributeError(f"module 'theory' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
