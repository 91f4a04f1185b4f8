"""The survival table as text for a terminal, and as data for JSON."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import xarray as xr

from yzflow.audits._survival_cells import WHY
from yzflow.audits.rendered import columns
from yzflow.audits.survival import label
from yzflow.audits.survival_verdicts import Fate

__all__ = ["counted", "facts", "fates", "legend", "rescued", "text", "texts"]

# Tables with more options show signs in place of words.
_WORDS_UP_TO = 4


def fates(table: xr.Dataset, name: str = "verdict", **cell: str) -> list[Fate]:
    """The verdicts of a part of the table, in order."""
    return [Fate(int(value)) for value in table[name].sel(cell).values.ravel()]


def counted(table: xr.Dataset) -> str:
    """A sentence with the number of cells for each verdict."""
    known = [fate for fate in fates(table) if fate is not Fate.NOT_ASKED]
    shares = [f"{known.count(fate)} {fate.words}" for fate in Fate if fate in known]
    tests = f"; {table.attrs['tests']} tests over {table.attrs['seeds']} seeds, family-wise error rate "
    return f"Of {len(known)} cells {', '.join(shares)}{tests}{table.attrs['alpha']:g}."


def _parts(table: xr.Dataset) -> Iterator[tuple[str, str, xr.Dataset]]:
    """Settings and levels with verdicts, each with the table of its checks."""
    for setting in table["setting"].values.tolist():
        for level in table["level"].values.tolist():
            grid = table.sel(setting=setting, level=level)
            has_verdict = (grid["verdict"] != Fate.NOT_ASKED).any("option").values
            if has_verdict.any():
                yield setting, level, grid.isel(check=np.flatnonzero(has_verdict))


def _cell(fate: Fate, corrected: Fate, error: float, own_error: float, words: bool) -> str:
    if fate is Fate.NOT_ASKED:
        return ""
    if not words:
        return fate.sign + ("*" if rescued(fate, corrected) else "")
    number = "" if fate is Fate.UNDEFINED else f" ({error:.2g})"
    in_own = f"; corrected {corrected.words} ({own_error:.2g})" if corrected is not Fate.NOT_ASKED else ""
    return fate.words + number + in_own


def rescued(fate: Fate, corrected: Fate) -> bool:
    """True if the form corrected for the option holds where the statement fails, or holds earlier."""
    return corrected in (Fate.HOLDS, Fate.LATER) and fate not in (Fate.HOLDS, corrected)


def _rows(grid: xr.Dataset, words: bool) -> list[list[str]]:
    names = grid["option"].values.tolist()
    head = ["check", *(names if words else map(str, range(1, len(names) + 1)))]
    parts = ("verdict", "verdict_corrected", "error", "error_corrected")
    grids = [grid[name].transpose("check", "option").values for name in parts]
    return [
        head,
        *(
            [name, *(_cell(Fate(int(v)), Fate(int(c)), e, o, words) for v, c, e, o in zip(*rows, strict=True))]
            for name, *rows in zip(grid["check"].values.tolist(), *grids, strict=True)
        ),
    ]


def legend() -> str:
    """Meaning of the signs."""
    signs = [f"{fate.sign} {fate.words}" for fate in Fate if fate is not Fate.NOT_ASKED]
    starred = "* holds in the form that the statement has under the option"
    return ", ".join([*signs, starred]) + "."


def text(table: xr.Dataset) -> str:
    """A table for each setting and level, with words and errors for few options, and signs for many."""
    words = table.sizes["option"] <= _WORDS_UP_TO
    lines = [counted(table), ""]
    lines += columns([[str(i), name, text] for i, (name, text) in enumerate(texts(table), 1)])
    lines += [] if words else ["", legend()]
    for setting, level, grid in _parts(table):
        lines += ["", f"{setting}; {level}", *columns(_rows(grid, words))]
    return "\n".join(lines)


def texts(table: xr.Dataset) -> list[tuple[str, str]]:
    """(name, description) of each option."""
    return list(zip(table["option"].values.tolist(), table["text"].values.tolist(), strict=True))


def facts(table: xr.Dataset) -> dict[str, object]:
    """The table for JSON: each cell with its verdicts, numbers and label."""
    cells: list[dict[str, object]] = []
    for setting, level, grid in _parts(table):
        for name in grid["check"].values.tolist():
            for option in grid["option"].values.tolist():
                cell, labels = grid.sel(check=name, option=option), {"check": name, "option": option}
                fate = Fate(int(cell["verdict"]))
                if fate is Fate.NOT_ASKED:
                    continue
                labels |= {"setting": setting, "level": level}
                numbers = ("error", "late", "holds_from", "reversed_from", "error_corrected", "p", "p_late", "margin")
                cells.append(
                    {
                        "statement": str(cell["statement"].values),
                        **labels,
                        "verdict": fate.name,
                        "verdict_corrected": Fate(int(cell["verdict_corrected"])).name,
                        **{key: float(cell[key]) for key in numbers},
                        "why": WHY.get(int(cell["why"]), ""),
                        "label": label(table, **labels).as_dict(),
                    }
                )
    return {"counted": counted(table), **table.attrs, "cells": cells}
