"""``python docs/writers/errata_page.py`` writes the page of errata, from a quick audit of the built-in papers.

What is false comes first, by how far it misses, and what has no erratum last, folded.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

from dynamics.support import files
from theory import layout
from theory.papers import built_in
from theory.statements import Erratum, Hypothesis, Remark, Slip, Source, Statement
from yzflow.audits import formulas
from yzflow.audits.audit import audit
from yzflow.audits.outcomes import Column, Outcome, sentence
from yzflow.audits.report import AuditReport, assumed, cells, markdown_table, worst_forms
from yzflow.parts import parts

__all__ = ["GROUPS", "errata_page", "group"]

PAGE = Path("docs") / "errata.md"

# Kinds of errata, from what matters most; a statement stands with the first kind that it has.
GROUPS: dict[type, str] = {
    str: "False as printed",
    Hypothesis: "A hypothesis is missing",
    Slip: "Slips of the print",
    Remark: "Remarks",
}
_WORDS: dict[type, str] = {Hypothesis: "Missing hypothesis: ", Slip: "Slip: ", Remark: "Remark: "}


def errata_page(report: AuditReport) -> str:
    """The errata of every statement of a report as a Markdown page, with what each rests on and by how much it misses.

    A statement without an erratum says so, among the folded ones at the end.
    """
    groups: dict[type, list[Statement]] = {kind: [] for kind in GROUPS}
    papers = list(dict.fromkeys(one.paper for one in report.statements))
    notes = [note for paper, note in parts("not_examined") if paper.name in papers]
    ordered = sorted(report.statements, key=lambda one: (papers.index(one.paper), layout.reading_order(one)))
    without = [one for one in ordered if not one.errata]
    for one in ordered:
        if one.errata:
            groups[group(one)].append(one)
    groups[str].sort(key=lambda one: _weight(report, one))
    lines = [
        "# Errata",
        "",
        "What is false as printed comes first, from what misses most; then missing hypotheses, slips and remarks. Made",
        "from the register (`theory.statements`) and an audit (`yzflow audit --quick`) by",
        "`python docs/writers/errata_page.py`. How far a formula misses is the largest error over the settings inside",
        "the assumptions.",
        "",
        report.counted(),
        "",
        '<div id="errata-filter"></div>',
        "",
    ]
    for kind, title in GROUPS.items():
        if groups[kind]:
            others = {one.source.where for one in groups[kind]} - {Source().where} if kind is str else set()
            lines += [f"## {', or '.join([title, *sorted(others)])}: {len(groups[kind])}", ""]
            lines += [line for one in groups[kind] for line in _entry(report, one)]
    if without:
        lines += [f"## Without an erratum: {len(without)}", ""]
        lines += [line for one in without for line in _folded(report, one)]
    lines += [line for note in notes for line in (f"Not examined: {note}", "")]
    return "\n".join([*lines, '<script src="_static/errata.js"></script>', ""])


def group(statement: Statement) -> type:
    """The kind of a statement's errata that matters most."""
    kinds = [_kind(erratum) for erratum in statement.errata]
    return next(kind for kind in GROUPS if kind in kinds)


def _kind(erratum: str) -> type:
    return type(erratum) if isinstance(erratum, Erratum) else str


def _weight(report: AuditReport, statement: Statement) -> tuple[bool, bool, float]:
    """For sorting: by how far the printed form misses, then a refuted conjecture, then what no check sees."""
    printed = report.columns(statement)[0]
    size = printed.size if printed.outcome in (Outcome.FAILS, Outcome.REFUTED) else None
    missed = 0.0 if size is None or size.size is None else size.size
    return size is None, not statement.refuted, -float(f"{missed:.2g}")


def _entry(report: AuditReport, statement: Statement) -> list[str]:
    """A heading, how far the printed form misses, the errata, and folded the rest."""
    order, missed = list(GROUPS), _missed(report.columns(statement)[0])
    errata = sorted(statement.errata, key=lambda erratum: order.index(_kind(erratum)))
    shown = [one for one in errata if _kind(one) is not Remark] or errata  # remarks beside an error are folded
    return [
        f"### {statement.id}. {statement.title}",
        "",
        *([f"**{missed}**", ""] if missed else []),
        *map(_item, shown),
        *(f"- Checked by the kernel of Coq (`{one.name}`), {one.words}" for one in statement.negations),
        "",
        "<details>",
        "<summary>The statement, its formulas, assumptions and numbers</summary>",
        "",
        *_rest(report, statement),
        *([*map(_item, errata[len(shown) :]), ""] if len(shown) < len(errata) else []),
        "</details>",
        "",
    ]


def _item(erratum: str) -> str:
    return f"- {_WORDS.get(_kind(erratum), '')}{erratum}"


def _missed(printed: Column) -> str:
    """Failures of the printed form, and by how much; of a refuted conjecture, where it is refuted."""
    if printed.outcome not in (Outcome.FAILS, Outcome.REFUTED):
        return ""
    if printed.scope or len(printed.parts) == 1:
        return sentence([printed])
    parts = sorted(printed.deciding, key=lambda part: (part.size is None, -(part.size or 0.0)))
    words = "; ".join(f"{part.says} failed, {part.by}" if part.by else f"{part.says} failed" for part in parts)
    return f"{printed.title[0].upper()}{printed.title[1:]}: {words}."


def _folded(report: AuditReport, statement: Statement) -> list[str]:
    """A statement without an erratum: one line, with the rest folded."""
    said = "A statement of ours." if statement.own else "No erratum found."
    title = escape(f"{statement.id}. {statement.title}", quote=False)
    return [
        "<details>",
        f"<summary>{title}</summary>",
        "",
        said,
        "",
        *_rest(report, statement),
        "</details>",
        "",
    ]


def _rest(report: AuditReport, statement: Statement) -> list[str]:
    """Text and assumptions of a statement, its largest errors and its grounds."""
    lines = [statement.text, ""]
    for name, formula in statement.forms:
        lines += [f"{name}:", "", *formulas.as_markdown(formula), ""]
    lines += [line for said in assumed(statement) for line in (said, "")]
    shown = [cell for cell in cells(report.table) if cell[0].statement == statement.id]
    if shown:
        entries = [[c[0].check, c[0].level, *worst_forms([row for row in c if row.inside])] for c in shown]
        head = ["check", "level", statement.source.short, "corrected", "expected"]
        lines += [*markdown_table([head, *entries]), ""]
    return [*lines, *_rests(report, statement), ""]


def _rests(report: AuditReport, statement: Statement) -> list[str]:
    """Grounds of a statement, or of each of its clauses with its formula, as Markdown."""
    found = []
    for clause in statement.clauses:
        labels = [one for one in report.labels_of_proofs.get(statement.id, ()) if one.clause == clause.name]
        words = [label.words for label in (*labels, *clause.in_words)]
        names = {check.name for check in clause.checks}
        measured = any(row.statement == statement.id and row.check in names for row in report.table)
        words += ["measured, as the table says"] if measured else []
        name = f"- *{clause.name}*: rests on: " if clause.name else "Rests on: "
        found.append(f"{name}{'; '.join(words)}.")
        if clause.formula:
            found += ["", *(f"  {line}" for line in formulas.as_markdown(clause.formula)), ""]
    return found


def main() -> None:
    """Write the page, in a clone of the repository."""
    files.writable("PAGE", PAGE)
    files.write(PAGE, errata_page(audit(built_in(), quick=True, progress=True)).encode())


if __name__ == "__main__":
    main()
