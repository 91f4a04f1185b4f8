"""Modules that are called like the function of their name."""

from __future__ import annotations

import inspect
import sys
import types
from collections.abc import Callable


class _CallableModule(types.ModuleType):
    def __call__(self, *arguments, **options):
        return self.__wrapped__(*arguments, **options)


def callable_module(function: Callable) -> None:
    """Let the module of ``function`` be called in its place.

    ``lab.audit`` and ``lab.sweep`` are functions by contract, and Python makes them the modules of these names.
    """
    module = sys.modules[function.__module__]
    module.__class__ = _CallableModule
    module.__wrapped__ = function
    module.__signature__ = inspect.signature(function)
