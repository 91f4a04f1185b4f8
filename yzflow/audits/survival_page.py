"""``python -m yzflow.audits.survival_page`` writes the documentation's page of the survival table, from its data.

The data is made by ``yzflow survival --quick --out docs/survival/survival.nc``, without ``--quick`` with more settings.
"""

from __future__ import annotations

import json
from pathlib import Path

import xarray as xr

from dynamics.support import files
from yzflow.audits import survival_report
from yzflow.audits.report import markdown_table
from yzflow.audits.survival import load

DATA = Path("docs") / "survival" / "survival.nc"
PAGE = Path("docs") / "survival.md"
CELLS = Path("docs") / "_static" / "survival_data.js"


def page(table: xr.Dataset) -> str:
    """The page of a table: the compact one, in whose place the script `_static/survival.js` puts a matrix to filter."""
    quick = " --quick" if table.attrs["quick"] else ""
    options = list(zip(table["option"].values.tolist(), table["text"].values.tolist(), strict=True))
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
            *markdown_table(survival_report.compact(table)),
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
            *markdown_table(survival_report.inside(table)),
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
            "`python -m yzflow.audits.survival_page` makes this page of it. Flows and steps on the expected gradient",
            "have verdicts of one run each; those on mini-batches (SGD) are tests over seeds.",
            "",
            "</details>",
            "",
        ]
    )


def cells(table: xr.Dataset) -> str:
    """The data of the page's script."""
    content = json.dumps(survival_report.matrix(table), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return f"window.yzflowSurvival = {content};\n"


def main() -> None:
    """Write the page and its script's data, in a clone of the repository."""
    table = load(DATA)
    for path, text in ((CELLS, cells(table)), (PAGE, page(table))):
        files.writable("PAGE", path)
        files.write(path, text.encode())


if __name__ == "__main__":
    main()
