"""Figures: each name is an entry of the registry, which returns a matplotlib Figure when it is called.

>>> from yzflow import figures
>>> figures.figure9.title
'Scan and Snap, Figure 9'

A paper's figures are entries of the tuple ``FIGURES`` of a module in the paper's folder ``figures``. This package,
``yzflow figure`` and the gallery find them there; no other list names them.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from dynamics.support import checks
from dynamics.support.files import replacing
from yzflow.figures.finding import find
from yzflow.figures.registry import Effort, Entry, draw, entries, names
from yzflow.figures.style import save

# The tools; every other name is a figure, found on first access.
__all__ = ["Effort", "Entry", "draw", "entries", "find", "names", "save", "save_all"]


def __getattr__(name: str) -> Entry:
    if not name.startswith("_") and name in entries():
        return entries()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *entries()]


def save_all(
    shown: Mapping[str, object],
    folder: str | os.PathLike,
    *,
    formats: Sequence[str] = ("png", "pdf"),
    among: Sequence[Entry] = (),
) -> str:
    """Draw figures and write them to a folder, with their captions in ``captions.txt``; returns the captions.

    Parameters
    ----------
    shown : mapping
        Name of a figure -> its data, or None for data that the figure computes.
    among : sequence of Entry
        Further figures beside the papers', such as a study's.
    """
    checks.instance("shown", shown, Mapping, rule="be a mapping from names of figures to their data")
    checks.instance("folder", folder, (str, os.PathLike), rule="be the path of a folder")
    others = checks.listed("among", among, "be a sequence of figures")
    known = entries() | {checks.instance("among", entry, Entry).name: entry for entry in others}
    for name in shown:
        checks.one_of("shown", name, known)
    captions = []
    for name, given in shown.items():
        entry = known[name]
        data = entry.data() if given is None else given
        save(entry.draw(data), Path(folder) / name, formats=formats)
        title = entry.printed or name
        captions.append(f"{title}. {entry.caption(data)}\n")
    with replacing(Path(folder) / "captions.txt") as path:
        path.write_text("\n".join(captions), encoding="utf-8")
    return "\n".join(captions)
