r"""Formulas of the statements as the proofs decide them: LaTeX, printed from the claims."""

from __future__ import annotations

from theory.scan_and_snap.proofs import theorem4
from theory.symbolic.printing import tex
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

SHORT_DRIFT = tex(finite_sequences.drift, "q_l", "g_nl", *("S_1", "S_2", "S_3", "(q g)", "(q^2 g)"), "a_l", small=True)
OWN_DRIFT = tex(finite_sequences.own_drift, "P_l", "S_2", "S_3", small=True)
RARE_LIMIT = tex(finite_sequences.rare_limit, r"(aN'\!\cdot g_n)", r"\|aN'\|^2", small=True)
ACCUMULATED = tex(theorem4.accumulated, "M", "K", "eta_Y", "eta_Z", "h(t/K)")
PEAK_TIME = tex(transition.peak_time, "M", "K", "eta_Y", "u*")
PEAK_MARGIN = tex(transition.peak_margin, r"W\!\left(\tfrac{M-1}{e}\right)")
PEAK = tex(lambda m, u: transition.peak(m, u - 1), "M", "u*")
LATE_EXPONENT = tex(late_full_flow.exponent, "M", "K", small=True)
FROZEN_RATIO = tex(late_full_flow.ratio, "M", "rho", small=True)
ORBIT = tex(late_full_flow.orbit, "K", "w", "A")
LEAD_GROWS = tex(late_full_flow.lead, "K", "u", "d")
THEORY_TIME = tex(late_full_flow.theory_time, "M", "K", "y")
THEORY_GAMMA = tex(lambda m, k, g: late_full_flow.theory_rate(m, k) * g, "M", "K", r"\Gamma")
LATE_PULL = tex(late_exponent.pull, "M", "K", "kappa", "R", "b")
LATE_EXCESS = tex(late_exponent.most_excess, "M")
LATE_LEDGE = tex(late_exponent.ledge, "M", "K", small=True)
LATE_MARGINS = r"\max({}, {})".format(*tex(late_exponent.least_margins, "M", "K"))
LATE_MOST_RATIO = tex(late_exponent.most_ratio, "M", "K", "w^2")
LATE_REACH = tex(late_exponent.least_reach, small=True)
LATE_START = tex(late_start.most_start)
LATE_DRIVE = tex(late_start.most_drive, "M", "K")
LATE_LARGER_STARTS = r"\min({}, {})".format(*tex(late_larger_start.most_starts, "K", small=True))
LATE_LARGER_DRIVE = tex(late_larger_start.most_drive, "M", "K")
LATE_NEXT = r"x = {},\quad y = {}".format(*tex(late_exponent.next_terms, "M", "K"))
EARLY_BETA = tex(lambda m, k, eta, t: eta * t / k * true_gradient.early_beta(m), "M", "K", "eta_Y", "t", small=True)
EARLY_XI = tex(true_gradient.early_xi, "M", "K", 1) + r"\sum_{n'\ne n}f_n\cdot f_{n'}"
LEAST_LATE = tex(true_gradient.least_late, "M", "delta")
MOST_SHORT = tex(true_gradient.most_short, "M", "H_n(n)")
EVEN_XI = tex(true_gradient.even_xi, "M", "K", "q", "b", "h", "a")
DECAYED_RATE = tex(changed.decayed_rate, "M", "x", "K", "eta_Y", "lambda")
LAST_SIGNAL = tex(changed.last_signal, "M", "x_inf", "K", "lambda")
LAST_EXPONENT = tex(changed.last_exponent, "gamma_inf", "lambda", "C_0")
SMOOTHED_BOUND = tex(changed.smoothed_bound, "M", "epsilon")
COOLED_RATE = tex(changed.cooled_rate, "eta_Z", "tau", small=True)
WARM_UP, COSINE = tex(changed.schedule_clocks, "t", "w", "S", "a")
MOMENTUM_CLOCK = tex(changed.momentum_clock, "t", "mu")
MOMENTUM_STEPS = tex(changed.momentum_steps, "n", "mu")
