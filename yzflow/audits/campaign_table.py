"""Table of the campaigns that tried to break a paper's statements; audits and checks show it."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dynamics.support import checks, files
from dynamics.support.rounded import faithful
from theory import statements
from theory.statements import Statement
from yzflow.parts import part_of


@dataclass(frozen=True)
class CampaignRow:
    """A campaign on a statement at one level, inside all assumptions.

    Attributes
    ----------
    statement, level : str
    examples, violations : int
        Number of settings, and number of blocks of settings with a violation.
    share : float
        The largest error, as a share of its tolerance.
    setting : str
        The setting of the largest error.
    alarms : float or None
        A bound on the expected number of false alarms; None if no bound is known.
    seed : int
    version : str
        Version of yzflow.
    asked : str
        Hash of the names of the checks, their tolerances and their assumptions.
    """

    statement: str
    level: str
    examples: int
    violations: int
    share: float
    setting: str
    alarms: float | None
    seed: int
    version: str
    asked: str


def asked(statement: Statement, level: str) -> str:
    """Hash of the checks of a statement at a level, with tolerances and assumptions."""
    parts = [
        [
            check.name,
            check.tolerance,
            check.corrected is not None,
            [assumption.text for assumption in statement.assumed(check)],
        ]
        for check in statement.checks
        if level in check.expected
    ]
    return hashlib.sha256(json.dumps([statement.id, level, parts]).encode()).hexdigest()[:16]


def write(path: str | os.PathLike, rows: Iterable[CampaignRow]) -> None:
    """Put rows into a table; they replace rows of the same statement and level."""
    path = Path(checks.path("path", path))
    table = {(row.statement, row.level): row for row in (load(path) if path.exists() else ())}
    table |= {(row.statement, row.level): row for row in rows}
    text = json.dumps([asdict(row) for _, row in sorted(table.items())], indent=1, allow_nan=False)
    files.write(path, (text + "\n").encode())


def load(path: str | os.PathLike) -> tuple[CampaignRow, ...]:
    """The rows of a table.

    Raises
    ------
    ValueError
        If the file is no such table.
    """
    path = checks.path("path", path)
    try:
        return tuple(CampaignRow(**_typed(row)) for row in json.loads(Path(path).read_bytes()))
    except (ValueError, TypeError) as error:
        raise ValueError(f"`path` must be a table of campaigns, but {path.name} is not: {error}") from None


def _typed(given: Mapping[str, Any]) -> Mapping[str, Any]:
    for name in ("statement", "level", "setting", "version", "asked"):
        checks.instance(name, given[name], str)
    for name in ("examples", "violations", "seed"):
        checks.integer(name, given[name], minimum=0)
    checks.real("share", given["share"])
    return given


def tried(statement: Statement) -> tuple[CampaignRow, ...]:
    """The rows of a statement in its paper's table; rows from before a change of its checks do not count."""
    if statements.REGISTER.get(statement.id) is not statement:  # a different statement with this id
        return ()
    table = part_of(statement.paper, "tried") or ()
    return tuple(row for row in table if row.statement == statement.id and row.asked == asked(statement, row.level))


def _within(share: float) -> bool:
    return share <= 1


def words(rows: Iterable[CampaignRow]) -> str:
    """The rows in a few words: numbers of settings and violations, and the worst share; "-" without rows."""
    of_all = list(rows)
    if not of_all:
        return "-"
    count, violations = sum(row.examples for row in of_all), sum(row.violations for row in of_all)
    worst = max(of_all, key=lambda row: row.share)
    where = f" ({worst.level})" if len(of_all) > 1 else ""
    said = f"{count:,} settings, {violations or 'no'} violation{'s' * (violations != 1)}"
    return f"{said}; worst {faithful(worst.share, _within, 2)} of a tolerance{where}"
