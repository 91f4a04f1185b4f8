"""The layout of a paper's statements: columns of its levels, the order in which they are read, and refusals."""

from __future__ import annotations

import re
from collections.abc import Mapping

from theory import papers
from theory.statements import Statement

COLUMNS = ("theory", "true gradient", "SGD")


def columns(paper: str) -> dict[str, tuple[str, ...]]:
    """The levels of each column of a verdict on a paper's statements: "theory", "true gradient" and "SGD".

    All are in the first for a paper that says nothing of them, and none in any for one that is not in the table.
    """
    found = papers.named(paper)
    given = {} if found is None else found.columns or {"theory": found.levels}
    return {name: tuple(given.get(name, ())) for name in COLUMNS}


def check_columns(given: Mapping[str, tuple[str, ...]], levels: tuple[str, ...]) -> None:
    """Refuse columns that have not each of the levels once."""
    stated = sorted(level for own in given.values() for level in own)
    if stated != sorted(levels) or set(given) - set(COLUMNS):
        raise ValueError(f"`columns` must have each of `levels` once, in {', '.join(COLUMNS)}, but got {dict(given)}")


def check_statements(given: tuple[Statement, ...], paper: str, levels: tuple[str, ...]) -> None:
    """Refuse statements of another paper, two of one number, and checks at other levels."""
    found = set()
    for statement in given:
        if statement.paper != paper:
            raise ValueError(f"`statements` must be of {paper}, but got {statement.id}")
        if statement.id in found:
            raise ValueError(f"`statements` must name each statement once, but got {statement.id} twice")
        found.add(statement.id)
        check_levels(statement, levels)


def check_levels(statement: Statement, levels: tuple[str, ...]) -> None:
    """Refuse checks, and assumptions of theirs, at a level that the paper has not."""
    asked = {level for check in statement.checks for level in check.levels}
    asked |= {level for check in statement.checks for one in statement.assumed(check) for level in one.levels}
    for level in sorted(asked):
        if level not in levels:
            raise ValueError(f"`levels` must be of {', '.join(levels)}, but {statement.id} has {level}")


def reading_order(statement: Statement) -> tuple[bool, int, float]:
    """For sorting those of one paper as a reader looks them up: by kind, then by number, and ours last.

    What has no number, or the same one, stays in the register's order.
    """
    found = _NUMBERED.match(statement.number)
    if found is None:
        return statement.own, len(_KINDS), 0.0
    return statement.own, _KINDS.index(found[1]), float(found[2] or "inf")


_KINDS = ("Lemma", "Proposition", "Theorem", "Corollary", "Remark")
_NUMBERED = re.compile(rf"({'|'.join(_KINDS)})s?(?: (\d+))?\b")
