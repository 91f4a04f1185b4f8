"""Fields: which way logits move. `full`, `modified` and `theory` are the built-in ones, `table` has what each offers.

A field of one's own (`own`) is registered by the module that defines it, so that whoever imports that module has it. An
installed distribution offers one under its name by the entry point group ``yzflow.fields``, and nobody has to import
anything.
"""

from __future__ import annotations

import sys
from types import ModuleType

import lazy_loader

# Waits until it is needed: a file of this room must not import the others.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


class _Fields(ModuleType):
    """This room, which has the name of the function `dynamics.fields`, and so is called as that is."""

    def __call__(self) -> dict[str, tuple[str, ...]]:
        known: dict[str, tuple[str, ...]] = self.fields()
        return known


sys.modules[__name__].__class__ = _Fields
