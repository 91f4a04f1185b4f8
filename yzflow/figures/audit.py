"""Figures of the theorem audit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from yzflow.figures.style import CATEGORIES, styled

if TYPE_CHECKING:
    from yzflow.audits.report import AuditReport

_MARKERS = "osD^v"
_FLOOR = 1e-12


@styled
def audit_errors(report: AuditReport, statement: str | None = None) -> Figure:
    """Error of each check of one statement, by setting and level; filled inside the assumptions, open outside.

    Where there is a corrected form, its error is shown. Errors below 1e-12 are drawn there, and errors above 20 at 20.

    Parameters
    ----------
    report : yzflow.audits.report.AuditReport
    statement : str, optional
        Id in the register. Default: the report's first.
    """
    statement = report.table[0].statement if statement is None else statement
    rows = [row for row in report.table if row.statement == statement]
    checks = list(dict.fromkeys(row.check for row in rows))
    names = list(dict.fromkeys(row.setting for row in rows))
    levels = list(dict.fromkeys(row.level for row in rows))
    figure = Figure(figsize=(8.5, 0.9 + len(checks) * (0.8 + 0.28 * len(names))))
    panels = figure.subplots(len(checks), 1, squeeze=False, sharex=True)[:, 0]
    for axes, check in zip(panels, checks, strict=True):
        for level, (colour, _), marker in zip(levels, CATEGORIES, _MARKERS, strict=False):
            for row in (row for row in rows if row.check == check and row.level == level):
                error = min(max(row.error, _FLOOR), 20)
                fill = colour if row.inside else "none"
                place = names.index(row.setting) + 0.16 * (levels.index(level) - (len(levels) - 1) / 2)
                axes.plot(error, place, marker, color=colour, markerfacecolor=fill, markersize=6)
            axes.plot([], [], marker, color=colour, label=level)
        axes.set(title=check, xscale="log", xlim=(_FLOOR / 3, 30), ylim=(len(names) - 0.5, -0.5))
        axes.set_yticks(range(len(names)), names)
        axes.plot([], [], "o", color="0.4", markerfacecolor="none", label="open: outside the\nassumptions")
    panels[-1].set_xlabel(f"relative error, or violation of an inequality ({_FLOOR:g}: that or less)")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right upper")
    figure.suptitle(f"{statement}: what each check misses by")
    return figure
