"""A verdict on one screen of at most 100 columns and 40 lines, with failures first."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

from dynamics.support.rounded import margin
from theory.statements import Statement
from theory.trust import Label
from yzflow.audits import campaign_table
from yzflow.audits.checked_statement import Examined, head
from yzflow.audits.outcomes import Column
from yzflow.audits.rendered import columns
from yzflow.audits.verdicts import VerdictRow

__all__ = ["LINES", "WIDTH", "clipped", "outcomes", "screen"]

WIDTH, LINES = 100, 40
_MORE = " .."
_FEWEST_ROWS = 4
_SMALL = 1e-8  # errors below are rounding


def clipped(text: str, width: int = WIDTH) -> str:
    """A line, cut at a word and ended by two points if it is too long."""
    if len(text) <= width:
        return text
    short = text[: width - len(_MORE)]
    words = short.rsplit(" ", 1)[0].rstrip()
    return (words if len(words) > 0.6 * width else short.rstrip()) + _MORE


def screen(verdict: Examined, command: str) -> list[str]:
    """The lines: statement, outcome, grounds, margins, largest errors, and the command."""
    statement = verdict.statement
    lines = [clipped(f"{statement.id}. {statement.title}"), *_wrapped(statement.text, "", 2), ""]
    for name, formula in statement.forms:
        lines += _wrapped(formula, f"{name}: ".ljust(13), 2)
    lines += _some(
        [clipped(f"{erratum.label}:".ljust(13) + erratum.right) for erratum in statement.errata], 2, "errata"
    )
    said = verdict.headline if verdict.passed else verdict.outcome
    lines += ["", *_wrapped(said, "", 3), *_wrapped(verdict.place, "", 4)]
    lines += _some([clipped(reason) for reason in verdict.unsaid], 2, "levels")
    lines += [clipped(line) for line in outcomes(verdict.columns, statement)]
    rests = [clipped(f"  - {_short(label)}") for _, label in verdict.report.summaries(statement)]
    lines += ["", "Rests on", *_some(rests, 4, "clauses")]
    if verdict.margins:
        lines += ["", "Least margins of the assumptions (an assumption holds from 1 on)"]
        lines += _some(_least(verdict.margins), 4, "assumptions")
    last = f"{command} --verbose shows the rest"
    if rows := verdict.errors:
        room = max(LINES - len(lines) - 5, _FEWEST_ROWS)
        where = "at your own setting" if verdict.own else "inside the assumptions"
        lines += ["", f"Largest errors {where}", *_errors(head(statement), rows, room)]
    return [*lines, "", clipped(last)]


def outcomes(verdict: Sequence[Column], statement: Statement) -> list[str]:
    """A line for each column of a verdict, and a line for campaigns that tried to break the statement."""
    width = max(15, *(len(column.title) + 3 for column in verdict))
    lines = {column.title: column.words for column in verdict}
    if campaigns := campaign_table.tried(statement):
        lines["tried"] = campaign_table.words(campaigns)
    return [f"  {title + ':':{width}}{words}" for title, words in lines.items()]


def _wrapped(text: str, head: str, most: int) -> list[str]:
    inner = " " * len(head)
    return textwrap.wrap(text, WIDTH, initial_indent=head, subsequent_indent=inner, max_lines=most, placeholder=_MORE)


def _some(lines: list[str], most: int, what: str) -> list[str]:
    """At most this many lines; if there are more, the last says how many are left out."""
    return lines if len(lines) <= most else [*lines[: most - 1], f"  and {len(lines) - most + 1} {what} more"]


def _short(label: Label) -> str:
    """A label in short; for a measurement its check, level and error only."""
    if label.failures or "check" not in label.scope:
        return str(label)
    scope = [f"{label.scope[name]}" for name in ("check", "level") if name in label.scope]
    size = label.scope.get("error")
    error = f", error {f'{size:.2g}' if size >= _SMALL else f'below {_SMALL:g}'}" if isinstance(size, float) else ""
    clause = f"{label.clause}: " if label.clause else ""
    return f"{clause}{label.trust.name.lower()}: {' in the '.join(scope)}{error}"


def _least(margins: Mapping[str, Mapping[str, float]]) -> list[str]:
    """A line for each assumption with its least margin and the number of settings that break it; broken ones first."""
    rows = []
    for text in dict.fromkeys(text for held in margins.values() for text in held):
        known = [held[text] for held in margins.values() if text in held]
        broken = sum(not value >= 1 for value in known)
        where = f"broken at {broken} of {len(known)} settings" if len(known) > 1 else "broken"
        rows.append([clipped(text, 62), margin(min(known)), where if broken else ""])
    return [clipped(line) for line in columns(sorted(rows, key=lambda row: not row[2]))]


def _errors(head: Sequence[str], rows: Sequence[VerdictRow], room: int) -> list[str]:
    """The head and as many rows as fit; an alarming row is never left out."""
    left_out = 0
    if len(rows) > room:
        alarming = sum(row.alarming for row in rows)
        chosen = sorted(rows, key=lambda row: not row.alarming)[: max(room - 1, alarming)]
        left_out = len(rows) - len(chosen)
        rows = [row for row in rows if row in chosen]
    shown = [list(head[:5])]
    for row in rows:
        *words, expected = row.words[:5]
        shown.append([*words, expected + (" <-" if row.alarming else "")])
    widest = max(len(line) for line in columns([["", *row[1:]] for row in shown]))
    shown = [[clipped(row[0], max(WIDTH - widest, 12)), *row[1:]] for row in shown]
    more = [f"  and {left_out} rows more"] if left_out else []
    return [*map(clipped, columns(shown)), *more]
