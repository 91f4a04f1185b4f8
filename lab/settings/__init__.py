"""The tasks that statements are checked on: a module a paper, with ``PAPER`` and ``settings(quick=..)``.

A setting has a ``name`` and a method ``simulate(level, seed=..)``. Modules are found without an entry here.
"""

from __future__ import annotations

import importlib
import pkgutil

from theory.statements import Setting


def settings(*, quick: bool) -> dict[str, list[Setting]]:
    """The settings of each paper, by its name in the register."""
    modules = sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))
    found = (importlib.import_module(f"{__name__}.{name}") for name in modules)
    return {module.PAPER: module.settings(quick=quick) for module in found}
