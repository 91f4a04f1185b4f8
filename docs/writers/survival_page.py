"""``python docs/writers/survival_page.py`` writes the documentation's page of the survival table, from its data.

The data is made by ``yzflow survival --quick --out docs/survival/survival.nc``, without ``--quick`` with more settings.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import xarray as xr

from dynamics.support import files
from yzflow.audits import survival_report
from yzflow.audits._survival_cells import WHY
from yzflow.audits.rendered import markdown_table
from yzflow.audits.survival import load
from yzflow.audits.survival_verdicts import Fate

DATA = Path("docs") / "survival" / "survival.nc"
PAGE = Path("docs") / "survival.md"
CELLS = Path("docs") / "_static" / "survival_data.js"


def page(table: xr.Dataset) -> str:
    """The page of a table: the compact one, in whose place the script `_static/survival.js` puts a matrix to filter."""
    quick = " --quick" if table.attrs["quick"] else ""
    options = survival_report.texts(table)
    numbered = ", ".join(f"{number} {name}" for number, (name, _) in enumerate(options, 1))
    return "\n".join(
        [
            "# Which statements survive which assumption",
            "",
            f"Every check of *{table.attrs['paper']}* that is measured on training, under every option, one at a time.",
            "What was found: [finding 35](../studies/yzflow_studies/survival/page.md).",
            f"{survival_report.counted(table)}",
            "",
            f"{survival_report.legend()} 12/25: settings and levels differ, and 12 of 25 hold, at least later.",
            "",
            '<div id="survival" class="survival">',
            "",
            f"Options: {numbered}.",
            "",
            *markdown_table(compact(table)),
            "",
            "</div>",
            f'<script src="_static/{CELLS.name}"></script>',
            '<script src="_static/survival.js"></script>',
            "",
            "<details>",
            "<summary>The options</summary>",
            "",
            *(f"{number}. {name}: {text}" for number, (name, text) in enumerate(options, 1)),
            "",
            "</details>",
            "<details>",
            "<summary>Which settings are inside the assumptions</summary>",
            "",
            "At how many of the checks that are asked every assumption of the statement holds, before an option",
            "changes one:",
            "",
            *markdown_table(inside(table)),
            "",
            "</details>",
            "<details>",
            "<summary>How it is made</summary>",
            "",
            "```bash",
            f"yzflow survival{quick} --out docs/survival/survival.nc",
            "```",
            "",
            "makes [survival/survival.nc](survival/survival.nc), which has errors, times, p values and margins;",
            "`python docs/writers/survival_page.py` makes this page of it. Flows and steps on the expected gradient",
            "have verdicts of one run each; those on mini-batches (SGD) are tests over seeds.",
            "",
            "</details>",
            "",
        ]
    )


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


def compact(table: xr.Dataset) -> list[list[str]]:
    """A head and a row for each check, a column for each option: the verdict over all settings and levels.

    It is a sign where all that is asked there has one verdict, and else how many hold, from the start or later, of how
    many; with a star where one that does not holds in the option's own form.
    """
    rows = [["check", *map(str, range(1, table.sizes["option"] + 1))]]
    for check in table["check"].values.tolist():
        row = [check]
        for option in table["option"].values.tolist():
            found = survival_report.fates(table, check=check, option=option)
            own = survival_report.fates(table, "verdict_corrected", check=check, option=option)
            row.append(_together(found, own))
        rows.append(row)
    return rows


def _together(found: Sequence[Fate], own: Sequence[Fate]) -> str:
    asked = [fate for fate in found if fate is not Fate.NOT_ASKED]
    if not asked:
        return ""
    star = "*" * any(survival_report.rescued(fate, in_own) for fate, in_own in zip(found, own, strict=True))
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
        "options": [{"name": name, "text": text} for name, text in survival_report.texts(table)],
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


def cells(table: xr.Dataset) -> str:
    """The data of the page's script."""
    content = json.dumps(matrix(table), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return f"window.yzflowSurvival = {content};\n"


def main() -> None:
    """Write the page and its script's data, in a clone of the repository."""
    table = load(DATA)
    for path, text in ((CELLS, cells(table)), (PAGE, page(table))):
        files.writable("PAGE", path)
        files.write(path, text.encode())


if __name__ == "__main__":
    main()
