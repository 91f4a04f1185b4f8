"""Plots of the theorem audit."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from dynamics.support import checks as rules
from dynamics.support import display
from yzflow.figures.style import BLUE, CATEGORIES, VERMILION, canvas, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from yzflow.audits.verdicts import Table

_MARKERS = "osD^v"
_FLOOR = 1e-12
_HIGHEST, _AROUND = 8.0, 1.5  # inches: of a page, and of title, axis and legend


@styled
def audit_errors(report: Table, statement: str | None = None) -> Figure:
    """Errors of each check of one statement by level, one point for each setting; filled inside the assumptions.

    The corrected form is shown if there is one. Errors are clipped to between 1e-12 and 20. Settings are not named: the
    tables of audit.html, and `AuditReport.to_json`, have a row for each.

    Parameters
    ----------
    report : yzflow.audits.report.AuditReport
    statement : str, optional
        Id in the register. Default: the report's first.
    """
    statement = report.table[0].statement if statement is None else statement
    rows = [row for row in report.table if row.statement == statement]
    checks = list(dict.fromkeys(row.check for row in rows))
    levels = list(dict.fromkeys(row.level for row in rows))
    each = min(0.45, (_HIGHEST - _AROUND) / len(checks))  # inches for a check
    figure = canvas(figsize=(8.5, _AROUND + max(each * len(checks), 1.0)))
    axes = figure.subplots()
    for level, (colour, _), marker in zip(levels, CATEGORIES, _MARKERS, strict=False):
        shift = 0.16 * (levels.index(level) - (len(levels) - 1) / 2)
        for row in (row for row in rows if row.level == level):
            error = min(max(row.error, _FLOOR), 20)
            fill = colour if row.inside else "none"
            axes.plot(error, checks.index(row.check) + shift, marker, color=colour, markerfacecolor=fill, markersize=5)
        axes.plot([], [], marker, color=colour, label=level)
    axes.plot([], [], "o", color="0.4", markerfacecolor="none", label="open: outside the\nassumptions")
    axes.set(xscale="log", xlim=(_FLOOR / 3, 30), ylim=(len(checks) - 0.5, -0.5))
    axes.set_yticks(range(len(checks)), [textwrap.fill(check, 40) for check in checks])
    axes.set_xlabel(f"relative error, or violation of an inequality ({_FLOOR:g}: that or less)")
    figure.legend(loc="outside lower center", ncols=3)
    figure.suptitle(f"{statement}: what each check misses by, at {len({row.setting for row in rows})} settings")
    return figure


def statement_errors(report: Table, statement: str | None = None, ax: Axes | None = None) -> Axes:
    """Errors of the printed and the corrected form of each statement, or of each check of one statement.

    Each point is the largest error over levels and settings where the statement should hold, in units of the check's
    tolerance; it should lie left of the line at 1. Errors are clipped to between 1e-6 and 1e6.

    Parameters
    ----------
    report : yzflow.audits.report.AuditReport
    statement : str, optional
        Draw the checks of the statement with this id. Default: draw all statements with rows.
    ax : matplotlib Axes, optional
        Default: new ones.
    """
    errors: dict[str, dict[str, float]] = {}
    for row in (row for row in report.table if row.expected and statement in (None, row.statement)):
        of_row = errors.setdefault(row.statement if statement is None else row.check, {})
        for form, error in (("printed", row.printed), ("corrected", row.corrected)):
            if error is not None:
                of_row[form] = max(of_row.get(form, 0.0), _in_tolerances(error, row.tolerance))
    if not errors:
        raise rules.reject("statement", "have rows where it should hold", statement)
    made = ax is None
    ax = display.axes(ax)
    if made:
        ax.figure.set_size_inches(8, 1.8 + 0.22 * len(errors))
    sources = {source.source.short for source in report.statements if statement in (None, source.id)}
    names = {"printed": sources.pop()} if len(sources) == 1 else {}  # one paper, which we do not have in print
    forms = (("printed", VERMILION, "s", "none"), ("corrected", BLUE, "o", BLUE))
    for form, colour, marker, fill in forms:
        places = [(height, of_row[form]) for height, of_row in enumerate(errors.values()) if form in of_row]
        drawn = np.clip([error for _, error in places], 1e-6, 1e6)
        ax.plot(
            drawn,
            [height for height, _ in places],
            marker,
            color=colour,
            markerfacecolor=fill,
            label=names.get(form, form),
        )
    ax.axvline(1, color="0.3", label="expected: left of this")
    ax.set_xscale("log")
    low, high = ax.get_xlim()
    ax.set(
        xlim=(min(low, 1e-3), max(high, 1e3)),
        xlabel="largest error / tolerance",
        ylim=(len(errors) - 0.4, -0.6),
        title=statement or "",
    )
    ax.set_yticks(range(len(errors)), list(errors))
    ax.legend()
    return ax


def _in_tolerances(error: float, tolerance: float) -> float:
    """An error as a multiple of its tolerance; infinite if the error is NaN, or not zero at tolerance zero."""
    if math.isnan(error) or tolerance == 0:
        return 0.0 if error == 0 else math.inf
    return error / tolerance


# <!-- numbers
# typed: 1e-12 20 (ends of the axis)
# -->
