"""Valid calls of what a paper's statements and proofs are written with, which the hostile tests vary."""

# ruff: noqa: C408
from sympy import Symbol

from theory.statements import (
    Assumption,
    Check,
    Clause,
    Enclosing,
    Source,
    Statement,
)
from theory.symbolic import Derivation, joined, part
from theory.trust import Label, Trust

EXEMPT = {
    "text, which Python makes of anything": {
        f"parts.{name}" for name in ("Erratum", "FalseAsPrinted", "RefutedInPart", "Remark", "Slip")
    }
}
x = Symbol("x", positive=True)


def calls():
    """Name -> (callable, arguments); made anew, so that no call sees another's objects."""
    assumption = Assumption("M is large", lambda setting: 2.0)
    check = Check("it holds", ("flow",), lambda runs, level: 0.0, assumptions=(assumption,), expected=("flow",))
    clause = Clause("part", "x = x", None, (check,), assumptions=(assumption,))
    statement = Statement("A paper", "Lemma 1", "Title", "Words.", "x = x", clauses=(clause,))

    class Setting:
        name = "small"

        def simulate(self, level, *, seed):
            return None

    derivation = dict(statement="Lemma 1", vanishing={"x": x - x}, signed={"y": (x, "> 0")}, steps=("$x$",),
                      scope="All.", sizes={}, prose=("words",), proves=("Lemma 2",))  # fmt: skip
    proof = Clause("proof", "x = x", lambda: Derivation(**derivation), ())
    proven = Statement("A paper", "Lemma 1", "Title", "Words.", "x = x", clauses=(proof,))
    found = {
        "Assumption": (Assumption, vars(assumption)),
        "Check": (Check, vars(check) | dict(corrected=lambda runs, level: 0.0, claim=check.printed, claim_until=1.0)),
        "Clause": (Clause, vars(clause)),
        "Enclosing": (Enclosing, dict(
            levels=("flow",), enclose=lambda *given: None, question=lambda setting, level: None, claims={})),
        "Enclosing.claim_of": (
            Enclosing(levels=("flow",), enclose=lambda *given: None, question=lambda *given: None).claim_of,
            dict(check=check)),
        "Source": (Source, dict(where="as printed", form="printed form")),
        "Statement": (Statement, vars(statement)),
        "Statement.assumed": (statement.assumed, dict(check=check)),
        "Statement.clause_of": (statement.clause_of, dict(check=check)),
        "Statement.accuses": (statement.accuses, dict(check=check)),
        "Statement.proved": (proven.proved, dict(clause=proven.clauses[0])),
        "Statement.hashed": (statement.hashed, dict(clause=clause)),
        "Statement.theorems": (statement.theorems, dict(clause=clause)),
        "Statement.with_kernel": (statement.with_kernel, dict(clause=clause, labels=(Label(Trust.MEASURED, "words"),))),
        "Statement.margins": (statement.margins, dict(setting=Setting(), check=check, level="flow")),
        **{f"Statement.{name}": (getattr(statement, name), dict(check=check, failures=("x",), level="flow"))
           for name in ("measured", "enclosed")},
    }  # fmt: skip

    def part_of(prove, names, sizes, prose):
        return part(prove, names, sizes=sizes, prose=prose)

    def joined_of(first, second):
        return joined(first, second)

    places = {name: "statements" if name.startswith("Statement") else "parts" for name in found}
    return {f"{places[name]}.{name}": call for name, call in found.items()} | {
        "symbolic.joined": (joined_of, dict(first={"x": x - x}, second=({"y": x - x}, {"z": (x, "> 0")}))),
        "symbolic.Derivation": (Derivation, derivation),
        "symbolic.Derivation.is_of": (Derivation(**derivation).is_of, dict(number="Lemma 1")),
        "symbolic.part": (
            part_of,
            dict(prove=lambda: Derivation(**derivation), names="x", sizes={"K": (2,)}, prose=("words",)),
        ),
    }
