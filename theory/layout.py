"""The layout of a paper's statements: the columns of its levels, the reading order, and checks of both."""

from __future__ import annotations

import re
from collections.abc import Mapping

from theory import papers
from theory.statements import Statement

COLUMNS = ("theory", "true gradient", "SGD")


def columns(paper: str) -> dict[str, tuple[str, ...]]:
    """The levels of each column of a verdict on a paper's statements: "theory", "true gradient" and "SGD".

    A paper without columns has all levels in "theory". An unknown paper has no levels.
    """
    listed = papers.named(paper)
    given = {} if listed is None else listed.columns or {"theory": listed.levels}
    return {name: tuple(given.get(name, ())) for name in COLUMNS}


def check_columns(given: Mapping[str, tuple[str, ...]], levels: tuple[str, ...]) -> None:
    """Refuse columns that do not list each level exactly once."""
    stated = sorted(level for column in given.values() for level in column)
    if stated != sorted(levels) or set(given) - set(COLUMNS):
        raise ValueError(f"`columns` must have each of `levels` once, in {', '.join(COLUMNS)}, but got {dict(given)}")


def check_statements(given: tuple[Statement, ...], paper: str, levels: tuple[str, ...]) -> None:
    """Refuse statements of another paper, repeated numbers, and checks at unknown levels."""
    ids = set()
    for statement in given:
        if statement.paper != paper:
            raise ValueError(f"`statements` must be of {paper}, but got {statement.id}")
        if statement.id in ids:
            raise ValueError(f"`statements` must name each statement once, but got {statement.id} twice")
        ids.add(statement.id)
        check_levels(statement, levels)


def check_levels(statement: Statement, levels: tuple[str, ...]) -> None:
    """Refuse checks, and assumptions of checks, at a level that the paper does not have."""
    asked = {level for check in statement.checks for level in check.levels}
    asked |= {level for check in statement.checks for entry in statement.assumed(check) for level in entry.levels}
    for level in sorted(asked):
        if level not in levels:
            raise ValueError(f"`levels` must be of {', '.join(levels)}, but {statement.id} has {level}")


def reading_order(statement: Statement) -> tuple[bool, int, float]:
    """Sort key for one paper's statements: by kind, then by number, with our own statements last.

    Statements with equal keys, such as those without a number, keep the register's order.
    """
    match = _NUMBERED.match(statement.number)
    if match is None:
        return statement.own, len(_KINDS), 0.0
    return statement.own, _KINDS.index(match[1]), float(match[2] or "inf")


_KINDS = ("Lemma", "Proposition", "Theorem", "Corollary", "Remark")
_NUMBERED = re.compile(rf"({'|'.join(_KINDS)})s?(?: (\d+))?\b")
