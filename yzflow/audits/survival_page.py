"""``python -m yzflow.audits.survival_page`` writes the documentation's page of the survival table, from its data.

The data is made by ``yzflow survival --quick --out docs/survival/survival.nc``, without ``--quick`` with more settings.
"""

from __future__ import annotations

from pathlib import Path

import xarray as xr

from dynamics.support import files
from yzflow.audits import survival_report
from yzflow.audits.report import markdown_table
from yzflow.audits.survival import load

DATA = Path("docs") / "survival" / "survival.nc"
PAGE = Path("docs") / "survival.md"


def page(table: xr.Dataset) -> str:
    """The page of a table."""
    quick = " --quick" if table.attrs["quick"] else ""
    return "\n".join(
        [
            "# Which statements survive which assumption",
            "",
            f"Every check of *{table.attrs['paper']}* that is measured on training, under every option, one at a time.",
            "Errors, times, p values and margins of the assumptions are in",
            "[survival/survival.nc](survival/survival.nc), which",
            "",
            "```bash",
            f"yzflow survival{quick} --out docs/survival/survival.nc",
            "```",
            "",
            "makes; `python -m yzflow.audits.survival_page` makes this page of it. What the verdicts mean, and what",
            "was found: [finding 35](findings/35_survival.md). Flows and steps on the expected gradient have verdicts",
            "of one run each; those on mini-batches (SGD) are tests over seeds.",
            "",
            "At how many of the checks that are asked every assumption of the statement holds, before an option",
            "changes one:",
            "",
            *markdown_table(survival_report.inside(table)),
            "",
            survival_report.markdown(table),
            "",
        ]
    )


def main() -> None:
    """Write the page, in a clone of the repository."""
    files.writable("PAGE", PAGE)
    files.write(PAGE, page(load(DATA)).encode())


if __name__ == "__main__":
    main()
