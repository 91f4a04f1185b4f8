"""The papers, a room each; what a room holds is found here without an entry anywhere else.

A room may have a module or a folder of modules of each of these names: ``settings`` (what statements are checked on),
``tasks`` (of sweeps), ``figures``, ``questions`` (on statements, for students); and packages ``panel`` (of the
explorer), ``own_panel`` (of the explorer, for a reader's own data) and ``views`` (plots with sliders on the statements'
pages). A room can be added or taken away whole.
"""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType


def parts(name: str, *, inner: bool = True) -> list[ModuleType]:
    """The modules ``name`` of all rooms, or the modules in the folders of this name, in the order of their names.

    Parameters
    ----------
    inner : bool
        Whether a folder stands for the modules in it. False: for itself.
    """
    found = []
    for room in sorted(room.name for room in pkgutil.iter_modules(__path__) if room.ispkg):
        package = importlib.import_module(f"{__name__}.{room}")
        if name not in {module.name for module in pkgutil.iter_modules(package.__path__)}:
            continue
        part = importlib.import_module(f"{package.__name__}.{name}")
        folder = getattr(part, "__path__", ()) if inner else ()
        names = sorted(module.name for module in pkgutil.iter_modules(folder))
        found += [importlib.import_module(f"{part.__name__}.{module}") for module in names] or [part]
    return found
