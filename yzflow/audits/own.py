"""A statement at a reader's own data and training: the register's checks there, with the margins of the assumptions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from dynamics import DivergenceError, IntegrationError
from dynamics.support import checks
from theory.statements import Setting, Statement
from yzflow import papers
from yzflow.audits import audit
from yzflow.audits.verdicts import Row

__all__ = ["OwnCase", "measure", "own_case"]


@dataclass(frozen=True)
class OwnCase:
    """One setting of a reader.

    Attributes
    ----------
    setting : Setting
    levels : tuple of str
        Where the checks are run.
    beyond : tuple of str
        What of the training the paper does not speak of, in words.
    """

    setting: Setting
    levels: tuple[str, ...]
    beyond: tuple[str, ...] = ()


def own_case(statement: Statement, *, level: str | None, **given: Any) -> OwnCase:
    """The reader's setting for a statement, as its paper's room makes it: ``own`` of its module ``settings``.

    Parameters
    ----------
    statement : Statement
    level : str, optional
        One level. Default: those that the room names.
    **given
        Data, rates and training, as for `yzflow.check`; those that are None are left out.

    Raises
    ------
    ValueError
        If an argument is invalid, the paper's checks take no data from elsewhere, or the statement is not asked at the
        level.
    """
    rooms = {module.PAPER: module for module in papers.parts("settings")}
    make = getattr(rooms.get(statement.paper), "own", None)
    if make is None:
        raise checks.reject("data", f"be left out for {statement.paper}, whose checks make their own", "data")
    asked = {own for check in statement.checks for own in check.levels}
    case: OwnCase = make(**{name: value for name, value in given.items() if value is not None})
    if level is not None:
        return replace(case, levels=(checks.one_of("level", level, sorted(asked)),))
    levels = tuple(own for own in case.levels if own in asked)
    if not levels:
        known = " and ".join(sorted(asked)) or "no level"
        raise checks.reject("statement", f"be checked on training, but {statement.id} is asked at", known)
    return replace(case, levels=levels)


def measure(statement: Statement, case: OwnCase, *, seed: int) -> tuple[list[Row], tuple[str, ...]]:
    """The rows of a statement's checks at the setting, and why others are missing.

    A row is inside only if the training is that of the paper, too.
    """
    runs = audit.Simulations(case.setting, seed=seed)
    rows: list[Row] = []
    missing: dict[str, None] = {}
    for check in statement.checks:
        for level in (own for own in check.levels if own in case.levels):
            try:
                row = audit.measure(statement, check, level, runs, None)
            except (ValueError, IntegrationError, DivergenceError) as error:
                missing[f"{level}: {str(error).splitlines()[0]}"] = None
                continue
            inside = row.inside and not case.beyond
            rows.append(replace(row, inside=inside, expected=row.expected and inside))
    return rows, tuple(missing)


def broken(rows: Sequence[Row]) -> dict[str, float]:
    """The assumptions that do not hold there, with the smallest margin of each."""
    found: dict[str, float] = {}
    for row in rows:
        for text, margin in row.margins.items():
            if not margin >= 1:
                found[text] = min(margin, found.get(text, margin))
    return found
