"""``python docs/writers/errata_page.py`` writes the page of errata from the register of the built-in papers.

An erratum has what of the statement stands, the source's words, a number in the paper's own regime, what is right.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from dynamics.support import files
from theory import layout
from theory.papers import built_in
from theory.statements import Erratum, FalseAsPrinted, RefutedInPart, Remark, Slip, Statement
from yzflow.audits import formulas
from yzflow.pages.statement import slug
from yzflow.parts import parts

__all__ = ["CLASSES", "errata_page", "heaviest"]

PAGE = Path("docs") / "errata.md"

# From what matters most; a statement stands with the first class that it has.
CLASSES: tuple[type[Erratum], ...] = (FalseAsPrinted, RefutedInPart, Slip, Remark)
_ONE: dict[type[Erratum], str] = {
    FalseAsPrinted: "False as printed",
    RefutedInPart: "Refuted in part",
    Slip: "A slip",
    Remark: "A remark",
}
_INTRODUCTION = """# Errata

Errors that we found in the three papers. *False as printed* is false for the settings that the paper is about. *Refuted
in part* is false in a part of them, or in one clause. A *slip* is a sign, an index or a factor that the proof or the
rest of the paper has right. *Remarks* are no errors: what a statement leaves open or takes as understood; they stand on
the pages of the statements, to which the titles link, with assumptions, proofs and all numbers.

*Printed* is what our copy has; *Sparse averaging* is quoted from the slides of its talk. An entry that is unfair to a
paper is an error of ours: please tell us. Made by `python docs/writers/errata_page.py` from the register.
"""


def errata_page(statements: Iterable[Statement]) -> str:
    """The errata of statements as a Markdown page, by class and in reading order."""
    given = list(statements)
    papers = list(dict.fromkeys(one.paper for one in given))
    ordered = sorted(given, key=lambda one: (papers.index(one.paper), layout.reading_order(one)))
    with_errata = [one for one in ordered if one.errata]
    lines = [_INTRODUCTION, '<div id="errata-filter"></div>', ""]
    for kind in CLASSES:
        if entries := [one for one in with_errata if heaviest(one) is kind]:
            lines += [f"## {kind.heading}: {len(entries)}", ""]
            if kind is Remark:
                lines += [*(f"- {_linked(one)}" for one in entries), ""]
            else:
                lines += [line for one in entries for line in _entry(one, kind)]
    lines += [f"{len(ordered) - len(with_errata)} more [statements](statements.md) have no erratum.", ""]
    lines += [f"Not examined: {note}\n" for paper, note in parts("not_examined") if paper.name in papers]
    return "\n".join([*lines, '<script src="_static/errata.js"></script>', ""])


def heaviest(statement: Statement) -> type[Erratum]:
    """The class of a statement's errata that matters most."""
    kinds = {type(erratum) for erratum in statement.errata}
    return next(kind for kind in CLASSES if kind in kinds)


def _linked(statement: Statement) -> str:
    title = _readable(f"{statement.id}. {statement.title}")
    return f'<a href="statements/{slug(statement)}.html">{title}</a>'


def _readable(text: str) -> str:
    return formulas.readable(text).replace("*", "&#42;")


def _entry(statement: Statement, kind: type[Erratum]) -> list[str]:
    """A heading, the errata but remarks, those of another class under its name, and what a kernel has checked."""
    lines = [f"### {_linked(statement)}", ""]
    errors = [one for one in statement.errata if not isinstance(one, Remark)]
    for erratum in sorted(errors, key=lambda one: CLASSES.index(type(one))):
        name = "" if type(erratum) is kind else f"*{_ONE[type(erratum)]}.* "
        lines += [*_parts(statement, erratum, name), ""]
    if names := ", ".join(f"`{one.name}`" for one in statement.negations):
        lines += [f"Refuted in Coq, under the hypotheses that stand on its page: {names}.", ""]
    return lines


def _parts(statement: Statement, erratum: Erratum, name: str) -> list[str]:
    """Lines of an erratum, a part each."""
    quoted = statement.source.where.removeprefix("as ")
    lines = [name.rstrip(), ""] if name else []
    lines.append(f"- **Stands:** {_readable(erratum.stands)}")
    if erratum.quoted:
        lines.append(f"- **{quoted[0].upper()}{quoted[1:]}:** {_readable(erratum.quoted)}")
    if erratum.setting:
        lines.append(f"- **At** {_readable(erratum.setting)}: {_readable(erratum.found)}")
    return [*lines, f"- **{erratum.last}:** {_readable(erratum.right)}"]


def main() -> None:
    """Write the page, in a clone of the repository."""
    files.writable("PAGE", PAGE)
    files.write(PAGE, errata_page(one for paper in built_in() for one in paper.statements).encode())


if __name__ == "__main__":
    main()
