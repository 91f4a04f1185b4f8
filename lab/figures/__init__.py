"""Figures: one function a figure, each returns a matplotlib Figure.

A figure of a new paper is a function in a module of its own in this folder, named in that module's ``__all__``; it is
found here without an entry anywhere else.
"""

from importlib import import_module
from pkgutil import iter_modules

from lab.figures.style import caption, draw, save

__all__ = ["caption", "draw", "save"]

for _module in iter_modules(__path__):
    if _module.name != "style":
        _found = import_module(f"{__name__}.{_module.name}")
        globals().update({name: getattr(_found, name) for name in _found.__all__})
        __all__ += _found.__all__
