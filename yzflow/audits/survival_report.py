"""The survival table in words: for a terminal, a page, and a machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import xarray as xr

from yzflow.audits._survival_cells import WHY
from yzflow.audits.fates import Fate
from yzflow.audits.report import columns
from yzflow.audits.survival import label

__all__ = ["compact", "counted", "facts", "inside", "legend", "matrix", "text"]

# With more options than these a cell is a sign, and no words.
_WORDS_UP_TO = 4


def fates(table: xr.Dataset, name: str = "verdict", **cell: str) -> list[Fate]:
    """The verdicts of a part of the table, in its order."""
    return [Fate(int(value)) for value in table[name].sel(cell).values.ravel()]


def counted(table: xr.Dataset) -> str:
    """How many cells have which verdict, as a sentence."""
    found = [fate for fate in fates(table) if fate is not Fate.NOT_ASKED]
    shares = [f"{found.count(fate)} {fate.words}" for fate in Fate if fate in found]
    tests = f"; {table.attrs['tests']} tests over {table.attrs['seeds']} seeds, family-wise error rate "
    return f"Of {len(found)} cells {', '.join(shares)}{tests}{table.attrs['alpha']:g}."


def inside(table: xr.Dataset) -> list[list[str]]:
    """A head and a row for each setting: at how many of the checks that are asked all assumptions hold, by level."""
    levels = table["level"].values.tolist()
    rows = [["setting", *levels]]
    for setting in table["setting"].values.tolist():
        row = [setting]
        for level in levels:
            part = table.sel(setting=setting, level=level)
            asked = (part["verdict"] != Fate.NOT_ASKED).any("option").values
            held = part["margin"].values[asked] >= 1
            row.append(f"{held.sum()} of {held.size}")
        rows.append(row)
    return rows


def _parts(table: xr.Dataset) -> Iterator[tuple[str, str, xr.Dataset]]:
    """The settings and levels at which anything was asked, with the checks that were."""
    for setting in table["setting"].values.tolist():
        for level in table["level"].values.tolist():
            part = table.sel(setting=setting, level=level)
            asked = (part["verdict"] != Fate.NOT_ASKED).any("option").values
            if asked.any():
                yield setting, level, part.isel(check=np.flatnonzero(asked))


def _cell(fate: Fate, own: Fate, error: float, own_error: float, words: bool) -> str:
    if fate is Fate.NOT_ASKED:
        return ""
    if not words:
        return fate.sign + ("*" if _rescued(fate, own) else "")
    number = "" if fate is Fate.UNDEFINED else f" ({error:.2g})"
    in_own = f"; corrected {own.words} ({own_error:.2g})" if own is not Fate.NOT_ASKED else ""
    return fate.words + number + in_own


def _rescued(fate: Fate, own: Fate) -> bool:
    """Whether the option's own form holds where the statement as it stands does not, or only later."""
    return own in (Fate.HOLDS, Fate.LATER) and fate not in (Fate.HOLDS, own)


def _rows(part: xr.Dataset, words: bool) -> list[list[str]]:
    names = part["option"].values.tolist()
    head = ["check", *(names if words else map(str, range(1, len(names) + 1)))]
    parts = ("verdict", "verdict_corrected", "error", "error_corrected")
    grids = [part[name].transpose("check", "option").values for name in parts]
    return [
        head,
        *(
            [name, *(_cell(Fate(int(v)), Fate(int(c)), e, o, words) for v, c, e, o in zip(*rows, strict=True))]
            for name, *rows in zip(part["check"].values.tolist(), *grids, strict=True)
        ),
    ]


def legend() -> str:
    """Meaning of the signs."""
    signs = [f"{fate.sign} {fate.words}" for fate in Fate if fate is not Fate.NOT_ASKED]
    starred = "* holds in the form that the statement has under the option"
    return ", ".join([*signs, starred]) + "."


def text(table: xr.Dataset) -> str:
    """A table for each setting and level: words and errors for few options, signs for many."""
    words = table.sizes["option"] <= _WORDS_UP_TO
    lines = [counted(table), ""]
    lines += columns([[str(i), name, text] for i, (name, text) in enumerate(_texts(table), 1)])
    lines += [] if words else ["", legend()]
    for setting, level, part in _parts(table):
        lines += ["", f"{setting}; {level}", *columns(_rows(part, words))]
    return "\n".join(lines)


def _texts(table: xr.Dataset) -> list[tuple[str, str]]:
    return list(zip(table["option"].values.tolist(), table["text"].values.tolist(), strict=True))


def compact(table: xr.Dataset) -> list[list[str]]:
    """A head and a row for each check, a column for each option: the verdict over all settings and levels.

    It is a sign where all that is asked there has one verdict, and else how many hold, from the start or later, of how
    many; with a star where one that does not holds in the option's own form.
    """
    rows = [["check", *map(str, range(1, table.sizes["option"] + 1))]]
    for check in table["check"].values.tolist():
        row = [check]
        for option in table["option"].values.tolist():
            found = fates(table, check=check, option=option)
            own = fates(table, "verdict_corrected", check=check, option=option)
            row.append(_together(found, own))
        rows.append(row)
    return rows


def _together(found: Sequence[Fate], own: Sequence[Fate]) -> str:
    asked = [fate for fate in found if fate is not Fate.NOT_ASKED]
    if not asked:
        return ""
    star = "*" * any(_rescued(fate, in_own) for fate, in_own in zip(found, own, strict=True))
    held = sum(fate in (Fate.HOLDS, Fate.LATER) for fate in asked)
    return (asked[0].sign if len(set(asked)) == 1 else f"{held}/{len(asked)}") + star


def matrix(table: xr.Dataset) -> dict[str, object]:
    """Data of the page's script: names, and for every cell that is asked its verdicts and numbers, as columns."""
    names = {name: table[name].values.tolist() for name in ("check", "option", "setting", "level", "statement", "text")}
    dims = ("check", "option", "setting", "level")
    grid = {name: table[name].transpose(*dims, ...).values for name in table if "option" in table[name].dims}
    columns: dict[str, list[object]] = {
        name: [] for name in ("place", "verdict", "own", "error", "own_error", "from", "why", "votes", "p")
    }
    for place in zip(*np.nonzero(grid["verdict"] != Fate.NOT_ASKED), strict=True):
        one = {name: values[place] for name, values in grid.items()}
        fate, tested = Fate(int(one["verdict"])), not np.isnan(one["p"])
        late = fate is Fate.LATER and tested  # decided over the second half
        start = {Fate.LATER: one["holds_from"], Fate.REVERSED: one["reversed_from"]}.get(fate, np.nan)
        cell = {
            "place": int(np.ravel_multi_index(place, grid["verdict"].shape)),
            "verdict": int(fate),
            "own": int(one["verdict_corrected"]),
            "error": _short(one["error"]),
            "own_error": _short(one["error_corrected"]),
            "from": _short(start),
            "why": int(one["why"]),
            "votes": one["votes_late" if late else "votes"].tolist() if tested else 0,
            "p": _short(one["p_late" if late else "p"]) if tested else 0,
        }
        for name, values in columns.items():
            values.append(cell[name])
    checks = zip(names["check"], names["statement"], table["tolerance"].values, table["reversible"].values, strict=True)
    margins = table["margin"].transpose("check", "setting", "level").values
    return {
        "fates": [{"name": fate.name, "sign": fate.sign, "words": fate.words} for fate in Fate if fate >= 0],
        "checks": [
            {
                "label": name,
                "number": name.partition(": ")[0],
                "statement": statement,
                "tolerance": float(tolerance),
                "reversible": bool(reversible),
            }
            for name, statement, tolerance, reversible in checks
        ],
        "options": [{"name": name, "text": text} for name, text in _texts(table)],
        "settings": names["setting"],
        "levels": names["level"],
        "quick": bool(table.attrs["quick"]),
        "margins": [[[_short(x) if x < 1e300 else None for x in row] for row in rows] for rows in margins],
        "why": {str(code): words for code, words in WHY.items()},
        "cells": columns,
    }


def _short(number: float) -> float | None:
    """A number of three digits; None for what is none."""
    return float(f"{number:.3g}") if np.isfinite(number) else None


def facts(table: xr.Dataset) -> dict[str, object]:
    """For JSON: what was asked, and every cell with its verdicts, numbers and label."""
    found: list[dict[str, object]] = []
    for setting, level, part in _parts(table):
        for name in part["check"].values.tolist():
            for option in part["option"].values.tolist():
                one, place = part.sel(check=name, option=option), {"check": name, "option": option}
                fate = Fate(int(one["verdict"]))
                if fate is Fate.NOT_ASKED:
                    continue
                place |= {"setting": setting, "level": level}
                numbers = ("error", "late", "holds_from", "reversed_from", "error_corrected", "p", "p_late", "margin")
                found.append(
                    {
                        "statement": str(one["statement"].values),
                        **place,
                        "verdict": fate.name,
                        "verdict_corrected": Fate(int(one["verdict_corrected"])).name,
                        **{key: float(one[key]) for key in numbers},
                        "why": WHY.get(int(one["why"]), ""),
                        "label": label(table, **place).as_dict(),
                    }
                )
    return {"counted": counted(table), **table.attrs, "cells": found}
