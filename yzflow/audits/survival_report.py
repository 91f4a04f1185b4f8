"""The survival table as text for a terminal, and as data for JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import xarray as xr

from dynamics.support.rounded import faithful
from yzflow.audits._survival_cells import WHY
from yzflow.audits.rendered import columns
from yzflow.audits.screen import wrapped
from yzflow.audits.survival import label
from yzflow.audits.survival_verdicts import Fate, seeds_needed

__all__ = ["counted", "facts", "fates", "legend", "rescued", "text", "texts", "told"]

# Tables with more options show signs in place of words.
_WORDS_UP_TO = 4
_NAMED = 3  # checks that a sentence names
# Verbs for one and for several.
_VERBS = {
    Fate.HOLDS: ("holds", "hold"),
    Fate.LATER: ("holds later", "hold later"),
    Fate.REVERSED: ("is reversed", "are reversed"),
    Fate.FAILS: ("fails", "fail"),
    Fate.UNDEFINED: ("is undefined", "are undefined"),
    Fate.UNDECIDED: ("is undecided", "are undecided"),
}


def fates(table: xr.Dataset, name: str = "verdict", **cell: str) -> list[Fate]:
    """The verdicts of a part of the table, in order."""
    return [Fate(int(value)) for value in table[name].sel(cell).values.ravel()]


def counted(table: xr.Dataset) -> str:
    """A sentence with the number of cells for each verdict."""
    known = [fate for fate in fates(table) if fate is not Fate.NOT_ASKED]
    shares = [f"{known.count(fate)} {_VERBS[fate][known.count(fate) > 1]}" for fate in Fate if fate in known]
    tests = f"; {table.attrs['tests']} tests over {table.attrs['seeds']} seeds, family-wise error rate "
    said = f"Of {len(known)} cells {', '.join(shares)}{tests}{table.attrs['alpha']:g}."
    return " ".join(filter(None, (said, _more_seeds(table))))


def _more_seeds(table: xr.Dataset) -> str:
    """A sentence if so few seeds decide nothing, however they vote: how many do, and how they are asked for."""
    tests, seeds = int(table.attrs["tests"]), int(table.attrs["seeds"])
    if not tests or seeds >= (needed := seeds_needed(tests, alpha=float(table.attrs["alpha"]))):
        return ""
    return f"No test over {seeds} seeds can decide: it takes {needed} that agree (seeds={needed}, --seeds {needed})."


def _parts(table: xr.Dataset) -> Iterator[tuple[str, str, xr.Dataset]]:
    """Settings and levels with verdicts, each with the table of its checks."""
    for setting in table["setting"].values.tolist():
        for level in table["level"].values.tolist():
            grid = table.sel(setting=setting, level=level)
            has_verdict = (grid["verdict"] != Fate.NOT_ASKED).any("option").values
            if has_verdict.any():
                yield setting, level, grid.isel(check=np.flatnonzero(has_verdict))


def _cell(cell: Mapping[str, Any], words: bool) -> str:
    """One cell: a sign, or words with an error that is never rounded across the tolerance, a time, or votes of runs."""
    fate, corrected = Fate(int(cell["verdict"])), Fate(int(cell["verdict_corrected"]))
    if fate is Fate.NOT_ASKED:
        return ""
    if not words:
        return fate.sign + ("*" if rescued(fate, corrected) else "")
    voted = int(cell["votes"].sum())

    def sized(error: float) -> str:
        return f"({faithful(error, lambda number: number <= cell['tolerance'], 2)})"

    if fate is Fate.UNDEFINED or (fate is Fate.LATER and voted):
        said = fate.words
    elif voted:
        count = cell["votes"][int(fate in (Fate.REVERSED, Fate.FAILS))]
        said = f"{fate.words} ({'holds ' * (fate is Fate.UNDECIDED)}in {count} of {voted} runs)"
    elif fate is Fate.LATER:
        said = f"holds from t = {cell['holds_from']:.3g}"
    else:
        said = f"{fate.words} {sized(cell['error'])}"
    if corrected is Fate.NOT_ASKED:
        return said
    return f"{said}; corrected {corrected.words}" + ("" if voted else f" {sized(cell['error_corrected'])}")


def rescued(fate: Fate, corrected: Fate) -> bool:
    """True if the form corrected for the option holds where the statement fails, or holds earlier."""
    return corrected in (Fate.HOLDS, Fate.LATER) and fate not in (Fate.HOLDS, corrected)


def _rows(grid: xr.Dataset, words: bool) -> list[list[str]]:
    names = grid["option"].values.tolist()
    head = ["check", *(names if words else map(str, range(1, len(names) + 1)))]
    parts = ("verdict", "verdict_corrected", "error", "error_corrected", "holds_from", "votes")
    numbers = {name: grid[name].transpose("check", "option", ...).values for name in parts}
    rows = [head]
    for i, (name, tolerance) in enumerate(zip(grid["check"].values.tolist(), grid["tolerance"].values, strict=True)):
        cells = ({key: values[i, j] for key, values in numbers.items()} for j in range(len(names)))
        rows.append([name, *(_cell(cell | {"tolerance": tolerance}, words) for cell in cells)])
    return rows


def told(table: xr.Dataset) -> list[str]:
    """A sentence for each option: how many checks hold in all their simulations, and which do not, the worst first."""
    sentences = []
    for option, _ in texts(table):
        verdicts = {name: fates(table, check=name, option=option) for name in table["check"].values.tolist()}
        asked = {name: [fate for fate in row if fate is not Fate.NOT_ASKED] for name, row in verdicts.items()}
        asked = {name: row for name, row in asked.items() if row}
        missed = {name: [fate for fate in row if fate is not Fate.HOLDS] for name, row in asked.items()}
        missed = {name: row for name, row in missed.items() if row}
        worst = sorted(missed, key=lambda name: len(missed[name]) / len(asked[name]), reverse=True)
        named = [
            ", ".join(f"{_VERBS[fate][0]} in {missed[name].count(fate)}" for fate in Fate if fate in missed[name])
            for name in worst
        ]
        lines = [f"{name} {words} of {len(asked[name])}" for name, words in zip(worst[:_NAMED], named, strict=False)]
        if len(worst) > _NAMED:
            lines.append(f"{len(worst) - _NAMED} more {'do' if len(worst) > _NAMED + 1 else 'does'} not hold in all")
        whole = "hold" if len(asked) - len(missed) != 1 else "holds"
        first = f"Under {option}, {len(asked) - len(missed)} of {len(asked)} checks {whole} in all simulations"
        first += ", those of mini-batches by a test over their runs" * bool(table["votes"].sel(option=option).any())
        sentences.append("; ".join([first if asked else f"Under {option}, nothing is asked", *lines]) + ".")
    return sentences


def legend() -> str:
    """Meaning of the signs."""
    signs = [f"{fate.sign} {fate.words}" for fate in Fate if fate is not Fate.NOT_ASKED]
    starred = "* holds in the form that the statement has under the option"
    return ", ".join([*signs, starred]) + "."


def text(table: xr.Dataset) -> str:
    """A sentence for each option, then a table for each setting and level: words for few options, signs for many."""
    words = table.sizes["option"] <= _WORDS_UP_TO
    lines = [line for sentence in told(table) for line in wrapped(sentence)]
    lines += ["", *wrapped(counted(table)), ""]
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
