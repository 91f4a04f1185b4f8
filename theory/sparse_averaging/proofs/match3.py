"""The identity behind the tensor unit for Match3: cos(A + B + C) as a sum of three products.

Sanford, Hsu, Telgarsky (NeurIPS 2023, arXiv 2306.02896): a third-order tensor unit needs scores of the form
sum_k Q_k(x_i) K_k(x_j) K'_k(x_j'); three terms are enough here, and the fourth coordinate is the blank pair's.
"""

from __future__ import annotations

import sympy as sp

from theory.symbolic import Claim, Derivation

TERMS = 3


def products(a: sp.Expr, b: sp.Expr, c: sp.Expr) -> sp.Expr:
    """4/3 sum_{k<3} cos(a - 2 pi k/3) cos(b - 2 pi k/3) cos(c - 2 pi k/3)."""
    shifts = [2 * sp.pi * sp.Rational(k, TERMS) for k in range(TERMS)]
    return sp.Rational(4, 3) * sum(sp.cos(a - s) * sp.cos(b - s) * sp.cos(c - s) for s in shifts)


def derive(*, products: Claim = products) -> Derivation:
    """The identity, and the one for two angles that Match2 uses."""
    a, b, c = sp.symbols("a b c", real=True)

    def expanded(expression):
        return sp.expand(sp.expand_trig(expression))

    match2 = sp.Matrix([[sp.cos(a), sp.sin(a)]]).dot(sp.Matrix([[sp.cos(b), -sp.sin(b)]]))
    return Derivation(
        statement="Match3, tensor unit",
        vanishing={
            "three angles": expanded(sp.cos(a + b + c) - products(a, b, c)),
            "two angles": expanded(sp.cos(a + b) - match2),
        },
        steps=(
            r"$4\cos A\cos B\cos C = \cos(A+B+C) + \cos(A+B-C) + \cos(A-B+C) + \cos(-A+B+C)$.",
            r"Shift all three angles by $-2\pi k/3$ and sum over $k$: the first term moves by $-2\pi k$ and stays; each"
            r" other one moves by $-2\pi k/3$ and sums to zero.",
        ),
        scope="all angles",
        sizes={},
    )
