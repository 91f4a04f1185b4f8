"""Theorems that Coq's kernel has checked, from the table that `formal/check` writes, and the labels that they give.

A theorem of the kind "clause" says all of a clause of the register, under the hypotheses that stand with it; one of
the kind "part" some of it; "erratum" is the negation of what is printed; "besides" is true as well. A row holds a hash
of the statement as it was then: where the register says something else now, its label is gone.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from theory.trust import Label, Trust

TABLE = Path(__file__).with_name("theorems.json")
DEFINITIONS = Path(__file__).with_name("definitions.json")
_LAYOUT = ("\\left", "\\right", "\\,", "\\!", "\\;", "{", "}")  # of LaTeX, which releases of sympy put elsewhere


@dataclass(frozen=True)
class Theorem:
    """A theorem that the kernel has checked.

    Attributes
    ----------
    theorem, file : str
        Its name, and the path of its source in `formal`.
    statement, clause : str
        The statement's id in the register, and the clause's name.
    kind : str
        "clause", "part", "erratum" or "besides".
    hypotheses, formula, note : str
        What it assumes and says, in words, and how it differs from the clause.
    coq, latex : str
        What it says to the kernel, and the same as LaTeX.
    uses : tuple of str
        The definitions that it rests on, those first that others rest on.
    axioms : tuple of str
        By the kernel's `Print Assumptions`.
    sha256 : str
        Of the source and of all that it is built on.
    asked : str
        Hash of the clause and its assumptions in the register.
    """

    theorem: str
    file: str
    statement: str
    clause: str
    kind: str
    hypotheses: str
    formula: str
    note: str
    coq: str
    latex: str
    uses: tuple[str, ...]
    axioms: tuple[str, ...]
    sha256: str
    asked: str

    @property
    def name(self) -> str:
        """With its room and file."""
        return f"{self.file.removesuffix('.v')}.{self.theorem}"

    @property
    def axioms_in_words(self) -> str:
        """The axioms that it rests on, by their names in Coq."""
        return f"Axioms: {', '.join(self.axioms) or 'none'}."

    @property
    def lapse(self) -> str:
        """Why it counts no more for the statement of its name."""
        whose = f'of the clause "{self.clause}"' if self.clause else "of the statement"
        return f"{self.name} does not count: a formula or an assumption {whose} has changed since it was checked"

    @property
    def words(self) -> str:
        """The part of the statement that it is of, what it says and assumes, and how it differs."""
        clause = f'the clause "{self.clause}"' if self.clause else "the statement"
        of = {"clause": f"all of {clause}", "part": f"a part of {clause}", "erratum": "against the text as quoted"}
        said = f"{of.get(self.kind, 'true besides')}: {self.formula}. Hypotheses: {self.hypotheses}."
        return f"{said} {self.note}" if self.note else said


def asked(statement: str, clause: str, formulas: Iterable[str | None], assumptions: Iterable[str]) -> str:
    """Hash of a clause: its names, its formulas without spaces and brackets of layout, and its assumptions' texts."""
    bare = []
    for formula in formulas:
        text = formula or ""
        for one in _LAYOUT:
            text = text.replace(one, "")
        bare.append("".join(text.split()))
    parts = [statement, clause, bare, list(assumptions)]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


@functools.cache
def table() -> tuple[Theorem, ...]:
    """All theorems, in the order of their sources."""
    rows = json.loads(TABLE.read_text(encoding="utf-8"))
    return tuple(Theorem(**{**row, "uses": tuple(row["uses"]), "axioms": tuple(row["axioms"])}) for row in rows)


@functools.cache
def definitions() -> dict[str, str]:
    """The text of each definition that theorems rest on, by room, file and name."""
    return dict(json.loads(DEFINITIONS.read_text(encoding="utf-8")))


def theorems(statement: str, clause: str, hashed: str) -> tuple[Theorem, ...]:
    """The theorems about a clause as it is now, by `asked`; with an empty name, those about the whole statement."""
    return tuple(one for one in table() if (one.statement, one.clause, one.asked) == (statement, clause, hashed))


def lapsed(statement: str, found: Iterable[Theorem]) -> tuple[Theorem, ...]:
    """The theorems on a statement, by its id, that are not among those about it as it is now."""
    now = set(found)
    return tuple(one for one in table() if one.statement == statement and one not in now)


def label(found: Iterable[Theorem], clause: str) -> Label | None:
    """The label of a clause all of which the kernel has checked; None where it has not.

    Theorems of the kind "part" give none, however many there are.
    """
    whole = [one for one in found if one.kind == "clause"]
    if not whole:
        return None
    scope = {
        "theorem": tuple(one.name for one in whole),
        "hypotheses": tuple(one.hypotheses for one in whole),
        "axioms": tuple(sorted({name for one in whole for name in one.axioms})),
    }
    return Label(Trust.KERNEL_CHECKED, scope, clause=clause)
