"""A verdict on one screen of at most 100 columns and 40 lines, with its sentence and failures first."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence

from dynamics.support.rounded import margin
from theory.statements import SHARPER, Statement
from theory.trust import Label, Trust, sized
from yzflow.audits import campaign_table
from yzflow.audits.checked_statement import Examined, head
from yzflow.audits.outcomes import Column
from yzflow.audits.rendered import columns
from yzflow.audits.verdicts import VerdictRow, broken

__all__ = ["LINES", "WIDTH", "outcomes", "screen", "wrapped"]

WIDTH, LINES = 100, 40


def screen(verdict: Examined, command: str) -> list[str]:
    """The lines: verdict in a sentence, statement, grounds, margins, largest errors, and the command."""
    statement = verdict.statement
    lines = [*wrapped(f"{statement.id}. {statement.title}"), ""]
    lines += wrapped(verdict.headline if verdict.passed else verdict.finding)
    lines += outcomes(verdict.columns, statement, verdict.extent)
    for said in filter(None, (verdict.place, *(verdict.nothing if verdict.own else verdict.unsaid), verdict.next)):
        lines += wrapped(said)
    lines += ["", *_sentences(statement.text.partition(SHARPER)[0], 2)]
    for name, formula in statement.forms:
        lines += wrapped(formula, f"{name}: ".ljust(13))
    errata = [_sentences(erratum.right, 1, f"{erratum.label}: ".ljust(13)) for erratum in statement.errata]
    short = [told for told in errata if len(told) <= 2][:2]
    lines += [line for told in short for line in told]
    lines += [f"  and {len(errata) - len(short)} errata more"] * (len(short) < len(errata))
    rests = [_short(label) for _, label in verdict.report.summaries(statement)]
    lines += ["", "Rests on", *_some([line for said in rests for line in wrapped(said, "  - ")], 4, "lines")]
    if verdict.margins and not verdict.own:  # whose place names the broken ones
        lines += ["", "Least margins of the assumptions (an assumption holds from 1 on)"]
        lines += _some(_least(verdict.margins), 4, "assumptions")
    if rows := verdict.errors:
        room = LINES - len(lines) - 4
        where = "at your own setting" if verdict.own else "inside the assumptions"
        lines += ["", f"Largest errors {where}", *_errors(head(statement), rows, room)]
    return [*lines, "", f"{'' if verdict.own else f'{command} '}--verbose shows the rest"]


def outcomes(verdict: Sequence[Column], statement: Statement, extent: str = "") -> list[str]:
    """A line for each column of a verdict, for campaigns that tried to break the statement, and for what was run."""
    width = max(15, *(len(column.title) + 3 for column in verdict))
    lines = {column.title: column.words for column in verdict}
    if campaigns := campaign_table.tried(statement):
        lines["tried"] = campaign_table.words(campaigns)
    if extent:
        lines["run"] = extent
    return [line for title, words in lines.items() for line in wrapped(words, f"  {title + ':':{width}}")]


def wrapped(text: str, head: str = "") -> list[str]:
    """A text in lines of at most `WIDTH` columns after a head."""
    return textwrap.wrap(text, WIDTH, initial_indent=head, subsequent_indent=" " * len(head), break_long_words=False)


def _sentences(text: str, most: int, head: str = "") -> list[str]:
    """The first sentence of a text, and those after it that fit in as many lines."""
    first, *others = re.split(r"(?<=\.)\s+(?=[A-Z(])", text)
    for sentence in others:
        if len(wrapped(f"{first} {sentence}", head)) > most:
            break
        first += f" {sentence}"
    return wrapped(first, head)


def _some(lines: list[str], most: int, what: str) -> list[str]:
    """At most this many lines; if there are more, the last says how many are left out."""
    return lines if len(lines) <= most else [*lines[: most - 1], f"  and {len(lines) - most + 1} {what} more"]


def _short(label: Label) -> str:
    """A label in short, without the names of theorems and what is argued; for a measurement its check and error."""
    clause = f"{label.clause}: " if label.clause else ""
    if label.failures:
        return str(label)
    if "check" not in label.scope:
        named = label.trust in (Trust.KERNEL_CHECKED, Trust.ARGUED, Trust.NOT_EXAMINED)
        said = label.words.partition(":" if named else " (in words: ")[0]
        if label.trust is Trust.KERNEL_CHECKED:
            return f"{clause}{said}, under its hypotheses"
        return f"{clause}{said}{', some steps in words' * bool(label.prose and not named)}"
    scope = [f"{label.scope[name]}" for name in ("check", "level") if name in label.scope]
    size, tolerance = (label.scope.get(name) for name in ("error", "tolerance"))
    error = f", {sized(size, tolerance)}" if isinstance(size, float) else ""
    return f"{clause}{label.trust.name.lower()}: {' in the '.join(scope)}{error}"


def _least(margins: Mapping[str, Mapping[str, float]]) -> list[str]:
    """A line for each assumption with its least margin and the number of settings that break it; broken ones first."""
    rows = []
    for text in dict.fromkeys(text for held in margins.values() for text in held):
        known = [held[text] for held in margins.values() if text in held]
        breaks = sum(text in broken(held) for held in margins.values())
        where = f"broken at {breaks} of {len(known)} settings" if len(known) > 1 else "broken"
        rows.append([text, margin(min(known)), where if breaks else ""])
    return columns(sorted(rows, key=lambda row: not row[2]), most=WIDTH)


def _errors(head: Sequence[str], rows: Sequence[VerdictRow], room: int) -> list[str]:
    """The head and as many rows as fit, one at least; an alarming row is never left out."""
    by_need = sorted(rows, key=lambda row: not row.alarming)
    fewest = max(sum(row.alarming for row in rows), 1)
    for count in range(len(rows), fewest - 1, -1):
        chosen = by_need[:count]
        shown = [list(head[:5])]
        for row in (row for row in rows if row in chosen):
            *words, expected = row.words[:5]
            shown.append([*words, expected + (" <-" if row.alarming else "")])
        more = [f"  and {len(rows) - count} rows more"] if count < len(rows) else []
        lines = [*columns(shown, most=WIDTH), *more]
        if len(lines) <= room:
            break
    return lines
