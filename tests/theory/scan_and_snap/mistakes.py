"""Wrong claims that the proofs must refute: module, claims, and how the name of an entry that must fail begins."""

import sympy as sp

from theory.scan_and_snap.proofs import (
    concentration,
    corollary2,
    gram,
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
    remark2,
    slowdown,
    theorem1,
    theorem2,
    theorem3,
    theorem4,
    theorem5,
    transition,
)


def minus_first_sign(f):
    return lambda *arguments: -f(*arguments)


# One sequence with a repeated and an unseen token, enough to refute.
ONE = {"sequences": lemma1.SEQUENCES[1:2]}

SMALL = {"sizes": ((2, 3),)}

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
    "remark2: half the lag early": (
        remark2,
        {"early_lag": lambda m, x: remark2.early_lag(m, x) / 2},
        "early: the bound",
    ),
    "concentration: (62) as printed": (concentration, {"residual_gap": lambda eta, d: eta * d / 3}, "(62): largest"),
    "gram: sign of the diagonal": (gram, {"diagonal": lambda a: a / (1 - a)}, "Lemma 16"),
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
}

# Proofs of all sizes that are written out at some besides, or have a counter-example at one.
CONFIRMED = ("concentration", "lemma5", "lemma6", "lemma8_9", "slowdown")
