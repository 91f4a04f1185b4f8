"""Wrong claims that the proofs must refute: module, claims, and how the name of an entry that must fail begins."""

import sympy as sp
from sympy import KroneckerDelta

from theory.scan_and_snap.proofs import (
    approximations,
    concentration,
    corollary2,
    gram,
    initial_values,
    invariants,
    layer_norm,
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
)
from theory.symbolic.indexed import index, total
from theory.symbolic.model import identity


def minus_first_sign(f):
    return lambda *arguments: -f(*arguments)


# Nothing written out besides: what is for all sizes refutes the mistake.
GENERAL = {"sequences": ()}
NONE = {"sizes": ()}
SMALL = {"sizes": ((2, 3),)}


def no_projection(projection, attended, signal, length, p):
    j = index("j", lemma1.M)
    return total(signal(j) * attended(j, p), j) / length


def weighted_sum(rate):
    k = index("k'", lemma1.M)
    return total(k * rate(k), k)


def all_but_one(rate):
    k, one = index("k'", lemma1.M), index("one", lemma1.M)
    return total((1 - KroneckerDelta(k, one)) * rate(k), k)


MISTAKES = {
    "(119): K - 1 for K - 2": (approximations, {"beta_error": approximations.speed_error}, "leading: beta"),
    "(13): without 1/(M rho)": (
        approximations,
        {"speed_error": lambda m, k, rho: -(k - 1) * rho},
        "leading: speed",
    ),
    "(13): the norm stands still": (approximations, {"decay": lambda k, rho, fourth: 1 - rho}, "norm: fall of rho"),
    "Initial values: the threshold's sign": (
        initial_values,
        {"threshold": lambda p, other: sp.log(p / other)},
        "lead: a tie at",
    ),
    "Initial values: the loser stops twice as far": (
        initial_values,
        {"stop": lambda ratio: 2 * initial_values.stop(ratio)},
        "other: its limit",
    ),
    "Initial values: B_n of the leader alone": (
        initial_values,
        {"exponent_needed": lambda gain, wanted: sp.log(wanted / gain) / 2},
        "exponent: its slope",
    ),
    "LayerNorm: the features' own norm": (
        layer_norm,
        {"rate": lambda own, share, *rest: layer_norm.rate(own, own, *rest)},
        "velocity: by (9)",
    ),
    "LayerNorm: distinct tokens without the mean": (
        layer_norm,
        {"distinct_push": lambda m, c, kappa, squared: squared + m * c * kappa},
        "distinct: what n' adds",
    ),
    "LayerNorm: M for M - 1": (
        layer_norm,
        {"common_pull": lambda m, p, o, e: (p - 1 / m) * (1 - p) * (1 - o) / m + e * (o - 1 / m)},
        "common: what n' takes",
    ),
    "LayerNorm: loses below 1/M, too": (
        layer_norm,
        {"common_pull": lambda m, p, o, e: layer_norm.common_pull(m, p - 1 / m, o, e)},
        "common: loses above",
    ),
    "LayerNorm: beta turns at zero": (layer_norm, {"least_overlap": lambda m: 0}, "beta: its factor"),
    "LayerNorm: M p^2": (
        layer_norm,
        {"border": lambda m, p, squared: m * p**2 - (1 - squared)},
        "beta: by shares",
    ),
    "lemma1: no projection": (lemma1, {**GENERAL, "attention_rate": no_projection}, "dJ/dZ"),
    "lemma1: bag form without the projection": (
        lemma1,
        {**GENERAL, "bag_rate": lambda f, g, p: f(p) * g(p)},
        "bag form",
    ),
    "lemma1: e_n and alpha transposed": (
        lemma1,
        {**GENERAL, "decoder_rate": lambda f, r, j, k: r(j) * f(k)},
        "dJ/dY",
    ),
    "invariants: weighted sum": (invariants, {"conserved": weighted_sum}, "row of Y"),
    "invariants: weighted sum of attention": (invariants, {"conserved": weighted_sum}, "row of Z"),
    "invariants: sum of all but one": (invariants, {"conserved": all_but_one}, "row of Z"),
    "lemma2: without P": (
        lemma2,
        {"attention": lambda p, z, j: lemma2.attention(lambda l: sp.Integer(1), z, j)},
        "limit of the attention",
    ),
    "lemma2: sign of z": (
        lemma2,
        {"feature": lambda p, z, j: lemma2.feature(p, lambda l: -z(l), j)},
        "limit of the feature",
    ),
    "lemma3: E' by -E'": (lemma3, {"correction": lambda G: -lemma3.correction(G)}, "F^T (f_n"),
    "lemma3: index": (lemma3, {"update": lambda j, n, r: r - lemma3.update(j, n, r)}, "dJ/dW"),
    "lemma3: every row moves": (lemma3, {"update": lambda j, n, r: r}, "dJ/dW"),
    "lemma5: (36) as printed": (
        lemma5,
        {"zeta": lambda m: (lemma5.zeta(m)[0], lemma5.zeta(m)[0])},
        "first step elsewhere",
    ),
    "lemma5: 1/M for 1/(M - 1)": (lemma5, {"residual": lambda m, h: m / (m + sp.exp(m * h))}, "residual"),
    "lemma5: half a step": (lemma5, {"step": lambda m, h, eta: lemma5.step(m, h, eta / 2)}, "step"),
    "lemma6: M + 1 for the constant": (lemma6, {"implicit": lambda *a: lemma6.implicit(*a) - a[0]}, "(45) at t = 0"),
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
    "lemma8_9: c' up to 3/2 by the same argument": (
        lemma8_9,
        {"crossing_range": lambda: (sp.Rational(1, 2), sp.Rational(3, 2))},
        "c': room",
    ),
    "lemma8_9: c' above 1": (lemma8_9, {"crossing_range": lambda: (sp.Integer(1), sp.Integer(2))}, "c': above"),
    "lemma8_9: omega_1 without c'": (
        lemma8_9,
        {"upper_excess": lambda m, c: sp.log(sp.log(m)) / sp.log(m)},
        "c': M^omega_1",
    ),
    "lemma8_9: omega_0 with the constant 1": (
        lemma8_9,
        {"lower_excess": lambda m: 1 / (m * sp.log(m))},
        "omega_0: its M ln M",
    ),
    "Lemma 9: constant 1": (
        lemma8_9,
        {"late_bound": lambda m, t: lemma8_9.late_bound(m, t) / 2},
        "late: M - 1 + exp(x)",
    ),
    "Lemma 9: 3 is the least constant": (
        lemma8_9,
        {"late_bound": lambda m, t: 3 * lemma8_9.late_bound(m, t) / 2},
        "late: constant reached",
    ),
    "Lemma 9: half the early bound": (lemma8_9, {"time_bound": lambda t: t / 2}, "gamma <= tau"),
    "theorem1: E' by -E'": (theorem1, {"correction": lambda G: -lemma3.correction(G)}, "g_n = F (I - E')"),
    "theorem1: E' by E": (theorem1, {"correction": lambda G: G - identity(G.rows)}, "Y = F G^{-1} W along a step"),
    "theorem1: E' by -E', written out": (theorem1, {"correction": lambda G: -lemma3.correction(G)}, "g_0, K = 2"),
    "theorem1: sign of beta": (theorem1, {"beta": minus_first_sign(theorem1.beta)}, "beta > 0"),
    "theorem1: q_0 with M for M - 1": (
        theorem1,
        {"coefficients": lambda m: (m / (m - 1), -1 / (m - 1))},
        "W r_n",
    ),
    "theorem1: gamma with one M - 1": (
        theorem1,
        {"gamma": lambda m, h: theorem1.gamma(m, h) / (m - 1)},
        "W r_n",
    ),
    "Theorem 1(a): 1/sqrt(K - 3)": (theorem1, {"sharp_bound": lambda k: 1 / sp.sqrt(k - 3)}, "a row of K - 2"),
    "Theorem 1(a): 1/K is the limit": (theorem1, {"sharp_bound": lambda k: 1 / k}, "star: sign changes"),
    "Theorem 1(a): sign of q_0": (
        theorem1,
        {"xi_by_blocks": lambda a, b, q, t: theorem1.xi_by_blocks(a, -b, q, t)},
        "xi",
    ),
    "theorem5: E' by -E'": (
        theorem5,
        {**NONE, "weights": lambda F, E, W: theorem5.weights(F, -E, W)},
        "dY/dt",
    ),
    "theorem5: without E'": (theorem5, {**NONE, "weights": lambda F, E, W: F * W}, "logits of class n"),
    "theorem5: M for M - 1": (theorem5, {**NONE, "row": lambda h, z, m: theorem5.row(h, z, m + 1)}, "dW/dt"),
    "theorem5: sign, written out": (
        theorem5,
        {**SMALL, "row": lambda h, z, m: -theorem5.row(h, z, m)},
        "dY/dt for class",
    ),
    "theorem5: rate without K": (
        theorem5,
        {"late_residual": lambda m, k, e, t: theorem5.late_residual(m, 1, e, t), "sizes": ()},
        "residual over",
    ),
    "Theorem 5: 1/(1 + theta_n)": (theorem5, {"sizes": (), "theta": lambda own, mean: mean / own - 1}, "(70)"),
    "Corollary 1: steps without K": (
        theorem5,
        {"sizes": (), "steps_needed": lambda k, eta, eps, m: theorem5.steps_needed(1, eta, eps, m)},
        "(45) with both",
    ),
    "remark2: the gap stays": (
        remark2,
        {"late_slope": lambda: sp.exp(remark2.X)},
        "(b): the lag times the rate",
    ),
    "remark2: half the lag early": (
        remark2,
        {"early_lag": lambda m, x: remark2.early_lag(m, x) / 2},
        "early: the bound",
    ),
    "Lemma 7 (a): the lag's increment doubled": (
        remark2,
        {"increment": lambda m, x, d: 2 * remark2.increment(m, x, d)},
        "increment",
    ),
    "Lemma 7 (a): c = 1/3": (remark2, {"enough": lambda: sp.Rational(1, 3)}, "early: below"),
    "Remark 2: the lag stays bounded": (remark2, {"late_slope": lambda: sp.Integer(0)}, "late: lag per margin"),
    "concentration: Remark 4 for every delta": (
        concentration,
        {"rounded_limit": lambda: sp.Integer(1)},
        "Nbar rounded: Remark 4",
    ),
    "concentration: the rounded mean costs nothing": (
        concentration,
        {"rounded_delta": lambda k: k / 2},
        "Nbar rounded: tails",
    ),
    "concentration: nor by Bernstein": (
        concentration,
        {"rounded_logarithm": lambda: sp.Integer(1)},
        "Nbar rounded: one from",
    ),
    "concentration: (62) as printed": (concentration, {"residual_gap": lambda eta, d: eta * d / 3}, "(62): largest"),
    "Lemma 10: N for N/2": (concentration, {"radius": lambda n, log: sp.sqrt(n * log)}, "(58) from Hoeffding"),
    "Lemma 10: the second < from 8 on": (concentration, {"needed": lambda: sp.Integer(8)}, "second < of (58)"),
    "Lemma 11: (61) halved": (concentration, {"growth_gap": lambda d, n: d / (2 * n)}, "(61): above"),
    "Lemma 11: M/(M - 1) left out": (
        concentration,
        {"log_residual_gap": lambda m, eta, d: eta * d / 4},
        "(62): the slope",
    ),
    "Lemma 11: late elasticity 1": (concentration, {"late_elasticity": lambda: sp.Integer(1)}, "late: elasticity"),
    "Lemma 12: by Bernstein without its second term": (
        concentration,
        {"relative_bound": lambda k, n, log: sp.sqrt(2 * k * log / n)},
        "Nbar rounded: what Bernstein",
    ),
    "Lemma 12: Bernstein with half the variance": (
        concentration,
        {"bernstein": lambda v, log: concentration.bernstein(v / 2, log)},
        "Bernstein: the deviation",
    ),
    "gram: (88), theta_n for theta_n'": (
        gram,
        {"beta": lambda a, b, t, e, n, o: gram.beta(a, b, lambda k: t(n), e, n, o)},
        "(88)",
    ),
    "gram: half the entries": (gram, {"entry_bound": lambda top: top / 2}, "Lemma 13"),
    "gram: E' by E, eigenvalues": (gram, {"corrected_eigenvalue": lambda value: value}, "(93): E_nn"),
    "gram: sign of the diagonal": (gram, {"diagonal": lambda a: a / (1 - a)}, "Lemma 16"),
    "Lemma 14: 1 - lambda below": (gram, {"corrected_eigenvalue": lambda x: x / (1 - x)}, "Lemma 14"),
    "Lemma 15: without 1 - lambda": (gram, {"correction_bound": lambda top, limit: top}, "Lemma 15: lambda_i < 0"),
    "Lemma 17: the third power": (
        gram,
        {"sharp_difference_bound": lambda top: top**3 / (1 - top**2)},
        "Lemma 17: sharp",
    ),
    "Lemma 17: any signs with the sharp bound": (
        gram,
        {"difference_bound": gram.sharp_difference_bound},
        "Lemma 17: lambda_i < 0",
    ),
    "(86): sign": (gram, {"iota": lambda a, b, t, e, n: gram.iota(a, -b, t, e, n)}, "(86)"),
    "(88) as printed": (
        gram,
        {"beta": lambda a, b, t, e, n, o: gram.beta(a, b, t, e, n, o) + 2 * b * (1 + t(o))},
        "(88)",
    ),
    "(90): 1/K": (gram, {"off_bound": lambda k: 1 / k}, "(90)"),
    "lemma18: delta for delta/2": (
        lemma18,
        {"deviation": lambda d, n: lemma18.deviation(2 * d, n)},
        "both tails",
    ),
    "lemma4: no class probability": (
        lemma4,
        {"rate": lambda own, both, b, g, p, m: lemma4.rate(own, both, b, g, lambda n: sp.Integer(1), m)},
        "zdot",
    ),
    "lemma4: beta transposed": (
        lemma4,
        {"rate": lambda own, both, b, g, p, m: lemma4.rate(own, both, lambda n, o: b(o, n), g, p, m)},
        "zdot",
    ),
    "lemma4: classes of every query": (
        lemma4,
        {"rate": lambda own, both, b, g, p, m: lemma4.rate(own, both, b, g, p, lambda n: sp.Integer(1))},
        "zdot",
    ),
    "lemma4: without the part of f_n": (
        lemma4,
        {"rate": lambda own, both, b, g, p, m: lemma4.rate(own, lambda n, o: sp.Integer(0), b, g, p, m)},
        "zdot",
    ),
    "theorem2: f for f^2": (theorem2, {"distinct_rate": lambda p, f, x: p * f * x}, "distinct token"),
    "theorem2: sign of the common token": (
        theorem2,
        {"common_rate": minus_first_sign(theorem2.common_rate)},
        "common token loses",
    ),
    "theorem2: a common token without 1 - f^2": (
        theorem2,
        {"common_rate": lambda p, f, x: -p * x},
        "common token",
    ),
    "corollary2: K for K - 1": (
        corollary2,
        {"common_rate": lambda f, r, s, k: corollary2.common_rate(f, r, s, k + 1)},
        "common token",
    ),
    "corollary2: no class probability": (
        corollary2,
        {"distinct_rate": lambda f, r, s, k: k * corollary2.distinct_rate(f, r, s, k)},
        "distinct token",
    ),
    "theorem3: chi^2": (theorem3, {"relative_gain": lambda r, chi: r * chi**2}, "(11) is conserved"),
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
    "Theorem 3: B_n without the class probability": (
        theorem3,
        {"exponent_rate": lambda p, xi: xi},
        "d ln chi/dB",
    ),
    "theorem4: Gamma by nu without K": (
        theorem4,
        {"accumulated_by_ratio": lambda m, k, nu, h: theorem4.accumulated_by_ratio(m, 1, nu, h)},
        "(131): Gamma by nu",
    ),
    "theorem4: Gamma without K": (
        theorem4,
        {"accumulated": lambda m, k, y, z, h: theorem4.accumulated(m, 1, y, z, h)},
        "Gamma",
    ),
    "theorem4: C_0 as printed": (theorem4, {"speed_constant": lambda k, n, p: n**4 / k / p**4}, "C_0"),
    "theorem4: C_0 at the start without 1 + (M - 1) rho": (
        theorem4,
        {"start_constant": lambda m, k, r: (m - 1) * theorem4.speed_constant(k, 1, sp.sqrt(r)) / m},
        "at the start: C_0",
    ),
    "theorem4: two classes of unequal f begin as fast": (
        theorem4,
        {"unequal_start": lambda first, second: sp.Integer(1)},
        "at the start: two classes",
    ),
    "theorem4: the full flow begins as fast": (
        theorem4,
        {"full_start_constant": theorem4.start_constant},
        "at the start: C_0 of the full flow",
    ),
    "theorem4: constant of B left out": (
        theorem4,
        {"exponent": lambda total, c0: sp.log(c0 + 4 * total) / 4},
        "B(0) = 0",
    ),
    "theorem4: C_0/2 inside B": (theorem4, {"exponent": lambda g, c0: theorem4.exponent(g, c0 / 2)}, "dB/dt"),
    "theorem4: sign of z": (theorem4, {"common_logit": lambda b: b}, "dz/dt"),
    "Theorem 4: branches are exact at their ends": (
        theorem4,
        {"branch_gaps": lambda: (sp.Integer(0), sp.Integer(0))},
        "branches",
    ),
    "Insight (b): B always grows with eta_Y": (
        theorem4,
        {"decoder_rate_sign": lambda m, x: (m - 1) * x},
        "insight (b): elasticity",
    ),
    "(132): the condition as printed": (
        theorem4,
        {"late_margin": lambda k, nu: 1 / sp.sqrt(2 * nu)},
        "(132)",
    ),
    "slowdown: Remark 1": (slowdown, {"sizes": (), "slowdown": lambda m, k, r: 1 - r}, "s, all K and M"),
    "slowdown: factor 1/K in the flows": (
        slowdown,
        {**SMALL, "slowdown": lambda m, k, r: slowdown.slowdown(m, k, r) / k},
        "speed at order t, K = 2",
    ),
    "slowdown: residuals that do not couple late": (
        slowdown,
        {"sizes": (), "late_rate": lambda m, k, r, y: slowdown.late_rate(k, k, r, y)},
        "late: the rate of exp(u)",
    ),
    "slowdown: correction": (
        slowdown,
        {"sizes": (), "first_correction": lambda m, k, r, e: slowdown.first_correction(m, k, r, e) * 2 / 3},
        "s_1, all K and M",
    ),
    "Slow-down: kappa for its square in s_inf": (
        slowdown,
        {
            "sizes": (),
            "late_ratio": lambda m, k, r: (
                (k * (1 + (m - 1) * r) / (1 - r) + (2 * (1 + (m - 1) * r) / (1 - r) - 1) * (m - k))
                / (m * (1 + (m - 1) * r) / (1 - r) * (1 + (k - 1) * r))
            ),
        },
        "late: s_inf",
    ),
}

# Proofs of all sizes that are written out at some besides, or have a counter-example at one.
CONFIRMED = (
    "concentration",
    "gram",
    "lemma1",
    "lemma6",
    "lemma8_9",
    "slowdown",
    "theorem1",
    "theorem5",
)
