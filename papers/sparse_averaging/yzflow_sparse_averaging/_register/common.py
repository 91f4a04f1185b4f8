"""Hypotheses, checks and names that both parts of the register use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from theory.statements import Assumption, Check, Clause, Measure, Statement
from theory.symbolic import Derivation, part
from theory.symbolic.printing import tex
from yzflow_sparse_averaging.proofs import disjointness

EXACT = LEVELS = ("closed form",)  # nothing is trained


def given(text: str) -> Assumption:
    """A hypothesis with margin one: every construction and run here satisfies it."""
    return Assumption(text, lambda setting: 1.0)


MAPS = given("queries, keys and values are maps of a token of any size")
BETWEEN = given("maps of any size before, between and after the layers")


def check(
    name: str, printed: Measure, corrected: Measure | None = None, tolerance: float = 0.0, *, needed: bool = False
) -> tuple[Check, ...]:
    """The single check of a clause, expected to hold."""
    return (Check(name, EXACT, printed, corrected, tolerance=tolerance, expected=EXACT, needed=needed),)


def statement(number: str, title: str, text: str, printed: str, **more: Any) -> Statement:
    """A statement of this paper; ``printed``, as in the slides, and ``corrected`` are LaTeX, without dollar signs."""
    return Statement("Sparse averaging", number, title, text, printed, **more)


def proof_of_rank(*prose: str) -> Callable[..., Derivation]:
    """The proof of the rank of disjointness, with further steps in words."""
    parts = ("Kronecker", "determinant", "rank, ", "det of")
    return part(disjointness.derive, *parts, sizes=disjointness.SIZES, prose=(disjointness.INDUCTION, *prose))


def rank_of_disjointness(size: str, **more: Any) -> Clause:
    """The clause on the rank of disjointness of sets of so many elements."""
    return Clause(
        "rank of disjointness",
        tex(disjointness.rank, size),
        prove=proof_of_rank(),
        **more,
    )
