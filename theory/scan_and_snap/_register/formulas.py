r"""Formulas of the statements, printed from the proofs' claims: the register shows the very formula that is proved.

Constants in capitals are LaTeX; those in small letters are plain text, for sentences.
"""

from __future__ import annotations

import sympy as sp

from theory.scan_and_snap import centred, residual
from theory.scan_and_snap.proofs import (
    approximations,
    concentration,
    gram,
    initial_values,
    layer_norm,
    lemma4,
    lemma7,
    lemma8_9,
    remark2,
    slowdown,
    theorem1,
    theorem2,
    theorem3,
    theorem4,
    theorem5,
)
from theory.symbolic import Claim
from theory.symbolic.indexed import index
from theory.symbolic.printing import plain, tex

_OWN = r"\sum_{n\in\psi^{-1}(m)}"  # over the classes of a query


def _entry(pattern: str) -> Claim:
    """A function of indices: the symbol that has their names."""
    return lambda *places: sp.Symbol(pattern % tuple(str(place.label) for place in places))


def _uniform(place: sp.Idx) -> sp.Expr:
    """The probability of a class."""
    return 1 / sp.Symbol("K")


def _pull(rate: Claim, *entries: str, dot: str) -> str:
    """A claim of dz_ml/dt, by the entries and the product of features; its own names of two classes are n' and o'."""
    printed = tex(
        lambda eta_z, gamma: (
            eta_z
            * rate(
                *map(_entry, entries),
                lambda *_: sp.Symbol(dot),
                lambda *_: sp.Symbol(r"\beta_{nn'}"),
                gamma,
                _uniform,
                lambda _: sp.Integer(1),
            )
        ),
        "eta_Z",
        "gamma",
    )
    renamed = printed.replace("n'l", "nl").replace("o'l", "n'l").replace(r"o' \ne n'", r"n' \ne n")
    return renamed.replace(r"\sum_{n'}", _OWN)


# The decoder.
LEMMA_7 = tex(lemma7.bound, "M", "eta_Y", small=True)
lemma_7 = plain(lemma7.bound, "M", "eta_Y")
lag_enough = plain(remark2.enough)
LAG = tex(lambda log: remark2.late_slope() * log, r"\ln(\eta_Y s)")
CROSSING_RANGE = r"c' \in \left({}, {}\right)".format(*tex(lemma8_9.crossing_range))
UPPER_EXCESS = tex(lambda m, c: lemma8_9.upper_excess(m, c), "M", "c'")
_LOWER = tex(lambda m: lemma8_9.lower_excess(m), "M")
LOWER_EXCESS = rf"\omega_0 \sim {_LOWER}"
lower_excess = plain(lemma8_9.lower_excess, "M")
EARLY_GAMMA = tex(lambda k, eta, t: lemma8_9.time_bound(eta * t / k), "K", "eta_Y", "t")
LATE_GAMMA = tex(lambda m, k, eta, t: lemma8_9.late_bound(m, eta * t / k), "M", "K", "eta_Y", "t")
early_gamma = plain(lambda k, eta, t: lemma8_9.time_bound(eta * t / k), "K", "eta_Y", "t")
late_gamma = plain(lambda m, k, eta, t: lemma8_9.late_bound(m, eta * t / k), "M", "K", "eta_Y", "t")

LAG_ENOUGH = tex(remark2.enough, small=True)
visits_needed = f"{float(concentration.needed()):.2f}"
VISITS_NEEDED = tex(concentration.needed)
RESIDUAL_GAP = tex(concentration.residual_gap, "eta_Y", "Delta")
LOG_RESIDUAL_GAP = tex(concentration.log_residual_gap, "M", "eta_Y", "Delta")
residual_gap = plain(concentration.residual_gap, "eta_Y", "Delta")
GROWTH_GAP = tex(concentration.growth_gap, "Delta", r"\bar N", small=True)
relative_bound = plain(lambda k, n, d: concentration.relative_bound(k, n, sp.log(2 * k / d)), "K", "N", "delta")
rounded_limit = plain(concentration.rounded_limit)
rounded_delta = plain(concentration.rounded_delta, "K")
rounded_logarithm = plain(concentration.rounded_logarithm)
ROUNDED_DELTA = tex(concentration.rounded_delta, "K", small=True)
ROUNDED_LOGARITHM = tex(concentration.rounded_logarithm)
sharp_bound = plain(theorem1.sharp_bound, "K")
sharp_difference = plain(gram.sharp_difference_bound, "|lambda_1|")
steps_needed = plain(theorem5.steps_needed, "K", "eta_Y", "eps", "M")
sigma_bound = plain(concentration.residual_gap, "eta_Y", "|N_n - Nbar|")
LATE_ELASTICITY = tex(concentration.late_elasticity)
RELATIVE_BOUND = tex(lambda k, n, d: concentration.relative_bound(k, n, sp.log(2 * k / d)), "K", "N", "delta")
DIFFERENCE = tex(gram.difference_bound, r"|\lambda_1|")
SHARP_DIFFERENCE = tex(gram.sharp_difference_bound, r"|\lambda_1|")
LATE_RESIDUAL = tex(theorem5.late_residual, "M", "K", "eta_Y", "t")
SIGMA_BOUND = tex(concentration.residual_gap, "eta_Y", r"|N_n - \bar N|")
STEPS_NEEDED = tex(theorem5.steps_needed, "K", "eta_Y", "epsilon", "M")
SIGNAL = (
    tex(
        lambda q_1, q_0: gram.beta(
            q_1, q_0, _entry(r"\theta_{%s}"), _entry("E'_{%s%s}"), index("n", gram.K), index("n'", gram.K)
        ),
        "q_1",
        "q_0",
    )
    .replace("q_0(", r"q_0\Big(")
    .removesuffix(")")
    + r"\Big)"
)
SLOWDOWN = tex(slowdown.slowdown, "M", "K", "rho")
FIRST_CORRECTION = tex(slowdown.first_correction, "M", "K", "rho", "eta_Y")
LATE_RATIO = tex(slowdown.late_ratio, "M", "K", "rho")

# Attention.
LEMMA_4 = _pull(lemma4.rate, "f_{%sl}", dot=r"f_n\cdot f_{n'}")
CENTRED_RATE = _pull(layer_norm.rate, r"\tilde f_{%sl}", r"\tfrac{c_{%sl}}{N_n}", dot=r"\tilde f_n\cdot\tilde f_{n'}")
DISTINCT_RATE = tex(lambda z, k, f, xi: z * theorem2.distinct_rate(1 / k, f, xi), "eta_Z", "K", "f_nl", "xi_n")
COMMON_RATE = (
    "-" + _OWN + tex(lambda z, k, f, xi: -z * theorem2.common_rate(1 / k, f, xi), "eta_Z", "K", "f_nl", "xi_n")
)
GAIN = tex(theorem3.relative_gain, "r_{l/l'|n}(0)", r"\chi_l(t)")
GROWTH_BOUNDS = r"{} \le \chi_{{l_0}}(t) \le {}".format(*tex(theorem3.bounds, "f_{nl_0}(0)^2", "B_n"))
EXPONENT_RATE = tex(lambda z, k, xi: z * theorem3.exponent_rate(1 / k, xi), "eta_Z", "K", "xi_n")
LEAD_THRESHOLD = tex(initial_values.threshold, "P(l|n)", "P(l'|n)")
LOSERS_STOP = tex(initial_values.stop, "q")
EXPONENT_NEEDED = tex(initial_values.exponent_needed, "r(0)", "r")
ACCUMULATED = tex(theorem4.accumulated, "M", "K", "eta_Y", "eta_Z", "h(t/K)")
BETA_RATIO = tex(approximations.beta_ratio, "M", "K", "rho")
SPEED_RATIO = tex(approximations.speed_ratio, "M", "K", "rho")
BETA_ERROR = tex(approximations.beta_error, "M", "K", "rho", small=True)
SPEED_ERROR = tex(approximations.speed_error, "M", "K", "rho", small=True)
DECAY = tex(approximations.decay, "K", "rho", "S_4", small=True)
MOVING_EXPONENT = tex(approximations.moving_exponent, r"\Gamma", "C_0", "kappa")
BRANCHES = tex(lambda *a: 4 * theorem4.accumulated(*a), "M", "K", "eta_Y", "eta_Z", "h(t/K)")
EXPONENT = tex(theorem4.exponent, r"\Gamma(t)", "C_0")
SPEED_CONSTANT = tex(theorem4.speed_constant, "K", "rho_0", "P_c")
START_CONSTANT = tex(theorem4.start_constant, "M", "K", "rho")
FULL_START_CONSTANT = tex(theorem4.full_start_constant, "M", "K", "rho")
LATE_MARGIN = tex(theorem4.late_margin, "K", "nu")
OWN_BETA = tex(residual.own_beta, "c", small=True)
LOCAL_SHARE = tex(residual.local_share, "Q", "c", small=True)
ONE_LOCAL_SHARE = tex(residual.one_local_share, "Q", "c", small=True)
LEAST_OVERLAP = tex(centred.least_overlap, "M", small=True)
BORDER = tex(centred.border, "M", "p", r"\|c\|^2")
DISTINCT_PUSH = tex(centred.distinct_push, "M", "c_nl", "kappa", "N_n^2")
COMMON_PULL = tex(layer_norm.common_pull, "M", "p_n", "p_n'", "e_n", small=True)

own_beta = plain(residual.own_beta, "c")
local_share = plain(residual.local_share, "Q", "c")
one_local_share = plain(residual.one_local_share, "Q", "c")
least_overlap = plain(centred.least_overlap, "M")
distinct_push = plain(centred.distinct_push, "M", "c_nl", "kappa", "N_n^2")
late_margin = plain(theorem4.late_margin, "K", "nu")
lag = plain(lambda log: remark2.late_slope() * log, "ln(eta_Y s)")
slowdown_factor = plain(slowdown.slowdown, "M", "K", "rho")
exponent = plain(theorem4.exponent, "Gamma", "C_0")
ACCUMULATED_BY_RATIO = tex(theorem4.accumulated_by_ratio, "M", "K", "nu", "h(t/K)")
DECODER_RATE_SIGN = tex(theorem4.decoder_rate_sign, "M", "x")


def branch_slopes() -> tuple[float, float]:
    """How far 4 Gamma is too large by the branches of (14) at their own ends t0' and t0, times ln M, M -> infinity."""
    early, late = (2 * float(gap) for gap in theorem4.branch_gaps())
    return early, late
