"""Figures: one function a figure, each returns a matplotlib Figure.

A figure of a new paper is a function in a module of its own in this folder, named in that module's ``__all__``; it is
found here without an entry anywhere else.
"""

import os
from collections.abc import Mapping, Sequence
from inspect import Parameter, signature
from pathlib import Path

from dynamics.support import checks
from dynamics.support.files import replacing
from yzflow import papers
from yzflow.figures import audit
from yzflow.figures.style import caption, draw, save

# The tools of this module; every other name is a figure.
__all__ = ["caption", "draw", "find", "names", "save", "save_all"]
_TOOLS = tuple(__all__)

for _found in [audit, *papers.parts("figures")]:
    globals().update({name: getattr(_found, name) for name in _found.__all__})
    __all__ += _found.__all__


def names(*, given: bool = False) -> list[str]:
    """The figures: those with numbers in Scan and Snap first, then names.

    Parameters
    ----------
    given : bool
        Those that draw runs which they are given. Default: those that need no argument.
    """
    drawings = [name for name in __all__ if name not in _TOOLS and bool(_needed(globals()[name])) == given]
    numbers = sorted(int(name[6:]) for name in drawings if name[6:].isdigit())
    numbered = [f"figure{number}" for number in numbers]
    return numbered + sorted(set(drawings) - set(numbered))


def _needed(function) -> list[str]:
    return [name for name, given in signature(function).parameters.items() if given.default is Parameter.empty]


def find(name: str) -> str:
    """The function that draws a figure: by number, name, or the start of one name.

    Raises
    ------
    ValueError
        If there is no such figure, or more than one.
    """
    known = names()
    if f"figure{name}" in known:
        return f"figure{name}"
    found = [key for key in known if key.startswith(name) and not name.startswith("figure")]
    if name not in known and len(found) != 1:
        raise checks.reject("NAME", "be one of " + ", ".join(key.removeprefix("figure") for key in known), repr(name))
    return name if name in known else found[0]


def save_all(shown: Mapping[str, object], folder: str | os.PathLike, *, formats: Sequence[str] = ("png", "pdf")) -> str:
    """Draw figures and write them to a folder, with their captions in ``captions.txt``; returns the captions.

    Parameters
    ----------
    shown : mapping
        From the name of a figure to what its function takes, or to None if it is to be called without.
    """
    captions = []
    for name, data in shown.items():
        function = globals()[name]
        save(function() if data is None else function(data), Path(folder) / name, formats=formats)
        title = f"Figure {name[6:]}" if name[6:].isdigit() else name
        captions.append(f"{title}. {caption(function)}\n")
    with replacing(Path(folder) / "captions.txt") as path:
        path.write_text("\n".join(captions), encoding="utf-8")
    return "\n".join(captions)
