"""Symbolic proofs: each holds, each refutes a mistake, and what they prove is what `theory` computes."""

import dataclasses
import doctest
import math

import numpy as np
import pytest
import sympy as sp
from scipy.special import lambertw

import theory.symbolic
from dynamics import SequenceClasses, gradient_flow
from theory import attention, decoder
from theory.bounded_dyck.proofs import stack as dyck_stack
from theory.bounded_dyck.proofs import theorem1 as dyck_theorem1
from theory.bounded_dyck.proofs import theorem2 as dyck_theorem2
from theory.bounded_dyck.proofs import uniform as dyck_uniform
from theory.scan_and_snap.proofs import (
    corollary2,
    invariants,
    lemma1,
    lemma2,
    lemma3,
    lemma4,
    lemma5,
    lemma6,
    lemma7,
    lemma8_9,
    lemma18,
    slowdown,
    theorem1,
    theorem2,
    theorem3,
    theorem4,
    theorem5,
    transition,
)
from theory.sparse_averaging.proofs import disjointness as averaging_disjointness
from theory.sparse_averaging.proofs import linear_query as averaging_linear_query
from theory.sparse_averaging.proofs import match2 as averaging_match2
from theory.sparse_averaging.proofs import match3 as averaging_match3
from theory.sparse_averaging.proofs import moments as averaging_moments
from theory.symbolic import Derivation, derivations, rooms
from theory.symbolic.decide import has_sign, vanishes

MODULES = {f"{paper}.{name}": prove for paper in rooms() for name, prove in derivations(paper).items()}


@pytest.mark.parametrize("name", MODULES)
def test_derivation_holds(name):
    derivation = MODULES[name]()
    assert derivation.vanishing and derivation.steps and derivation.scope and derivation.statement
    assert derivation.failures() == []


def minus_first_sign(f):
    return lambda *arguments: -f(*arguments)


# One sequence with a repeated and an unseen token, enough to refute.
ONE = {"sequences": lemma1.SEQUENCES[1:2]}

SMALL = {"sizes": ((2, 3),)}

# Module, the wrong claim, and how the name of an entry that must fail begins.
MISTAKES = {
    "lemma1: sign of the decoder": (lemma1, {**ONE, "decoder_rate": lambda f, r: -f * r.T}, "dJ/dY"),
    "lemma1: no projection": (lemma1, {**ONE, "bag_rate": lambda f, g: f.multiply_elementwise(g)}, "bag form"),
    "lemma1: e_n and alpha transposed": (lemma1, {**ONE, "decoder_rate": lambda f, r: r * f.T}, "dJ/dY"),
    "lemma1: norm squared": (
        lemma1,
        {**ONE, "attention_rate": lambda X, b, Y, r: lemma1.attention_rate(X, b, Y, r) / lemma1.norm(X.T * b)},
        "dJ/dz",
    ),
    "invariants: weighted sum": (
        invariants,
        {"conserved": lambda row: sum(j * x for j, x in enumerate(row))},
        "row 0 of Y",
    ),
    "invariants: sum of all but one": (invariants, {"conserved": lambda row: sum(row[1:])}, "row of Z"),
    "lemma2: without P": (lemma2, {"attention": lambda p, z: lemma2.attention(sp.ones(3, 1), z)}, "limit"),
    "lemma2: sign of z": (lemma2, {"feature": lambda p, z: lemma2.feature(p, -z)}, "limit of the feature"),
    "lemma3: E' by -E'": (lemma3, {**SMALL, "correction": lambda G: -lemma3.correction(G)}, "F^T (f_n"),
    "lemma3: E' by E": (lemma3, {**SMALL, "correction": lambda G: G - sp.eye(G.rows)}, "F^T (f_n"),
    "lemma3: index": (lemma3, {**SMALL, "update": lambda j, n, r: int(j == n + 1) * r}, "dJ/dw"),
    "lemma3: every row moves": (lemma3, {**SMALL, "update": lambda j, n, r: r}, "dJ/dw"),
    "lemma5: (36) as printed": (
        lemma5,
        {"zeta": lambda m: (lemma5.zeta(m)[0], lemma5.zeta(m)[0])},
        "first step elsewhere",
    ),
    "lemma5: 1/M for 1/(M - 1)": (lemma5, {"residual": lambda m, h: m / (m + sp.exp(m * h))}, "residual"),
    "lemma5: half a step": (lemma5, {"step": lambda m, h, eta: lemma5.step(m, h, eta / 2)}, "step"),
    "lemma6: constant": (lemma6, {"implicit": lambda *a: lemma6.implicit(*a) + 1}, "(45) at t = 0"),
    "lemma6: M for M - 1": (lemma6, {"rate": lambda m, h, eta: eta / (m + sp.exp(m * h))}, "(45) along (44)"),
    "lemma6: sign in omega": (
        lemma6,
        {"omega_argument": lambda m, eta, t: lemma6.omega_argument(m, eta, t) + 2 * sp.log(m - 1)},
        "closed form in (45)",
    ),
    "lemma7: a third of the bound": (lemma7, {"bound": lambda m, eta: eta / (3 * m)}, "one increment"),
    "lemma7: the printed bound is not the smallest": (lemma7, {"bound": lambda m, eta: 2 * eta / m}, "first gap"),
    "lemma7: small gap without 1/2": (
        lemma7,
        {"small_rate_gap": lambda m, e, f: 2 * lemma7.small_rate_gap(m, e, f)},
        "gap to first order",
    ),
    "lemma8_9: h without 1/2": (
        lemma8_9,
        {"early_bounds": lambda m, tau: (2 * lemma8_9.early_bounds(m, tau)[0], lemma8_9.early_bounds(m, tau)[1])},
        "early: lower",
    ),
    "lemma8_9: upper bound halved": (
        lemma8_9,
        {"late_bounds": lambda m, tau: (lemma8_9.late_bounds(m, tau)[0],) * 2},
        "late: upper",
    ),
    "lemma8_9: gamma halved": (lemma8_9, {"gamma_late": lambda m, x: lemma8_9.gamma_late(m, x) / 2}, "gamma <="),
    "lemma8_9: gamma doubled": (
        lemma8_9,
        {"gamma_early": lambda m, h: (lemma8_9.gamma_early(m, h)[0], 2 * lemma8_9.gamma_early(m, h)[1])},
        "early: gamma",
    ),
    "theorem1: E' by -E'": (theorem1, {"correction": lambda G: -lemma3.correction(G)}, "g_0, K = 2"),
    "theorem1: sign of beta": (theorem1, {"beta": minus_first_sign(theorem1.beta)}, "beta > 0"),
    "theorem1: q_0 with M for M - 1": (
        theorem1,
        {"coefficients": lambda m: (m / (m - 1), -1 / (m - 1))},
        "w_n' . r_n",
    ),
    "theorem1: gamma with one M - 1": (
        theorem1,
        {"gamma": lambda m, h: theorem1.gamma(m, h) / (m - 1)},
        "w_n . r_n",
    ),
    "theorem5: E' by -E'": (
        theorem5,
        {"weights": lambda F, E, h, m: theorem5.weights(F, -E, h, m), **SMALL},
        "dY/dt",
    ),
    "theorem5: index": (
        theorem5,
        {"weights": lambda F, E, h, m: theorem5.weights(F, E, h[::-1], m), **SMALL},
        "dY/dt",
    ),
    "theorem5: rate without K": (
        theorem5,
        {"late_residual": lambda m, k, e, t: theorem5.late_residual(m, 1, e, t), "sizes": ()},
        "residual over",
    ),
    "lemma18: delta for delta/2": (
        lemma18,
        {"deviation": lambda d, n: lemma18.deviation(2 * d, n)},
        "both tails",
    ),
    "transition: u*": (transition, {"peak_margin": lambda w: w}, "d gamma/dt at u*"),
    "transition: t* without K": (transition, {"peak_time": lambda m, k, e, u: transition.peak_time(m, 1, e, u)}, "t*"),
    "transition: peak": (transition, {"peak": lambda m, w: w}, "gamma at the peak"),
    "lemma4: no class probability": (
        lemma4,
        {"rate": lambda q, qs, f, b, g, p: lemma4.rate(q, qs, f, b, g, [1] * len(p))},
        "zdot, m = 0[0]",
    ),
    "lemma4: sign": (lemma4, {"rate": lambda *a: -lemma4.rate(*a)}, "zdot, m = 0[0]"),
    "lemma4: beta transposed": (
        lemma4,
        {"rate": lambda q, qs, f, b, g, p: lemma4.rate(q, qs, f, b.T, g, p)},
        "zdot, m = 0[0]",
    ),
    "theorem2: f for f^2": (theorem2, {"distinct_rate": lambda p, f, x: p * f * x}, "distinct token"),
    "theorem2: sign of the common token": (
        theorem2,
        {"common_rate": minus_first_sign(theorem2.common_rate)},
        "common token loses",
    ),
    "corollary2: K for K - 1": (
        corollary2,
        {"common_rate": lambda f, r, s, k: corollary2.common_rate(f, r, s, k + 1)},
        "common token 0",
    ),
    "corollary2: no class probability": (
        corollary2,
        {"distinct_rate": lambda f, r, s, k: k * corollary2.distinct_rate(f, r, s, k)},
        "distinct token",
    ),
    "theorem3: chi^2": (theorem3, {"relative_gain": lambda r, chi: r * chi**2}, "(11) is conserved"),
    "theorem3: 1/chi": (theorem3, {"relative_gain": lambda r, chi: r / chi}, "(11) is conserved"),
    "theorem3: 2 left out above": (
        theorem3,
        {"bounds": lambda f, b: (theorem3.bounds(f, b)[0], sp.exp(b))},
        "upper bound",
    ),
    "theorem3: 2 f^2 by 4 f^2 below": (
        theorem3,
        {"bounds": lambda f, b: (theorem3.bounds(2 * f, b)[0], theorem3.bounds(f, b)[1])},
        "lower bound",
    ),
    "theorem4: Gamma without K": (
        theorem4,
        {"accumulated": lambda m, k, y, z, h: theorem4.accumulated(m, 1, y, z, h)},
        "Gamma",
    ),
    "theorem4: C_0 by C_0/2": (
        theorem4,
        {"speed_constant": lambda k, n, p: theorem4.speed_constant(k, n, p) / 2},
        "C_0",
    ),
    "theorem4: C_0 as printed": (theorem4, {"speed_constant": lambda k, n, p: n**4 / k / p**4}, "C_0"),
    "theorem4: constant of B left out": (
        theorem4,
        {"exponent": lambda total, c0: sp.log(c0 + 4 * total) / 4},
        "B(0) = 0",
    ),
    "theorem4: C_0/2 inside B": (theorem4, {"exponent": lambda g, c0: theorem4.exponent(g, c0 / 2)}, "dB/dt"),
    "theorem4: zdot K times too large": (theorem4, {"common_logit": lambda b: -theorem4.K * b}, "dz/dt"),
    "theorem4: sign of z": (theorem4, {"common_logit": lambda b: b}, "dz/dt"),
    "slowdown: Remark 1": (slowdown, {"sizes": (), "slowdown": lambda m, k, r: 1 - r}, "s, all K and M"),
    "slowdown: rho'' form": (
        slowdown,
        {"sizes": (), "slowdown": lambda m, k, r: 1 / (1 + (m - k) * r / ((1 - r) * (1 + (k - 1) * r)))},
        "s, all K and M",
    ),
    "slowdown: factor 1/K in the flows": (
        slowdown,
        {**SMALL, "slowdown": lambda m, k, r: slowdown.slowdown(m, k, r) / k},
        "speed at order t, K = 2",
    ),
    "slowdown: correction": (
        slowdown,
        {"sizes": (), "first_correction": lambda m, k, r, e: slowdown.first_correction(m, k, r, e) * 2 / 3},
        "s_1, all K and M",
    ),
    # The difference of (11) is called c here: with c = -a the value is -exp(-a) V_open, not -exp(a) V_open.
    "dyck_theorem1: exp(a) for c = -a": (
        dyck_theorem1,
        {"partner_value": lambda value, c: -sp.exp(-c) * value},
        "(11) gives (14)",
    ),
    "dyck_theorem1: sign of V_close": (
        dyck_theorem1,
        {"partner_value": lambda value, c: sp.exp(c) * value},
        "(14) forces V_close",
    ),
    "dyck_theorem1: half a pair": (
        dyck_theorem1,
        {"insertion": lambda opened, closed, x, y: opened * sp.exp(x)},
        "u_n = u_0 + n delta",
    ),
    "dyck_theorem2: without the factor 2": (
        dyck_theorem2,
        {"bound": lambda p, lipschitz, separation, n: p * (1 + lipschitz / separation) / n},
        "the bound is where",
    ),
    "dyck_stack: sign of b": (dyck_stack, {"close_value": lambda b: -sp.exp(b)}, "coordinate"),
    "dyck_stack: V_open without a": (dyck_stack, {"open_value": lambda a: sp.Integer(1)}, "coordinate"),
    "dyck_stack: a step that starts late": (
        dyck_stack,
        {"step": lambda f, s: sp.Max(0, f / s - 1) - sp.Max(0, f / s - 2)},
        "step from",
    ),
    "dyck_stack: every unmatched bracket is the top": (dyck_stack, {"top": lambda own, deeper: own}, "head"),
    "dyck_uniform: without START's share": (dyck_uniform, {"depth_of": lambda start, height: height}, "depth"),
    "dyck_uniform: unequal values": (dyck_uniform, {"shared_value": lambda values: values}, "attention moves"),
    "averaging_disjointness: determinant": (averaging_disjointness, {"determinant": lambda q: 1}, "determinant, q = 1"),
    "averaging_disjointness: full rank of intersection": (
        averaging_disjointness,
        {"intersection_rank": lambda q: 2**q},
        "rank of intersection",
    ),
    "averaging_linear_query: margin over q + 1": (
        averaging_linear_query,
        {"scores": lambda d, r, k, q: averaging_linear_query.scores(d, r, k, q + 1), "sizes": ((4, 3),)},
        "equal scores",
    ),
    "averaging_linear_query: q = 2 allows more": (averaging_linear_query, {"sizes": ((4, 2),)}, "no other A"),
    "averaging_linear_query: half the margin": (
        averaging_linear_query,
        {
            "scores": lambda d, r, k, q: averaging_linear_query.scores([x / 2 for x in d], r, k, q),
            "sizes": ((4, 3),),
        },
        "gap",
    ),
    "averaging_match2: L for 2 L": (
        averaging_match2,
        {"temperature": lambda n, odds, gap: (sp.log(n) + sp.log(odds)) / gap},
        "no match",
    ),
    "averaging_match2: N left out": (
        averaging_match2,
        {"temperature": lambda n, odds, gap: 2 * sp.log(odds) / gap},
        "no match",
    ),
    "averaging_match2: sign of the blank": (
        averaging_match2,
        {"blank_score": lambda odds, c: 1 + sp.log(odds) / c},
        "one match",
    ),
    "averaging_match3: 1 for 4/3": (
        averaging_match3,
        {"products": lambda a, b, c: sp.Rational(3, 4) * averaging_match3.products(a, b, c)},
        "three angles",
    ),
    "averaging_match3: a sign": (
        averaging_match3,
        {"products": lambda a, b, c: averaging_match3.products(a, b, -c)},
        "three angles",
    ),
    "averaging_moments: single zeros": (
        averaging_moments,
        {"functional": lambda t, members: -sp.prod([t - j for j in members])},
        "gap",
    ),
    "averaging_moments: one member left out": (
        averaging_moments,
        {"functional": lambda t, members: averaging_moments.functional(t, members[:-1] or members)},
        "equal scores",
    ),
    "averaging_moments: weights without signs": (
        averaging_moments,
        {"radon_weight": lambda q, k: sp.binomial(2 * q, k)},
        "dependency",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_wrong_claim_fails(mistake):
    module, claims, expected = MISTAKES[mistake]
    derivation = module.derive(**claims)
    # Only the entries that the mistake belongs to: to decide them all takes long and says less.
    rows = dataclasses.replace(
        derivation,
        vanishing={name: value for name, value in derivation.vanishing.items() if name.startswith(expected)},
        signed={name: value for name, value in derivation.signed.items() if name.startswith(expected)},
    )
    assert rows.failures()


def test_every_module_has_a_mistake():
    assert {".".join(module.__name__.split(".")[1::2]) for module, _, _ in MISTAKES.values()} == set(MODULES)


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


def test_unknown_relation_is_refused():
    with pytest.raises(ValueError, match="`relation` must be one of"):
        has_sign(X, "== 0")


def test_undecided_counts_as_failure():
    unknown = sp.Function("f")(X)
    derivation = Derivation("none", {"zero": sp.Integer(0), "f": unknown}, {"sign of f": (unknown, "> 0")})
    assert derivation.failures() == ["f", "sign of f"]


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
def test_transition_formulas_are_those_of_theory(m, k, eta, t):
    w = float(lambertw((m - 1) / math.e).real)
    time = float(transition.peak_time(m, k, eta, transition.peak_margin(w)))
    assert time == pytest.approx(decoder.transition_time(vocab_size=m, n_classes=k, eta_y=eta), rel=1e-12)
    assert float(transition.peak(m, w)) == pytest.approx(decoder.peak_gamma(vocab_size=m), rel=1e-12)


@pytest.mark.parametrize(("m", "k", "eta", "t"), POINTS)
def test_attention_formulas_are_those_of_theory(m, k, eta, t):
    rho = 0.07
    expected = attention.full_flow_slowdown(vocab_size=m, n_classes=k, overlap=rho)
    assert float(slowdown.slowdown(m, k, rho)) == pytest.approx(expected, rel=1e-13)
    c0 = attention.speed_constant(n_classes=k, overlap=rho)
    # rho = P_c^2/rho_0^2.
    assert float(theorem4.speed_constant(k, 1.0, math.sqrt(rho))) == pytest.approx(c0, rel=1e-12)
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
