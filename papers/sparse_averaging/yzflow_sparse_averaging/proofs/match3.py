"""The tensor unit for Match3: cos(A + B + C) as a sum of three products, and errors of at most eta for all N and M.

Sanford, Hsu, Telgarsky (NeurIPS 2023, arXiv 2306.02896): a third-order tensor unit needs scores of the form
sum_k Q_k(x_i) K_k(x_j) K'_k(x_j'); three terms are enough here, and the fourth coordinate is the blank pair's.
"""

from __future__ import annotations

import sympy as sp

from theory.symbolic import Claim, Derivation
from yzflow_sparse_averaging.proofs.match2 import ODDS, TOKENS, largest_error

TERMS = 3


def products(a: sp.Expr, b: sp.Expr, c: sp.Expr) -> sp.Expr:
    """4/3 sum_{k<3} cos(a - 2 pi k/3) cos(b - 2 pi k/3) cos(c - 2 pi k/3)."""
    shifts = [2 * sp.pi * sp.Rational(k, TERMS) for k in range(TERMS)]
    return sp.Rational(4, 3) * sum(sp.cos(a - s) * sp.cos(b - s) * sp.cos(c - s) for s in shifts)


def gap(angle: sp.Expr) -> sp.Expr:
    """Gap between the score of a match and the scores of nonzero sums mod M and of pairs with the blank."""
    return sp.Min(1, angle)


def temperature(n_tokens: sp.Expr, odds: sp.Expr, gap: sp.Expr) -> sp.Expr:
    """c = (ln(N^2 + 2N) + 2 ln o)/g."""
    return (sp.log(n_tokens**2 + 2 * n_tokens) + 2 * sp.log(odds)) / gap


def near_weight(n_tokens: sp.Expr, odds: sp.Expr) -> sp.Expr:
    """Upper bound of a non-matching pair's weight exp(-c g) over a match's: c g = ln(N^2 + 2N) + 2 ln o, g <= 1."""
    return 1 / (n_tokens * (n_tokens + 2) * odds**2)


def blank_weight(n_tokens: sp.Expr, odds: sp.Expr) -> sp.Expr:
    """The blank pair's, in units of a match."""
    return (1 - 2 / ((n_tokens + 2) * odds)) / odds


def derive(
    *,
    products: Claim = products,
    temperature: Claim = temperature,
    near_weight: Claim = near_weight,
    blank_weight: Claim = blank_weight,
) -> Derivation:
    """The identity for three angles, Match2's identity for two angles, and both errors in the worst case."""
    eta, near, blank = largest_error(ODDS), near_weight(TOKENS, ODDS), blank_weight(TOKENS, ODDS)
    zeros = blank + 2 * TOKENS * near  # with the 2N pairs of a token and the blank, whose score is 0
    ones, more = TOKENS**2 * near, sp.Symbol("k", nonnegative=True)
    size = sp.Symbol("w", positive=True)
    a, b, c = sp.symbols("a b c", real=True)
    step = sp.Symbol("g", positive=True)
    at_gap = sp.exp(sp.expand(-temperature(TOKENS, ODDS, step) * step))

    def expanded(expression):
        return sp.expand(sp.expand_trig(expression))

    match2 = sp.Matrix([[sp.cos(a), sp.sin(a)]]).dot(sp.Matrix([[sp.cos(b), -sp.sin(b)]]))
    return Derivation(
        statement="Match3, tensor unit",
        vanishing={
            "three angles": expanded(sp.cos(a + b + c) - products(a, b, c)),
            "two angles": expanded(sp.cos(a + b) - match2),
            "the nearest pair's weight": sp.simplify(at_gap - near),
            "one match: the blanks' share": sp.simplify(zeros / (1 + zeros) - eta),
        },
        signed={
            "no match: the tokens' share": (sp.simplify(eta - ones / (ones + blank)), ">= 0"),
            "more weight on ones, smaller share of blanks": (size / (1 + size) - size / (1 + more + size), ">= 0"),
            "the blank pair has a weight": (sp.simplify(blank), "> 0"),
        },
        steps=(
            r"$4\cos A\cos B\cos C = \cos(A+B+C) + \cos(A+B-C) + \cos(A-B+C) + \cos(-A+B+C)$.",
            r"Shift all three angles by $-2\pi k/3$ and sum over $k$: the first term moves by $-2\pi k$ and stays; each"
            r" other one moves by $-2\pi k/3$ and sums to zero.",
            r"With $g = \min(1, 1 - \cos(2\pi/M))$ and $c\,g = \ln(N^2+2N) + 2L$, $o = e^L$, a pair that does not match"
            r" and a pair of a token and the blank weigh at most $1/((N^2+2N)o^2)$, a match 1. The blank pair is given"
            r" the weight $(1 - 2/((N+2)o))/o$.",
            r"With a match the error is the share of the value 0, at most $(1/o)/(1 + 1/o) = \eta$, for blank and mixed"
            r" pairs weigh $1/o$ together. Without one it is that of $N^2$ pairs, at most $\eta$ since $2/o \le 2$.",
        ),
        scope="all angles; all N, M >= 2 and 0 < eta < 1/2, in exact arithmetic",
        sizes={},
        prose=("sums that do not vanish mod M have a cosine of at most cos(2 pi/M), as in Match2",),
    )
