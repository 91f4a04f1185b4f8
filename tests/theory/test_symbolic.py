"""Exact algebra that decides proofs: what vanishes, what has a sign, and how parts make a derivation."""

import pytest
import sympy as sp

from theory.symbolic import Derivation, joined
from theory.symbolic.decide import has_sign, vanishes
from theory.symbolic.model import Even

X, POSITIVE, COUNT = sp.Symbol("x", real=True), sp.Symbol("p", positive=True), sp.Symbol("n", nonnegative=True)


@pytest.mark.parametrize(
    ("expression", "zero"),
    [
        (sp.sin(X) ** 2 + sp.cos(X) ** 2 - 1, True),
        (sp.exp(2 * X) - sp.exp(X) ** 2, True),
        (X / sp.sqrt(X**2 + 1) - X * sp.sqrt(X**2 + 1) / (X**2 + 1), True),
        (sp.sqrt(2) * sp.sqrt(3) - sp.sqrt(6), True),
        (X, False),
        (sp.Rational(1, 10**30), False),
        (X * sp.Rational(1, 10**30), False),
        (sp.nan, False),
        (sp.oo, False),
        (sp.Function("f")(X), False),
        (sp.Function("f")(X) - sp.Function("f")(-X), False),
        (sp.sqrt(X**2) - X, False),
    ],
)
def test_vanishes(expression, zero):
    assert vanishes(expression) is zero


@pytest.mark.parametrize(
    ("expression", "relation", "holds"),
    [
        (POSITIVE, "> 0", True),
        (POSITIVE, ">= 0", True),
        (POSITIVE, "< 0", False),
        (-POSITIVE, "< 0", True),
        (COUNT, "> 0", False),
        (COUNT, ">= 0", True),
        (-COUNT, "<= 0", True),
        (X, ">= 0", False),
        (X**2, "> 0", False),
        (1 - POSITIVE, "> 0", False),
        ((1 - (1 + POSITIVE)) / (1 + POSITIVE), "< 0", True),
        ((POSITIVE - 1) * (POSITIVE - 1), "> 0", False),
        (sp.nan, "> 0", False),
    ],
)
def test_has_sign(expression, relation, holds):
    assert has_sign(expression, relation) is holds


def test_undecided_counts_as_failure():
    unknown = sp.Function("f")(X)
    derivation = Derivation("none", {"zero": sp.Integer(0), "f": unknown}, {"sign of f": (unknown, "> 0")})
    assert derivation.failures() == ["f", "sign of f"]


def test_the_algebra_of_even_matrices_is_that_of_matrices():
    size = 3

    def written(even):
        return (even.diagonal * sp.eye(size) + even.ones * sp.ones(size)).subs(k, size)

    a, b, c, d, k = sp.symbols("a b c d k", positive=True)
    one, other = Even(a, b, k), Even(c, d, k)
    for found, expected in (
        (one + other, written(one) + written(other)),
        (one * other, written(one) * written(other)),
        (one * c, c * written(one)),
        (one.inverse(), written(one).inv()),
    ):
        assert (written(found) - expected).applyfunc(sp.simplify) == sp.zeros(size)


def test_parts_of_a_proof_are_joined_and_none_is_lost():
    x, y = sp.symbols("x y")
    assert joined({"a": x}, ({"b": y}, {"c": (x, "> 0")})) == ({"a": x, "b": y}, {"c": (x, "> 0")})
    with pytest.raises(ValueError, match="must have a name for each expression, but two have 'a'"):
        joined({"a": x}, ({"a": y}, {}))
    with pytest.raises(ValueError, match="two have 'c'"):
        joined(({}, {"c": (x, "> 0")}), ({}, {"c": (x, "< 0")}))
