"""Decides whether an expression is zero, or has a sign, by exact algebra only.

A yes is a proof: identities have reduced the expression to the number 0, or to a quotient of sums whose terms have
known signs. Anything else is a no. So a true claim can fail for want of an argument, but a false claim never passes.
"""

from __future__ import annotations

import random
from typing import Any

import mpmath
import sympy as sp

from theory.symbolic import indexed

_RELATIONS = {
    "> 0": ("is_positive", 1),
    ">= 0": ("is_nonnegative", 1),
    "< 0": ("is_positive", -1),
    "<= 0": ("is_nonnegative", -1),
}


def vanishes(expression: Any) -> bool:
    """Whether ``expression`` is identically zero, shown symbolically.

    An expression with indices is decided for all sizes of their ranges (`theory.symbolic.indexed`), and an expression
    of matrix symbols for all matrices whose inverses, where it has them, exist.
    """
    expression = sp.sympify(expression)
    if isinstance(expression, sp.MatrixExpr):
        return expression.expand().doit() == sp.ZeroMatrix(*expression.shape)
    if indexed.is_indexed(expression):
        return not _differs_at_sizes(expression) and _rational_zero(indexed.plain(expression))
    if expression.is_number or expression.has(sp.nan, sp.zoo, sp.oo):
        return expression == 0 or (expression.is_finite is True and sp.simplify(expression) == 0)
    # Only a quick no: simplify can take minutes on an expression that is not zero.
    if _differs_somewhere(expression):
        return False
    return _rational_zero(expression) or sp.simplify(sp.expand_log(expression, force=False)) == 0


def has_sign(expression: Any, relation: str) -> bool:
    """Whether ``expression`` satisfies "> 0", ">= 0", "< 0" or "<= 0" under the assumptions on its symbols."""
    if relation not in _RELATIONS:
        raise ValueError(f"`relation` must be one of {', '.join(map(repr, _RELATIONS))}, but got {relation!r}")
    attribute, sign = _RELATIONS[relation]
    expression = sign * sp.sympify(expression)
    if getattr(expression, attribute):
        return True
    numerator, denominator = sp.fraction(sp.factor(sp.together(expression)))
    for top, bottom in ((numerator, denominator), (-numerator, -denominator)):
        if _certain(bottom, "is_positive") and _certain(top, attribute):
            return True
    return False


def _certain(expression: Any, attribute: str) -> bool:
    """Whether an expression, or the product of its factors, certainly has the sign of ``attribute``.

    Each factor is tried as it is, and expanded.
    """
    if getattr(expression, attribute) or getattr(sp.expand(expression), attribute):
        return True
    if not expression.is_Mul:
        return False
    sign = 1
    for factor in expression.args:
        if _one_sided(factor, 1, attribute):
            continue
        if not _one_sided(factor, -1, attribute):
            return False
        sign = -sign
    return sign > 0


def _one_sided(factor: Any, sign: int, attribute: str) -> bool:
    signed = sp.expand(sign * factor)
    return bool(getattr(sign * factor, attribute) or getattr(signed, attribute))


def _rational_zero(expression: Any) -> bool:
    """Whether a rational function of symbols, exponentials, logarithms and square roots is zero.

    Square roots of sums become new symbols r with r^2 = sum. A numerator in the ideal of these relations is zero,
    whatever other relations the generators have.
    """
    expression = sp.expand_power_exp(expression)
    roots: dict[sp.Expr, sp.Symbol] = {}

    def symbol(base: Any, exponent: Any) -> Any:
        if base.is_Add and exponent.is_Rational and exponent.q == 2:
            base = sp.expand(base)
            root = roots.setdefault(base, sp.Dummy(f"r{len(roots)}", positive=True))
            return root**exponent.p
        return base**exponent

    expression = expression.replace(sp.Pow, symbol)
    numerator = sp.numer(sp.together(expression))
    for base, root in roots.items():
        numerator = sp.rem(sp.expand(numerator), root**2 - base, root)
    return sp.expand(sp.expand_power_exp(sp.expand(numerator))) == 0


# The sizes are unequal, so that no size can stand for another; K <= M, since K next tokens are among M tokens.
_INSTANCES = ({"K": 3, "M": 4, "L": 2}, {"K": 2, "M": 3, "L": 4})


def _differs_at_sizes(expression: Any) -> bool:
    """Whether the value at explicit sizes is clearly not zero; it is written out, independently of the normal form."""
    with mpmath.workdps(40):
        values = [indexed.value_at(expression, sizes, seed) for sizes in _INSTANCES for seed in range(3)]
        return any(abs(value) > mpmath.mpf("1e-20") for value in values)


def _differs_somewhere(expression: Any) -> bool:
    """Whether the value at one random admissible point is clearly not zero."""
    if expression.atoms(sp.core.function.AppliedUndef) or expression.atoms(sp.Derivative, sp.Integral, sp.Limit):
        return False
    generator = random.Random(20230516)
    point = {}
    for symbol in sorted(expression.free_symbols, key=str):
        value = sp.Rational(generator.randrange(50, 150), 101)
        if symbol.is_integer:
            value = sp.Integer(generator.randrange(3, 9))
        point[symbol] = value
    value = expression.subs(point).evalf(40)
    return bool(value.is_number and value.is_finite and abs(value) > sp.Float("1e-20"))
