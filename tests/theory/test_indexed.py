"""Sums over symbolic sizes: the normal form has the value of what it came from, and refuses what is false."""

import mpmath
import numpy as np
import pytest
import sympy as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sympy import KroneckerDelta

from theory.symbolic import decide
from theory.symbolic.decide import vanishes
from theory.symbolic.indexed import chosen, contract, entries, index, plain, size, total, value_at

M, K, L = size("M"), size("K"), size("L")
a, b, c = entries("a"), entries("b"), entries("c")
j, k, l, p = (index(name, M) for name in "jklp")
n, o = index("n", K), index("o", K)
s, t = index("s", L), index("t", L)
token, target = chosen("x", M), chosen("y", M, injective=True)
SIZES = {"K": 2, "M": 3, "L": 4}


def same(one, other, seeds=(0, 1, 2)):
    with mpmath.workdps(30):
        pairs = [(value_at(one, SIZES, seed), value_at(other, SIZES, seed)) for seed in seeds]
        return all(abs(x - y) <= mpmath.mpf("1e-24") * (1 + abs(x)) for x, y in pairs)


def softmax(i):
    return sp.exp(a[i]) / total(sp.exp(a[l]), l)


def unit(i):
    return a[i] / sp.sqrt(total(a[l] ** 2, l))


TRUE = {
    "a sum without its index": total(a[j], k) - M * a[j],
    "the name of a summed index": total(a[j] * b[j, p], j) - total(a[k] * b[k, p], k),
    "the order of sums": total(b[j, k] * a[j], j, k) - total(total(b[k, j] * a[k], k), j),
    "product of sums": total(a[j], j) * total(a[k], k) - total(a[j] * a[k], j, k),
    "square of a sum": total(a[j], j) ** 2 - total(a[j] * a[k], j, k),
    "delta summed": total(KroneckerDelta(j, k) * a[k], k) - a[j],
    "delta squared": KroneckerDelta(j, k) ** 2 - KroneckerDelta(j, k),
    "delta equates": KroneckerDelta(j, k) * (a[j] - a[k]),
    "trace of the identity": total(KroneckerDelta(j, k), j, k) - M,
    "all but one": total((1 - KroneckerDelta(j, k)) * a[k], k) - total(a[k], k) + a[j],
    "exp of a delta": sp.exp(KroneckerDelta(j, k)) - 1 - (sp.E - 1) * KroneckerDelta(j, k),
    "tokens by counts": total(a[token(t)], t) - total(total(KroneckerDelta(token(t), l), t) * a[l], l),
    "distinct targets": total(KroneckerDelta(target(n), j) * KroneckerDelta(target(o), j), j) - KroneckerDelta(n, o),
    "softmax sums to one": total(softmax(j), j) - 1,
    "softmax by its argument": sp.diff(softmax(j), a[p]) - softmax(j) * (KroneckerDelta(j, p) - softmax(p)),
    "norm": total(unit(j) ** 2, j) - 1,
    "norm for each class": total(c[n] * (1 - total((b[j, n] / sp.sqrt(total(b[l, n] ** 2, l))) ** 2, j)), n),
}
FALSE = {
    "another size": total(a[j], k) - K * a[j],
    "transposed": total(a[j] * b[j, p], j) - total(a[k] * b[p, k], k),
    "trace of products": total(b[j, k] * b[k, j], j, k) - total(b[j, k] ** 2, j, k),
    "sum of squares": total(a[j], j) ** 2 - total(a[j] ** 2, j),
    # K = 2 of M = 3 tokens: the delta of a token and a class is no matter of the sum over the classes.
    "delta of another range": total(KroneckerDelta(n, j) * c[n], n) - c[j],
    "targets need not be all tokens": total(KroneckerDelta(target(n), j), n) - 1,
    "tokens repeat": total(KroneckerDelta(token(t), j) * KroneckerDelta(token(s), j), j, s) - 1,
    "sign of a derivative": sp.diff(softmax(j), a[p]) - softmax(j) * (KroneckerDelta(j, p) + softmax(p)),
    "free indices are any": a[j] - a[k],
    "norm to the fourth": total(unit(j) ** 4, j) - 1,
}


@pytest.mark.parametrize("name", TRUE)
def test_an_identity_for_all_sizes_is_shown(name):
    assert vanishes(TRUE[name])
    assert same(TRUE[name], sp.Integer(0))


@pytest.mark.parametrize("name", FALSE)
def test_a_false_one_is_refused_by_value_and_by_normal_form(name):
    expression = FALSE[name]
    assert not vanishes(expression)
    assert decide._differs_at_sizes(expression)
    assert not decide._rational_zero(plain(expression))


def test_a_square_root_becomes_the_name_of_one():
    x = sp.Symbol("x", positive=True)
    found = plain(sp.sqrt(x) + x**2)
    (r,) = found.free_symbols
    assert found == r + r**4 and r != x


def factors(draw):
    one, other = draw(st.sampled_from([j, k, l])), draw(st.sampled_from([j, k, l, token(t)]))
    return draw(
        st.sampled_from(
            [
                a[one],
                b[one, other],
                KroneckerDelta(one, other),
                sp.exp(a[other]),
                sp.exp(2 * KroneckerDelta(one, other) - a[one]),
                1 / (1 + a[one] ** 2),
                sp.Symbol("h", positive=True),
                sp.Integer(draw(st.integers(-2, 2))),
            ]
        )
    )


@st.composite
def expressions(draw, depth=3):
    """Sums and products of entries, deltas and functions, summed over some of their indices."""
    if depth == 0:
        return factors(draw)
    kind = draw(st.sampled_from(["sum", "product", "total", "inverse", "leaf"]))
    if kind == "leaf":
        return factors(draw)
    first = draw(expressions(depth=depth - 1))
    if kind == "total":
        return total(first, draw(st.sampled_from([j, k, l, t])))
    if kind == "inverse":
        # The square of a sum, and something above it, is positive.
        return first / (1 + total(a[l] * sp.exp(b[l, j]), l))
    second = draw(expressions(depth=depth - 1))
    return first + second if kind == "sum" else first * second


@given(expressions())
@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_the_normal_form_has_the_same_value(expression):
    found = contract(expression)
    assert same(expression, found)
    assert contract(found) == found
    assert vanishes(expression - found)


def test_values_are_those_of_explicit_sums():
    assert value_at(total(j, j), {"M": 7}, 0) == 28
    assert value_at(total(KroneckerDelta(j, k), j, k), {"M": 7}, 0) == 7
    assert value_at(total(KroneckerDelta(token(t), j), j, t), {"M": 3, "L": 9}, 0) == 9
    assert value_at(total(KroneckerDelta(target(n), target(o)), n, o), {"K": 5, "M": 8}, 0) == 5
    vector = np.array([float(value_at(total(KroneckerDelta(j, i) * a[j], j), {"M": 4}, 3)) for i in range(1, 5)])
    assert len(set(vector)) == 4
    assert float(value_at(total(a[j] ** 2, j), {"M": 4}, 3)) == pytest.approx(vector @ vector, rel=1e-13)
    at = [(x, y, KroneckerDelta(j, x) * KroneckerDelta(k, y)) for x in range(1, 5) for y in range(1, 5)]
    matrix = np.zeros((4, 4))
    for x, y, chosen_one in at:
        matrix[x - 1, y - 1] = value_at(total(chosen_one * b[j, k], j, k), {"M": 4}, 3)
    found = float(value_at(total(a[j] * b[j, k] * a[k], j, k), {"M": 4}, 3))
    assert found == pytest.approx(vector @ matrix @ vector, rel=1e-13)


def test_what_it_cannot_read_is_refused():
    with pytest.raises(ValueError, match="`expression` must have no index in an exponent"):
        contract(total(2 ** a[j], j))
    with pytest.raises(ValueError, match="`expression` must be made of sums, entries, powers, exp and log"):
        value_at(total(sp.sin(a[j]), j), SIZES, 0)


def test_matrix_symbols():
    G, x = sp.MatrixSymbol("G", K, K), sp.MatrixSymbol("x", K, 1)
    one = sp.Identity(K)
    assert vanishes(G * (one - (one - G.I)) * x - x)
    assert not vanishes(G * (one + (one - G.I)) * x - x)
    assert not vanishes(G * x - G.T * x)
