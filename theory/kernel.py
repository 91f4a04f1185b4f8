"""Theorems that Coq's kernel has checked, from the table that `formal/check` writes, and their labels.

There are four kinds of theorems. "clause" states a whole clause of the register, under the theorem's hypotheses;
"part" states a part of a clause; "erratum" refutes the printed formula; "besides" is a further true fact. Each row of
the table has a hash of the clause. If the clause changes in the register, the theorem loses its label.
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
_LAYOUT = ("\\left", "\\right", "\\,", "\\!", "\\;", "{", "}")  # LaTeX that differs between releases of sympy


@dataclass(frozen=True)
class Theorem:
    """A theorem that the kernel has checked.

    Attributes
    ----------
    theorem, file : str
        The theorem's name, and the path of its source in `formal`.
    statement, clause : str
        The statement's id in the register, and the clause's name.
    kind : str
        "clause", "part", "erratum" or "besides".
    hypotheses, formula, note : str
        The hypotheses and the conclusion in words, and the differences from the clause.
    coq, latex : str
        The theorem in Coq, and the same as LaTeX.
    uses : tuple of str
        The definitions that the theorem rests on, each after the definitions that it uses itself.
    axioms : tuple of str
        The axioms by the kernel's `Print Assumptions`.
    sha256 : str
        Hash of the source and of all sources that it imports.
    asked : str
        Hash of the clause and its assumptions in the register (`asked`).
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
        """The theorem's name after its room and file."""
        return f"{self.file.removesuffix('.v')}.{self.theorem}"

    @property
    def axioms_in_words(self) -> str:
        """The axioms by their names in Coq, as a sentence."""
        return f"Axioms: {', '.join(self.axioms) or 'none'}."

    @property
    def lapse(self) -> str:
        """The reason why the theorem no longer counts: the register's clause has changed."""
        whose = f'of the clause "{self.clause}"' if self.clause else "of the statement"
        return f"{self.name} does not count: a formula or an assumption {whose} has changed since it was checked"

    @property
    def words(self) -> str:
        """The theorem's clause, formula, hypotheses and note, for a page."""
        clause = f'the clause "{self.clause}"' if self.clause else "the statement"
        of = {"clause": f"all of {clause}", "part": f"a part of {clause}", "erratum": "against the text as quoted"}
        said = f"{of.get(self.kind, 'true besides')}: {self.formula}. Hypotheses: {self.hypotheses}."
        return f"{said} {self.note}" if self.note else said


def asked(statement: str, clause: str, formulas: Iterable[str | None], assumptions: Iterable[str]) -> str:
    """Hash of a clause: its names, its formulas without spaces and brackets of layout, and its assumptions' texts."""
    bare = []
    for formula in formulas:
        text = formula or ""
        for command in _LAYOUT:
            text = text.replace(command, "")
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
    """The text of each definition in the theorems, by room, file and name."""
    return dict(json.loads(DEFINITIONS.read_text(encoding="utf-8")))


def theorems(statement: str, clause: str, hashed: str) -> tuple[Theorem, ...]:
    """The theorems about the present form of a clause, by the hash `asked`; an empty clause is the whole statement."""
    return tuple(row for row in table() if (row.statement, row.clause, row.asked) == (statement, clause, hashed))


def lapsed(statement: str, found: Iterable[Theorem]) -> tuple[Theorem, ...]:
    """The theorems about a statement, by its id, without the theorems ``found`` for its present form."""
    present = set(found)
    return tuple(theorem for theorem in table() if theorem.statement == statement and theorem not in present)


def label(found: Iterable[Theorem], clause: str) -> Label | None:
    """The label of a clause that the kernel has checked as a whole; else None.

    Theorems of the kind "part" give no label, however many there are.
    """
    whole = [theorem for theorem in found if theorem.kind == "clause"]
    if not whole:
        return None
    scope = {
        "theorem": tuple(theorem.name for theorem in whole),
        "hypotheses": tuple(theorem.hypotheses for theorem in whole),
        "axioms": tuple(sorted({name for theorem in whole for name in theorem.axioms})),
    }
    return Label(Trust.KERNEL_CHECKED, scope, clause=clause)
