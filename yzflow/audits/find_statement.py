"""Search for statements by id or number, and lists of statements from ids, objects or papers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dynamics.support import checks, distributions
from theory import layout, papers, statements
from theory.statements import Statement
from yzflow.paper import Paper

__all__ = ["choose", "find", "parts"]


def find(statement: str | Statement, *, argument: str = "statement") -> Statement:
    """The statement with an id or number; a `Statement` is checked and returned. Errors name the ``argument``.

    Raises
    ------
    ValueError
        If the register has no such statement, with the nearest ones, or several; or if a given `Statement` has
        checks, but its paper is unknown or lacks one of their levels.
    """
    if isinstance(statement, Statement):
        return _known(statement)
    wanted = checks.plain(checks.instance(argument, statement, (str, Statement)))
    matches = _named(wanted)
    if len(matches) == 1:
        return matches[0]
    # "Theorem 2" is no id beside "Theorem 2(a)" and "Theorem 2(b)", but may mean one of them.
    if matches := [*matches, *_parts(wanted)]:
        several = ", ".join(f'"{entry.id}"' for entry in matches)
        raise checks.reject(argument, f"name one of {several}", repr(statement))
    near = checks.nearest(statement, {entry.id: (entry.id, entry.number) for entry in statements.REGISTER.values()})
    rule = f"be in the register, as {near} are; `yzflow statements` lists all{distributions.more(statement)}"
    raise checks.reject(argument, rule, checks.brief(statement))


def parts(statement: str) -> list[Statement]:
    """The statements that are parts of a printed one in one paper, as (a) and (b) of a theorem.

    Empty for the name of one statement, and for parts in several papers.
    """
    wanted = checks.plain(statement)
    several = [] if _named(wanted) else _parts(wanted)
    return several if len({entry.paper for entry in several}) == 1 else []


def choose(only: Sequence[Any] | Statement | Paper | None, *, argument: str = "only") -> list[Statement]:
    """The statements in a list, in the order of the register, then the others; for None, the whole register.

    Raises
    ------
    ValueError
        As `find`.
    """
    register = statements.REGISTER
    if only is None:
        return list(register.values())
    named = [only] if isinstance(only, (Statement, Paper)) else checks.listed(argument, only, "be a list of statements")
    chosen: dict[str, Statement] = {}
    for entry in named:
        members = entry.statements if isinstance(entry, Paper) else (find(entry, argument=argument),)
        chosen |= {statement.id: statement for statement in members}
    ordered = [chosen.pop(name) for name in register if name in chosen]
    return [*ordered, *chosen.values()]


def _named(wanted: str) -> list[Statement]:
    """The statement with this id, else those with this number."""
    register = statements.REGISTER.values()
    by_id = [entry for entry in register if wanted == checks.plain(entry.id)]
    return by_id or [entry for entry in register if wanted == checks.plain(entry.number)]


def _parts(wanted: str) -> list[Statement]:
    """The statements that are parts of a printed one, as "Theorem 2(a)" of "Theorem 2"."""
    begins = (f"{wanted}(", f"{wanted},")
    register = statements.REGISTER.values()
    return [
        entry for entry in register if any(checks.plain(name).startswith(begins) for name in (entry.id, entry.number))
    ]


def _known(statement: Statement) -> Statement:
    if statement.checks:
        paper = papers.named(statement.paper)
        if paper is None:
            known = ", ".join(entry.name for entry in papers.papers().values())
            rule = f"be of a paper in the table, {known}, or of one that `yzflow.register` adds, since it has checks"
            raise checks.reject("statement", rule, repr(statement.id))
        layout.check_levels(statement, paper.levels)
    return statement
