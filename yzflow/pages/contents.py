"""The pages of all statements and their index, from one run of the audit."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Sequence
from html import escape
from pathlib import Path

from dynamics.support import checks
from dynamics.support.files import folder
from theory.layout import reading_order
from theory.statements import Statement
from yzflow.audits import formulas
from yzflow.audits.audit import audit
from yzflow.audits.check import StatementVerdict
from yzflow.audits.find_statement import choose
from yzflow.audits.outcomes import COLUMNS
from yzflow.audits.rendered import html_table
from yzflow.audits.report import AuditReport
from yzflow.pages import explorer, live
from yzflow.pages import statement as single
from yzflow.pages.files import file, save

__all__ = ["index", "sections", "verdicts", "write_all"]

INDEX = "index.html"
UNRUN = "Nothing was run for this page: labels and numbers are missing."


def write_all(
    path: str | os.PathLike,
    *,
    only: Sequence[str] | None = None,
    quick: bool = True,
    seed: int = 0,
    progress: bool = False,
    run: bool = True,
) -> AuditReport:
    """Write a page for each statement, and ``index.html``, into a folder, which is made if it is missing.

    If all statements are written, so is the explorer, ``explorer.html``; it and the pages link to each other.

    Parameters
    ----------
    path : path-like
        The folder. Each file in it is written completely or not at all, the index last.
    only, quick, seed, progress
        As for `yzflow.audit`, which runs once for all pages.
    run : bool
        Run the audit. Without it, the pages take seconds and say that nothing was run.

    Raises
    ------
    ValueError
        If the folder cannot be written, or ``only`` names a statement that is not in the register.
    """
    where = folder("path", checks.instance("path", path, (str, os.PathLike)))
    run = checks.flag("run", run)
    unrun = AuditReport([], tuple(choose(only)), {})
    report = audit(only, quick=quick, seed=seed, progress=progress) if run else unrun
    note = "" if run else UNRUN
    of_statements = verdicts(report, quick=quick, seed=seed)
    for verdict in of_statements:
        save(single.html(verdict, index=INDEX, note=note), _file(where, verdict.statement))
    if only is None:
        explorer.write(where / "explorer.html", pages=INDEX, progress=progress)
    save(index(of_statements, note=note), where / INDEX)
    return report


def verdicts(report: AuditReport, *, quick: bool, seed: int) -> list[StatementVerdict]:
    """A verdict for each statement of an audit, as from `yzflow.check` with the same ``quick`` and ``seed``."""
    return [StatementVerdict(one, report.of(one), bool(quick), seed) for one in report.statements]


def index(verdicts: Sequence[StatementVerdict], *, note: str = "") -> str:
    """The index page, with links to all pages and a search box; ``note`` stands on top."""
    title = "Every statement, with what it rests on"
    words = f"<p>{escape(note)}</p>" if note else ""
    body = f"<header><h1>{title}</h1>{words}</header><main>{''.join(sections(verdicts))}</main>"
    return single.document(title, body, scripts=script())


def script() -> str:
    """Search script for a page with the index's `sections`."""
    return f"<script>\n{file('yzflow.pages', 'contents.js')}</script>\n"


def sections(verdicts: Sequence[StatementVerdict], *, base: str = "") -> list[str]:
    """Sections of the index: counts by kind, a list for each paper, and one table of all statements.

    ``base`` is a prefix for the addresses of pages.
    """
    papers: dict[str, list[StatementVerdict]] = {}
    for verdict in verdicts:
        papers.setdefault(verdict.statement.paper, []).append(verdict)
    for of_paper in papers.values():
        of_paper.sort(key=lambda verdict: reading_order(verdict.statement))
    kinds = Counter(single.standing(verdict) for verdict in verdicts)
    counted = ", ".join(f"{number} {word}" for word, number in kinds.items())
    failing = sum(not verdict.passed for verdict in verdicts)
    wrong = f"{failing} of them" if failing else "None of those that were run" if kinds["not run"] else "None"
    sliders = sum(live.views(verdict.statement) is not None for verdict in verdicts)
    words = f"{len(verdicts)} statements, by what they rest on: {counted}. {wrong} failed where it should hold."
    parts = [f"<p>{words} {sliders} of the pages have sliders.</p>", _SEARCH]
    for paper, of_paper in papers.items():
        entries = "".join(_entry(verdict, base) for verdict in of_paper)
        parts.append(f"<section><h2>{escape(paper)}</h2><ol class='order'>{entries}</ol></section>")
    head = ["statement", "rests on", *COLUMNS, "errata"]
    ordered = [verdict for of_paper in papers.values() for verdict in of_paper]
    bad = [not verdict.passed for verdict in ordered]
    caption = "What was found inside the assumptions, with the largest error of what failed"
    rows = [_row(verdict, base) for verdict in ordered]
    parts.append(f"<section><h2>All in one table</h2>{html_table(head, rows, caption, bad=bad)}</section>")
    return parts


# Hidden until the script shows it, since search needs the script.
_SEARCH = (
    "<form class='filters' id='search' role='search' aria-label='Statements' hidden>"
    "<label for='search-words'>Search by number, title or text<input type='search' id='search-words'></label></form>"
    "<p class='said' id='search-said' role='status'></p>"
)


def _entry(verdict: StatementVerdict, base: str) -> str:
    statement = verdict.statement
    link = f"<a href='{base}{_address(statement)}'>{escape(statement.number)}. {escape(statement.title)}</a>"
    sliders = " <span class='soft'>with sliders</span>" if live.views(statement) else ""
    words = escape(f"{statement.id} {statement.title} {statement.text}", quote=True)
    first = formulas.readable(first_sentence(statement.text))
    return f"<li data-words='{words}'>{link} {single.badge_of(verdict)}{sliders}<br>{first}</li>"


def _row(verdict: StatementVerdict, base: str) -> list[str]:
    statement = verdict.statement
    return [
        f"<a href='{base}{_address(statement)}'>{escape(statement.id)}</a>",
        single.badge_of(verdict),
        *(formulas.readable(column.under) for column in verdict.columns),
        str(len(statement.accused)),
    ]


def _address(statement: Statement) -> str:
    return f"{single.slug(statement)}.html"


def _file(where: Path, statement: Statement) -> Path:
    return where / _address(statement)


def first_sentence(text: str) -> str:
    """The text up to its first full stop before a space and a capital letter."""
    return re.split(r"(?<=\.)\s+(?=[A-Z(])", text, maxsplit=1)[0]
