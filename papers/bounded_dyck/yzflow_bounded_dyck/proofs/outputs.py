"""Inserted pairs and the error of any model: its error is at least half of what a pair changes in its output.

A matched pair in a prefix leaves the exact distribution p as it is (Definition 1). Nothing here asks how the model is
made, nor in which norm distances are: total variation is half of the sum of absolute differences.
"""

from __future__ import annotations

import sympy as sp

from theory.symbolic import Claim, Derivation
from theory.symbolic.indexed import entries, index, size
from theory.symbolic.model import positive

SIZE = size("S")
TRIANGLE = "the triangle inequality for the distance of outputs"
SAME = "a matched pair that is inserted where it fits leaves the stack, and so the exact distribution, as it is"


def least(change: sp.Expr) -> sp.Expr:
    """Least error at one of two prefixes with one exact distribution, whose outputs differ by the change."""
    return change / 2


def least_apart(separation: sp.Expr, apart: sp.Expr) -> sp.Expr:
    """Least error at one of two prefixes whose exact distributions are further apart than the outputs."""
    return (separation - apart) / 2


def separation(q: sp.Expr) -> sp.Expr:
    """Total variation of the exact distributions at one closing query, for stacks whose last types differ."""
    return 1 - q


def derive(*, least: Claim = least, least_apart: Claim = least_apart, separation: Claim = separation) -> Derivation:
    """Two outputs and the exact distributions, coordinate by coordinate; then lengths of the differences."""
    place = index("l", SIZE)
    f, g, p, r = (entries(name)[place] for name in ("f", "g", "p", "r"))
    error, other = positive("e h")
    slack, change, q = positive("s c q")
    apart = sp.Symbol("a", nonnegative=True)
    mean = (error + (error + other)) / 2
    return Derivation(
        statement="Pairs in outputs (bounded Dyck)",
        vanishing={
            "a change is made of two errors": (f - g) - ((f - p) - (g - p)),
            "exact distributions are errors and outputs apart": (p - r) - ((p - f) + (f - g) + (g - r)),
            "the mean of two errors, for a change": (change + slack) / 2 - slack / 2 - least(change),
            "the mean of two errors, for stacks": (change + slack) / 2 - slack / 2 - least_apart(change + apart, apart),
            "attained: the exact one is halfway": sp.Abs(change / 2) - least(change),
            # Both close with 1 - q, each another type; what they open is the same.
            "stacks apart: two closing brackets": (sp.Abs(1 - q - 0) + sp.Abs(0 - (1 - q))) / 2 - sp.Abs(separation(q)),
        },
        signed={"the larger of two errors": ((error + other) - mean, ">= 0")},
        steps=(
            r"With one exact p: $f - g = (f - p) - (g - p)$, so that $\|f - g\| \le \|f - p\| + \|g - p\|$: the larger"
            r" error is at least half of the change. It is no more where p is halfway.",
            r"With exact p and r: $p - r = (p - f) + (f - g) + (g - r)$, so that the larger error is at least"
            r" $(\|p - r\| - \|f - g\|)/2$.",
            r"After a closing query at a depth from 1 to $D - 1$ the last unmatched type closes with $1 - q$: stacks"
            r" with other last types are $1 - q$ apart in total variation.",
        ),
        scope="any model, any number of brackets, any norm",
        sizes={},
        prose=(TRIANGLE, SAME),
    )
