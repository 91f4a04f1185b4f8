"""Wrong claims that the proofs must refute: module, claims, and how the name of an entry that must fail begins."""

import sympy as sp
from yzflow_beyond_scan_and_snap.proofs import (
    changed,
    finite_sequences,
    late_exponent,
    late_full_flow,
    late_larger_start,
    late_start,
    transition,
    true_gradient,
)

MISTAKES = {
    "Finite sequences: without the covariance's half": (
        finite_sequences,
        {"drift": lambda *a: 2 * finite_sequences.drift(*a)},
        "order 1/T: half",
    ),
    "Finite sequences: logits of zero for any": (
        finite_sequences,
        {"drift": lambda *a: finite_sequences.drift(*a[:7])},
        "order 1/T: half",
    ),
    "Finite sequences: a rare token's sign": (
        finite_sequences,
        {"own_drift": lambda p, s, t: finite_sequences.own_drift(p, s, t) + 2 * p / s},
        "order 1/T: of the class's own",
    ),
    "Finite sequences: the remainder of another order": (
        finite_sequences,
        {"remainder": lambda power, y: finite_sequences.remainder(power, y) * (1 + y)},
        "bounds: remainder",
    ),
    "Finite sequences: c is largest at the largest x": (
        finite_sequences,
        {"remainder": lambda power, y: finite_sequences.remainder(power, 1 / y)},
        "bounds: largest",
    ),
    "Finite sequences: the other tokens' own norm": (
        finite_sequences,
        {"rare_limit": lambda along, square: -along / square ** sp.Rational(3, 2)},
        "rare: the limit",
    ),
    "Finite sequences: a rare token gains": (
        finite_sequences,
        {"rare_limit": lambda along, square: -finite_sequences.rare_limit(along, square)},
        "rare: it loses",
    ),
    "late_full_flow: z' without the other tokens": (
        late_full_flow,
        {
            "rates": lambda m, k, c, d, A, B, C: (
                *late_full_flow.rates(m, k, c, d, A, B, C)[:3],
                late_full_flow.rates(m, k, c, d, A, B, sp.Integer(0))[3],
            )
        },
        "reduced: z', K = 2",
    ),
    "late_full_flow: A' without the other tokens": (
        late_full_flow,
        {
            "rates": lambda m, k, c, d, A, B, C: (
                late_full_flow.rates(k, k, c, d, A, B, C)[0],
                *late_full_flow.rates(m, k, c, d, A, B, C)[1:],
            )
        },
        "reduced: A'",
    ),
    "late_full_flow: Gamma without K": (
        late_full_flow,
        {"theory_rate": lambda m, k: m / (m - 1) ** 2},
        "theory: y",
    ),
    "late_full_flow: kappa inverted": (
        late_full_flow,
        {"ratio": lambda m, rho: 1 / late_full_flow.ratio(m, rho)},
        "frozen: at rest",
    ),
    "late_full_flow: orbit without distinct tokens' rise": (
        late_full_flow,
        {"orbit": lambda k, w, A: late_full_flow.orbit(k, w, A * sp.sqrt(k / (k + 1)))},
        "K = M: the orbit",
    ),
    "late_full_flow: a lead from the start on": (
        late_full_flow,
        {"lead": lambda k, u, d: (1 - d) * sp.exp(u) * (u - 1)},
        "ahead: beyond",
    ),
    "late_full_flow: a lead that shrinks": (
        late_full_flow,
        {"lead": lambda k, u, d: -late_full_flow.lead(k, u, d)},
        "ahead: the bound rises",
    ),
    "late_full_flow: another orbit for the theory": (
        late_full_flow,
        {"theory_rate": lambda m, k: late_full_flow.theory_rate(m, k) / m},
        "ahead: the theory's",
    ),
    "late_full_flow: exponent 1/2": (
        late_full_flow,
        {"exponent": lambda m, k: sp.Rational(1, 2)},
        "late: z at rest",
    ),
    "late_full_flow: theory flow without its logarithms": (
        late_full_flow,
        {"theory_time": lambda m, k, y: 1 / y / (2 * (1 + 1 / k))},
        "theory: y",
    ),
    "late_exponent: exponent K/M": (
        late_exponent,
        {"exponent": lambda m, k: k / m},
        "averages: exponent",
    ),
    "late_exponent: the pull without B": (
        late_exponent,
        {"pull": lambda m, k, kappa, ratio, lead: late_exponent.pull(m, k, kappa, ratio, sp.Integer(0))},
        "clock: fall of ln w",
    ),
    "late_exponent: C moves by the features' square": (
        late_exponent,
        {
            "rates": lambda m, k, c, d, A, B, C: (
                *late_full_flow.rates(m, k, c, d, A, B, C)[:2],
                c * late_full_flow.rates(m, k, c, d, A, B, C)[2],
                late_full_flow.rates(m, k, c, d, A, B, C)[3],
            )
        },
        "averages: C over A",
    ),
    "late_exponent: twice the excess": (
        late_exponent,
        {"most_excess": lambda m: 2 * m},
        "trap: (1), kappa above 1",
    ),
    "late_exponent: no excess": (
        late_exponent,
        {"most_excess": lambda m: sp.Integer(0)},
        "trap: (2), a larger excess is not pushed up",
    ),
    "late_exponent: the ledge as high as at rest": (
        late_exponent,
        {"ledge": lambda m, k: 1 + (k - 1) / (m - k)},
        "trap: (3), at the foot",
    ),
    "late_exponent: the ledge at 1": (late_exponent, {"ledge": lambda m, k: sp.Integer(1)}, "trap: (1), the foot is"),
    "late_exponent: half the margin": (
        late_exponent,
        {"least_margins": lambda m, k: ((m + 1) / 2, 3 * k)},
        "trap: (2), a larger excess",
    ),
    "late_exponent: a margin of K": (
        late_exponent,
        {"least_margins": lambda m, k: (m + 1, k)},
        "trap: (1), kappa at the foot",
    ),
    "late_exponent: half the reach": (
        late_exponent,
        {"least_reach": lambda: late_exponent.least_reach() / 2},
        "trap: (3), above it",
    ),
    "late_exponent: R without its logarithm": (
        late_exponent,
        {"most_ratio": lambda m, k, y: late_exponent.pull(m, k, 2 + m * y, 0, 0) / (m - k)},
        "trap: (5), the bound of R",
    ),
    "late_exponent: the next order's sign": (
        late_exponent,
        {"next_terms": lambda m, k: (-late_exponent.next_terms(m, k)[0], late_exponent.next_terms(m, k)[1])},
        "next: the next order",
    ),
    "late_exponent: the slack without M - 1": (
        late_exponent,
        {"next_terms": lambda m, k: (late_exponent.next_terms(m, k)[0], (m - k) / (m - 1))},
        "next: the next order",
    ),
    "late_start: twice the start": (late_start, {"most_start": lambda: sp.Integer(2)}, "(3): f"),
    "late_start: a start of 11/10": (
        late_start,
        {
            "most_start": lambda: sp.Rational(11, 10),
            "least_along": lambda m, k: (m + sp.Rational(11, 10)) / (m + sp.Rational(11, 10) * k),
        },
        "(3): f, a small excess",
    ),
    "late_start: kappa above 2/3": (
        late_start,
        {"least_kappa": lambda: sp.Rational(2, 3), "most_drive": lambda m, k: (1 + 1 / m) * (m - k / 3)},
        "(4): it has no zero",
    ),
    "late_start: kappa above 2/5": (
        late_start,
        {"least_kappa": lambda: sp.Rational(2, 5)},
        "(1): kappa below 1",
    ),
    "late_start: twice the excess": (late_start, {"most_excess": lambda m: 2 * m}, "(1): kappa above 1"),
    "late_start: half the excess": (late_start, {"most_excess": lambda m: m / 2}, "(3): it falls where w stays"),
    "late_start: the drive without 1 + 1/M": (
        late_start,
        {"most_drive": lambda m, k: m - k / 2},
        "(5): the bound",
    ),
    "late_start: twice the drive": (
        late_start,
        {"most_drive": lambda m, k: 2 * late_start.most_drive(m, k)},
        "(4): it has no zero",
    ),
    "late_start: R + b above 1": (late_start, {"least_along": lambda m, k: sp.Integer(1)}, "integrals: R + b"),
    "late_start: R + b above 1/K only": (
        late_start,
        {"least_along": lambda m, k: 1 / k},
        "(3): f, a small excess",
    ),
    "late_start: half the lead": (
        late_start,
        {"most_lead": lambda m, k: late_start.most_lead(m, k) / 2},
        "integrals: b",
    ),
    "late_start: a lead of 1": (late_start, {"most_lead": lambda m, k: sp.Integer(1)}, "(5): R + b grows"),
    "late_start: the pull without B": (
        late_start,
        {"pull": lambda m, k, kappa, ratio, lead: late_exponent.pull(m, k, kappa, ratio, sp.Integer(0))},
        "motion: w^2",
    ),
    "late_start: C moves by the features' square": (
        late_start,
        {
            "rates": lambda m, k, c, d, A, B, C: (
                *late_full_flow.rates(m, k, c, d, A, B, C)[:2],
                c * late_full_flow.rates(m, k, c, d, A, B, C)[2],
                late_full_flow.rates(m, k, c, d, A, B, C)[3],
            )
        },
        "integrals: C by w",
    ),
    "late_larger_start: w(0)^2 of 1/3": (
        late_larger_start,
        {"most_starts": lambda k: (sp.Rational(1, 3), 1 / k)},
        "(4): f, a large excess, more x",
    ),
    "late_larger_start: w(0)^2 of 1/2": (
        late_larger_start,
        {"most_starts": lambda k: (sp.Rational(1, 2), 1 / k)},
        "(3): f does not raise delta, small x",
    ),
    "late_larger_start: K w(0)^2 of 2": (
        late_larger_start,
        {"most_starts": lambda k: (sp.Rational(1, 8), 2 / k)},
        "(4): R + b is at least (1 + y)/2",
    ),
    "late_larger_start: kappa above 3/4": (
        late_larger_start,
        {"least_kappa": lambda: sp.Rational(3, 4)},
        "(6): the bound is G",
    ),
    "late_larger_start: kappa above 1/4": (
        late_larger_start,
        {"least_kappa": lambda: sp.Rational(1, 4)},
        "(1): kappa below 1",
    ),
    "late_larger_start: half the lag": (
        late_larger_start,
        {"most_lag": lambda: sp.Rational(1, 2)},
        "(3): f does not raise delta, small x",
    ),
    "late_larger_start: a lag of 3": (
        late_larger_start,
        {"most_lag": lambda: sp.Integer(3)},
        "(4): it falls where w stays",
    ),
    "late_larger_start: twice the excess": (
        late_larger_start,
        {"most_excess": lambda m: 2 * m},
        "(1): kappa above 1",
    ),
    "late_larger_start: twice the drive": (
        late_larger_start,
        {"most_drive": lambda m, k: 2 * m - k},
        "(5): the largest x",
    ),
    "late_larger_start: R + b above 1": (
        late_larger_start,
        {"least_along": lambda k, y: sp.Integer(1)},
        "integrals: R + b",
    ),
    "late_larger_start: R + b above 1/K": (
        late_larger_start,
        {"least_along": lambda k, y: 1 / k},
        "(4): R + b is at least",
    ),
    "late_larger_start: half the lead": (
        late_larger_start,
        {"most_lead": lambda k, y: y / (2 + 2 * k * y)},
        "integrals: b",
    ),
    "late_larger_start: the pull without B": (
        late_larger_start,
        {"pull": lambda m, k, kappa, ratio, lead: late_exponent.pull(m, k, kappa, ratio, sp.Integer(0))},
        "motion: w^2",
    ),
    "late_larger_start: C moves by the features' square": (
        late_larger_start,
        {
            "rates": lambda m, k, c, d, A, B, C: (
                *late_full_flow.rates(m, k, c, d, A, B, C)[:2],
                c * late_full_flow.rates(m, k, c, d, A, B, C)[2],
                late_full_flow.rates(m, k, c, d, A, B, C)[3],
            )
        },
        "motion: R + b",
    ),
    "true_gradient: beta of the modified flow": (
        true_gradient,
        {"early_beta": lambda m: m / (m - 1) ** 2},
        "early: beta",
    ),
    "true_gradient: xi without the class probability": (
        true_gradient,
        {"early_xi": lambda m, k, s: k * true_gradient.early_xi(m, k, s)},
        "early: xi_n",
    ),
    "true_gradient: a common token gains": (
        true_gradient,
        {"early_common": lambda *a: -true_gradient.early_common(*a)},
        "early: a common",
    ),
    "true_gradient: delta without H": (true_gradient, {"most_short": lambda m, own: 1 / m}, "late: largest"),
    "true_gradient: M - 1 for M": (
        true_gradient,
        {"least_late": lambda m, short: true_gradient.least_late(m - 1, short)},
        "late: Cauchy",
    ),
    "true_gradient: sign of a": (
        true_gradient,
        {"even_xi": lambda m, k, q, b, h, a: true_gradient.even_xi(m, k, q, b, h, -a)},
        "equal overlaps: xi_n",
    ),
    "true_gradient: three classes, M - 1 for M": (
        true_gradient,
        {"three_sum": lambda g, h, x, z: 2 * (g * x + h * z)},
        "three classes: sum",
    ),
    "true_gradient: three classes, the other order": (
        true_gradient,
        {"three_xi": lambda less, more, total, lead: true_gradient.three_xi(less, more, total, -lead)},
        "three classes: xi_n",
    ),
    "changed: sign of the smoothing": (
        changed,
        {"smoothed_miss": lambda m, x, eps: changed.smoothed_miss(m, x, -eps)},
        "label smoothing: residual at the class",
    ),
    "changed: the bound without 1 - eps": (
        changed,
        {"smoothed_bound": lambda m, eps: sp.log(1 + m / eps)},
        "label smoothing: no residual at the bound",
    ),
    "changed: half the second term of the time": (
        changed,
        {"smoothed_time": lambda m, x, eps: changed.smoothed_time(m, x, eps) / 2},
        "label smoothing: implicit form along the flow",
    ),
    "changed: gamma with hard targets": (
        changed,
        {"smoothed_signal": lambda m, x, eps: changed.smoothed_signal(m, x, 0 * eps)},
        "label smoothing: gamma",
    ),
    "changed: decay in the class's own steps only": (
        changed,
        {"decayed_rate": lambda m, x, k, eta, decay: changed.decayed_rate(m, x, k, eta, decay / k)},
        "weight decay: rate",
    ),
    "changed: (128) under weight decay": (
        changed,
        {"decayed_accumulated": lambda m, x, q, k, eta, eta_z, decay: changed.accumulated(m, x, k, eta, eta_z)},
        "weight decay: Gamma along the flow",
    ),
    "changed: gamma falls to zero": (
        changed,
        {"last_signal": lambda m, x, k, decay: 0 * x},
        "weight decay: gamma at the fixed point",
    ),
    "changed: B without 1/4": (
        changed,
        {"last_exponent": lambda signal, decay, c0: 4 * changed.last_exponent(signal, decay, c0)},
        "weight decay: fixed point of attention",
    ),
    "changed: eta_Z/tau": (changed, {"cooled_rate": lambda eta, tau: eta / tau}, "temperature"),
    "changed: the clock of a decay from the start": (
        changed,
        {"schedule_clocks": lambda t, w, s, a: (t**2 / w, changed.schedule_clocks(t, w, s, a)[1])},
        "schedule: clock of a warm-up",
    ),
    "changed: momentum at once": (
        changed,
        {"momentum_clock": lambda t, mu: t / (1 - mu)},
        "momentum: velocity at the start",
    ),
    "changed: momentum of steps at once": (
        changed,
        {"momentum_steps": lambda n, mu: n / (1 - mu)},
        "momentum: first step",
    ),
    "transition: half of t*": (
        transition,
        {"peak_time": lambda m, k, e, u: transition.peak_time(m, k, e, u) / 2},
        "t* by (45)",
    ),
    "transition: u*": (transition, {"peak_margin": lambda w: w}, "d gamma/dt at u*"),
    "transition: t* without K": (transition, {"peak_time": lambda m, k, e, u: transition.peak_time(m, 1, e, u)}, "t*"),
    "transition: peak": (transition, {"peak": lambda m, w: w}, "gamma at the peak"),
}
CONFIRMED = ("late_full_flow",)
