"""The largest of several widths, for all values of their symbols."""

from __future__ import annotations

import sympy as sp

from theory.symbolic.decide import has_sign


def largest(*widths: sp.Expr) -> sp.Expr:
    """The largest width, by exact algebra; `sympy.Max` of the widths that algebra cannot compare."""
    left = list(dict.fromkeys(map(sp.sympify, widths)))
    for one in tuple(left):
        if any(one is not other and has_sign(sp.expand(other - one), ">= 0") for other in left):
            left.remove(one)
    return left[0] if len(left) == 1 else sp.Max(*left)
