"""Simulate the training dynamics of attention: data, layers, gradient flow, SGD, trajectories.

Time is in SGD steps everywhere; learning rates are per step.

What is listed here is imported when it is first asked for (PEP 562): numba, xarray and scipy's integrators take longer
to import than much of the work that needs only some of them.
"""

import importlib
import importlib.util
import sys
import types
from typing import TYPE_CHECKING

from dynamics.version import __version__

if TYPE_CHECKING:
    from dynamics.bags import Bags
    from dynamics.dyck import DyckLanguage
    from dynamics.flow import IntegrationError, gradient_flow
    from dynamics.layer import Embedding, Layer
    from dynamics.sequence_classes import SequenceClasses
    from dynamics.sgd import DivergenceError, Outcome, sgd, sgd_many
    from dynamics.text import TextCorpus
    from dynamics.trajectory import Trajectory

__all__ = [
    "Bags",
    "DivergenceError",
    "DyckLanguage",
    "Embedding",
    "IntegrationError",
    "Layer",
    "Outcome",
    "SequenceClasses",
    "TextCorpus",
    "Trajectory",
    "__version__",
    "gradient_flow",
    "sgd",
    "sgd_many",
]

# Where each public name is defined: the imports above, for those who run the program and do not only read it.
_HOMES = {
    "Bags": "bags",
    "DivergenceError": "sgd",
    "DyckLanguage": "dyck",
    "Embedding": "layer",
    "IntegrationError": "flow",
    "Layer": "layer",
    "Outcome": "sgd",
    "SequenceClasses": "sequence_classes",
    "TextCorpus": "text",
    "Trajectory": "trajectory",
    "gradient_flow": "flow",
    "sgd": "sgd",
    "sgd_many": "sgd",
}


def __getattr__(name: str):
    if name in _HOMES:
        found = getattr(importlib.import_module(f"dynamics.{_HOMES[name]}"), name)
        globals()[name] = found
        return found
    if not name.startswith("_") and importlib.util.find_spec(f"dynamics.{name}"):
        return importlib.import_module(f"dynamics.{name}")
    raise AttributeError(f"module 'dynamics' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Package(types.ModuleType):
    """Keeps public names: an import of the module `dynamics.sgd` would otherwise put itself in the function's place."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _HOMES and isinstance(value, types.ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
