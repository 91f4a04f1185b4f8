"""Checks of the register at a reader's own data and training, with margins of the assumptions."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from dynamics import DivergenceError, IntegrationError
from dynamics.support import checks, distributions
from theory.statements import Check, Statement
from yzflow.audits import audit
from yzflow.audits.case import OwnCase
from yzflow.audits.outcomes import Absent, Outcome
from yzflow.audits.verdicts import Row
from yzflow.parts import part_of

__all__ = ["OwnCase", "made", "measure", "own_case"]


def made(paper: str, given: Mapping[str, Any]) -> OwnCase:
    """The case that a paper makes from a reader's data and training; ValueError if it takes none."""
    make = part_of(paper, "own")
    if make is None:
        raise checks.reject("data", f"be left out for {paper}, whose checks make their own", "data")
    known = inspect.signature(make).parameters
    for name in given:
        if name not in known:
            raise checks.reject("settings", f"have entries of {', '.join(known)}", repr(name))
    if "data" not in given:
        raise checks.reject("settings", "have data each", checks.brief(dict(given)))
    return make(**{name: value for name, value in given.items() if value is not None})


def own_case(statement: Statement, *, level: str | None, **given: Any) -> OwnCase:
    """The reader's setting for a statement, as its paper's ``own`` makes it.

    Parameters
    ----------
    statement : Statement
    level : str, optional
        One level. Default: the levels that the paper names.
    **given
        Data, rates and training, as for `yzflow.check`; None means left out.

    Raises
    ------
    ValueError
        If an argument is invalid, the paper takes no data from readers or does not name the level for them, or the
        statement has no check at the level.
    """
    of_checks = {name for check in statement.checks for name in check.levels}
    case = made(statement.paper, given)
    if level is not None:
        asked = sorted(of_checks.intersection(case.levels)) or sorted(of_checks)
        return replace(case, levels=(checks.one_of("level", level, asked),), asked=level)
    levels = tuple(name for name in case.levels if name in of_checks)
    if not levels:
        known = " and ".join(sorted(of_checks)) or "no level"
        raise checks.reject(
            "statement", "be one that is checked on training", f"{statement.id}, which is asked at {known}"
        )
    return replace(case, levels=levels)


def measure(
    statement: Statement, case: OwnCase, *, seed: int
) -> tuple[list[Row], OwnCase, tuple[Absent, ...], tuple[str, ...]]:
    """Run a statement's checks at a reader's setting.

    Returns the rows, the case with margins and forecast, checks without a number, and modules from outside. A row is
    inside the assumptions only if the training is the paper's, too. Checks that are not run still have margins.
    """
    runs = audit.Simulations(case.setting, seed=seed)
    rows: list[Row] = []
    margins: dict[str, float] = {}
    absent: list[Absent] = []
    for check in statement.checks:
        for level in (name for name in check.levels if name in case.levels):
            of_row = statement.margins(case.setting, check, level)
            margins |= {text: min(margin, margins.get(text, margin)) for text, margin in of_row.items()}
            try:
                if not _asks(check, level):
                    why = f"{check.name} has examples of its own, whatever the data"
                    absent.append(Absent(check.name, level, Outcome.NOT_RUN, why))
                    continue
                with np.errstate(all="ignore"):
                    row = audit.measure(statement, check, level, runs, None)
            except distributions.Missing as error:
                absent.append(Absent.of(check, level, error, ran=False))
                continue
            except (ValueError, IntegrationError, DivergenceError) as error:
                absent.append(Absent.of(check, level, error, ran=not runs.refused(error)))
                continue
            if math.isnan(row.error):
                why = f"{check.name} has nothing to compare in these data"
                absent.append(Absent(check.name, level, Outcome.NOTHING, why))
                continue
            inside = row.inside and not case.beyond
            rows.append(replace(row, inside=inside, expected=row.expected and inside))
    predicted = ""
    if statement.predicts is not None:
        try:
            predicted = checks.instance("predicts", statement.predicts(case.setting), str, rule="return words")
        except (ValueError, distributions.Missing) as error:
            absent.append(Absent("", "prediction", Outcome.NOT_RUN, str(error).splitlines()[0]))
    return rows, replace(case, margins=margins, predicted=predicted), tuple(absent), runs.modules


class _Asked(Exception):
    """Raised as soon as a check reads its setting."""


class _NoRuns:
    def __getattr__(self, name: str) -> Any:
        raise _Asked(name)


def _asks(check: Check, level: str) -> bool:
    """True if a check reads its setting; other checks bring their own examples."""
    try:
        for form in (check.printed, check.corrected):
            if form is not None:
                form(_NoRuns(), level)
    except _Asked:
        return True
    return False
