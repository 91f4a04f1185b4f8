"""Symbolic proofs: each holds, each refutes a mistake, and what they prove is what `theory` computes."""

import doctest
import math
from pathlib import Path

import numpy as np
import pytest
import sympy as sp
from proving import Proofs

import theory.symbolic
from dynamics import SequenceClasses, gradient_flow
from theory import attention, decoder
from theory.papers import papers
from theory.scan_and_snap.proofs import lemma5, lemma6, slowdown, theorem1, theorem3, theorem4
from theory.symbolic import Derivation, derived, joined
from theory.symbolic.decide import has_sign, vanishes
from theory.symbolic.model import Even

# The proofs of the core's own papers; those of other distributions are tested beside them.
SLUG = "scan_and_snap"
PROOFS = Proofs(papers()[SLUG], Path(__file__).parent / SLUG)


@pytest.mark.parametrize("name", PROOFS.modules)
def test_derivation_holds(name):
    PROOFS.check_holds(name)


@pytest.mark.parametrize("mistake", list(PROOFS.chosen()))
def test_a_wrong_claim_fails(mistake):
    PROOFS.check_refutes(mistake)


def test_every_module_has_a_mistake():
    PROOFS.check_all_have_mistakes()


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


def test_documented_example():
    assert doctest.testmod(theory.symbolic).failed == 0
    assert doctest.testmod(theory.symbolic).attempted > 0


def test_undecided_counts_as_failure():
    unknown = sp.Function("f")(X)
    derivation = Derivation("none", {"zero": sp.Integer(0), "f": unknown}, {"sign of f": (unknown, "> 0")})
    assert derivation.failures() == ["f", "sign of f"]


@pytest.mark.parametrize("size", [2, 3])
def test_the_algebra_of_even_matrices_is_that_of_matrices(size):
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


# Inequalities that would also hold if they said less, or more: by module and name, values of their symbols, and what is
# left there, by hand. Most are equalities at the edge.
SAID = [
    # M eta - dD/ds with D = M - 1 + y and dD/ds = M eta y/D, at M = 5.
    ("concentration", "(62): D grows by less than M eta_Y a visit", {"m": 4, "eta_Y": 0.5, "y": 3},
     sp.Rational(5, 2) * (1 - sp.Rational(3, 7))),
    # lambda_1 = lambda_i = 1/2: lambda^2/(1 - lambda) = 1/2, and lambda^2/(1 + lambda) = 1/6.
    ("gram", "Lemma 17: lambda_i > 0", {"a": 0, "s": 1, "r": 1}, sp.Rational(1, 3)),
    # d D = M eta_Y; exp(d) = 1 + d + d^2/2 = 5/2 at d = 1, with D = 5: 5 (3/2) - 3/2.
    ("remark2", "D grows by less than M eta_Y (exp(d) - 1)/d", {"m": 4, "d": 1, "c": 0, "x": 0}, 6),
    ("lemma8_9", "gamma <= (M - 1)^2 h/M", {"s": 0, "m": 4}, 0),
]  # fmt: skip


@pytest.mark.parametrize(("module", "name", "values", "left"), SAID)
def test_inequalities_say_no_less_than_they_should(module, name, values, left):
    PROOFS.check_says(module, name, values, left)


def test_signs_of_every_part_are_in_the_derivation():
    names = derived(PROOFS.modules["theorem1"]).signed
    assert {"xi > 0 by its terms", "star: above the centre's zero", "xi > 0, K = 3, any overlaps"} <= set(names)


POINTS = [(2, 2, 0.7, 0.3), (5, 3, 1.3, 4.0), (50, 10, 0.2, 700.0), (1000, 7, 5.0, 31.0)]


@pytest.mark.parametrize(("m", "k", "eta", "t"), POINTS)
def test_decoder_formulas_are_those_of_theory(m, k, eta, t):
    h = decoder.h(t / k, vocab_size=m, eta_y=eta)
    assert float(lemma6.implicit(m, sp.Float(h, 30), eta, t / k)) == pytest.approx(0, abs=1e-12 * (m * eta * t / k + m))
    assert float(theorem1.gamma(m, h)) == pytest.approx(
        decoder.gamma(t, vocab_size=m, n_classes=k, eta_y=eta), rel=1e-11
    )
    steps = decoder.h_steps(3, vocab_size=m, eta_y=eta)
    assert [float(lemma5.step(m, value, eta)) for value in steps[:-1]] == pytest.approx(list(steps[1:]), rel=1e-13)
    total = theorem4.accumulated(m, k, eta, 0.4, h)
    expected = decoder.gamma_integral(t, vocab_size=m, n_classes=k, eta_y=eta, eta_z=0.4)
    assert float(total) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("m", "k", "eta", "t"), POINTS)
def test_attention_formulas_are_those_of_theory(m, k, eta, t):
    rho = 0.07
    expected = attention.full_flow_slowdown(vocab_size=m, n_classes=k, overlap=rho)
    assert float(slowdown.slowdown(m, k, rho)) == pytest.approx(expected, rel=1e-13)
    c0 = attention.speed_constant(n_classes=k, overlap=rho)
    # rho = P_c^2/rho_0^2.
    assert float(theorem4.speed_constant(k, 1.0, math.sqrt(rho))) == pytest.approx(c0, rel=1e-12)
    exact = attention.speed_constant(n_classes=k, overlap=rho, vocab_size=m)
    assert float(theorem4.start_constant(m, k, rho)) == pytest.approx(exact, rel=1e-12)
    assert float(theorem4.full_start_constant(m, k, rho)) == pytest.approx(exact / expected, rel=1e-12)
    rates = {"vocab_size": m, "n_classes": k, "eta_y": eta, "eta_z": 0.4}
    total = decoder.gamma_integral(t, **rates)
    B = attention.growth_exponent(t, **rates, c0=c0)
    assert float(theorem4.exponent(sp.Float(total), c0)) == pytest.approx(B, rel=1e-9)
    lower, upper = theorem3.bounds(0.3**2, B)
    assert (float(lower), float(upper)) == pytest.approx(attention.growth_bounds(B, 0.3), rel=1e-12)
    p = np.array([0.3, 0.2])
    chi = attention.distinct_growth(B, p)
    grown = attention.relative_gain(p[0] * np.sqrt(chi[0]), p[1] * np.sqrt(chi[1]))
    assert float(theorem3.relative_gain(attention.relative_gain(*p), chi[0])) == pytest.approx(grown, rel=1e-9)


@pytest.mark.parametrize(("k", "m", "rho"), [(5, 50, 0.3), (5, 5, 0.5), (10, 100, 0.02)])
def test_first_correction_of_the_slowdown_is_that_of_the_flows(k, m, rho):
    """Measured as the ratio of the velocities of full and modified flow, with attention that hardly moves."""
    data = SequenceClasses.single_common_token(k, m, common=np.sqrt(rho / (1 - rho)), distinct=[1.0])
    t = np.array([0.01, 0.02])
    options = {"eta_y": 1.0, "eta_z": 1e-6, "t_end": t[-1], "times": t, "rtol": 1e-12, "atol": 1e-20}
    full, modified = (
        gradient_flow(data, decoder=name, **options).dataset["z_velocity"].values[:, 0] for name in ("full", "modified")
    )
    rates = (full / modified / float(slowdown.slowdown(m, k, rho)) - 1) / t[:, None]
    # Extrapolated to t = 0, which leaves an error of order t^2.
    measured = 2 * rates[0] - rates[1]
    np.testing.assert_allclose(measured, float(slowdown.first_correction(m, k, rho, 1.0)), rtol=2e-3)


def test_parts_of_a_proof_are_joined_and_none_is_lost():
    x, y = sp.symbols("x y")
    assert joined({"a": x}, ({"b": y}, {"c": (x, "> 0")})) == ({"a": x, "b": y}, {"c": (x, "> 0")})
    with pytest.raises(ValueError, match="must have a name for each expression, but two have 'a'"):
        joined({"a": x}, ({"a": y}, {}))
    with pytest.raises(ValueError, match="two have 'c'"):
        joined(({}, {"c": (x, "> 0")}), ({}, {"c": (x, "< 0")}))


def test_nothing_proves_nothing():
    x = sp.Symbol("x", positive=True)
    assert Derivation("Lemma", {}, {"x": (x, "> 0")}, sizes={}).failures() == []
