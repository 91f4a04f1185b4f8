"""Theorem 3, (11)-(12), (108)-(117): the relative gain of distinct tokens, and bounds on the growth factor.

Start: Theorem 2 (a), zdot_l = (eta_Z/K) f_nl^2 xi_n, and Lemma 2, f_nl = P(l|n) exp(z_l)/||c~_n||.
"""

from __future__ import annotations

import sympy as sp

from theory.scan_and_snap.proofs import theorem2
from theory.symbolic import Claim, Derivation, Scalar, joined
from theory.symbolic.indexed import entries, index, size, total
from theory.symbolic.model import positive


def relative_gain(initial: Scalar, growth: sp.Expr) -> sp.Expr:
    """(11): r_{l/l'|n}(t) from r(0) and the growth factor chi_l = exp(2 (z_l(t) - z_l(0))) of the first token."""
    return initial * growth


def bounds(f0_squared: sp.Expr, exponent: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    """(12): lower and upper bound of chi of the dominant token, with B_n = (eta_Z/K) int xi_n."""
    return sp.exp(2 * f0_squared * exponent), sp.exp(2 * exponent)


def exponent_rate(probability: sp.Expr, xi: sp.Expr) -> sp.Expr:
    """B_n' in units of eta_Z: the class probability, which (12) as printed leaves out, times xi_n."""
    return probability * xi


def derive(
    *, relative_gain: Claim = relative_gain, bounds: Claim = bounds, exponent_rate: Claim = exponent_rate
) -> Derivation:
    """(11) by differentiation along the dynamics, monotone attention on the dominant token, and (12)."""
    vanishing, signed = joined(_gain(relative_gain), _bounds(bounds, exponent_rate), _dominant())
    return Derivation(
        statement="Theorem 3",
        vanishing=vanishing,
        signed=signed,
        steps=(
            r"Two distinct tokens of n: $\dot z_l/f_{nl}^2 = \dot z_{l'}/f_{nl'}^2$ and $f_{nl}\propto P(l|n)e^{z_l}$"
            r" give $P(l|n)^{-2} d(e^{-2z_l}) = P(l'|n)^{-2} d(e^{-2z_{l'}})$.",
            r"So $D = P(l|n)^{-2}e^{-2z_l} - P(l'|n)^{-2}e^{-2z_{l'}}$ is constant, and $r_{l/l'|n} = -P(l|n)^2"
            r" e^{2z_l} D$, which is (11).",
            r"$\dot f_0/f_0 = \dot z_0 - \sum_k f_k^2\dot z_k$, the sum over all tokens of n. With $\sum_k f_k^2 = 1$,"
            r" distinct tokens $i$ with $f_i^2 \le f_0^2$ and common ones $c$ that fall at $v_c$: $\dot f_0/f_0 ="
            r" p_n\xi_n\sum_i f_i^2(f_0^2 - f_i^2) + \sum_c (p_n\xi_n f_0^2 + v_c) f_c^2 \ge 0$.",
            r"(11) with $\chi_l > 0$ keeps the sign of $r$, so that token 0 stays dominant.",
            r"$d\ln\chi_0/dB_n = 2 f_0^2$ lies between $2 f_0(0)^2$ and 2. Integrate from $B_n = 0$, $\chi_0 = 1$.",
        ),
        scope=r"any numbers of distinct and common tokens, any $P(\cdot|n)$ and $z$",
        sizes={},
        prose=("rates are integrated from the start, where chi is 1",),
    )


def _gain(relative_gain):
    """d/dt of both sides of (11), and both sides at t = 0."""
    p, p_other, xi, length = positive("p p' xi rho")
    z, z_other = sp.symbols("z z'", real=True)
    start, start_other = sp.symbols("z_0 z'_0", real=True)
    f, f_other = p * sp.exp(z) / length, p_other * sp.exp(z_other) / length
    # The norm cancels from the ratio, and its motion with it.
    gain = (f / f_other) ** 2 - 1
    weight = sp.Symbol("P_n", positive=True)
    rate = theorem2.distinct_rate(weight, f, xi)
    rate_other = theorem2.distinct_rate(weight, f_other, xi)
    initial = gain.subs({z: start, z_other: start_other})
    growth = sp.exp(2 * (z - start))
    quotient = gain / relative_gain(1, growth)
    along = sp.diff(quotient, z) * rate + sp.diff(quotient, z_other) * rate_other
    return {
        "(11) is conserved": along,
        "(11) at the start": (gain - relative_gain(initial, growth)).subs({z: start, z_other: start_other}),
    }


def _bounds(bounds, exponent_rate):
    """(12) from d ln chi/dB = 2 f^2 and f(0)^2 <= f^2 <= 1, by comparison of rates."""
    B, rest, risen = sp.symbols("B e a", nonnegative=True)
    xi, weight = positive("xi P_n")
    z = sp.Symbol("z", real=True)
    f = sp.Symbol("f", positive=True)
    # ln chi = 2 (z - z_0) and dB_n/dt = P_n xi, with P_n the class probability.
    rate = sp.diff(2 * z, z) * theorem2.distinct_rate(weight, f, xi) / exponent_rate(weight, xi)
    low = sp.Symbol("f_0^2", positive=True)
    lower, upper = bounds(low, B)
    log_low, log_up = (sp.expand_log(sp.log(bound), force=True) for bound in (lower, upper))
    # f^2 = f(0)^2 + a with a >= 0 (monotone), and 1 = f^2 + e with e >= 0 (unit norm).
    slack = {
        "lower bound rises slower": rate.subs(f, sp.sqrt(low + risen)) - sp.diff(log_low, B),
        "upper bound rises faster": sp.diff(log_up, B) - rate,
    }
    signed = {
        "lower bound rises slower": (sp.expand(slack["lower bound rises slower"]), ">= 0"),
        "upper bound rises faster": (sp.expand(slack["upper bound rises faster"].subs(f, sp.sqrt(1 - rest))), ">= 0"),
    }
    vanishing = {
        "lower bound starts at 1": lower.subs(B, 0) - 1,
        "upper bound starts at 1": upper.subs(B, 0) - 1,
        "d ln chi/dB": rate - 2 * f**2,
        # The upper bound is sharp: a token with all attention of its class follows it.
        "upper bound is reached with all attention": sp.diff(log_up, B) - rate.subs(f, 1),
        "lower bound is reached while f stands still": sp.diff(log_low, B) - rate.subs(f, sp.sqrt(low)),
    }
    return vanishing, signed


def _dominant():
    """Rate of f_0 from the quotient P(l|n) exp(z_l)/norm, against a form with an evident sign.

    Token 0 is one of D distinct tokens i, with f_i^2 <= f_0^2; C common ones c fall at the rates v_c.
    """
    i, j, first = (index(name, size("D")) for name in ("i", "j", "0"))
    c, d = index("c", size("C")), index("d", size("C"))
    p, q, fall = (entries(name, positive=True) for name in ("p", "q", "v"))
    z, y = entries("z"), entries("y")
    xi, weight = positive("xi P_n")
    norm = sp.sqrt(total((p[j] * sp.exp(z[j])) ** 2, j) + total((q[d] * sp.exp(y[d])) ** 2, d))

    def distinct(token):
        return p[token] * sp.exp(z[token]) / norm

    def common(token):
        return q[token] * sp.exp(y[token]) / norm

    attention = distinct(first)
    by_distinct = sp.diff(attention, z[i]) * theorem2.distinct_rate(weight, distinct(i), xi)
    rate = total(by_distinct, i) - total(sp.diff(attention, y[c]) * fall[c], c)

    # Squares of f: s_0 of token 0, s_i of a distinct one with s_0 = s_i + a_i, s_c of a common one.
    def short(own, of_distinct, distance, of_common, falls):
        """Contributions of i and c to the rate of ln f_0: each is >= 0."""
        return weight * xi * of_distinct * distance, (weight * xi * own + falls) * of_common

    own = attention**2
    by_i, by_c = short(own, distinct(i) ** 2, own - distinct(i) ** 2, common(c) ** 2, fall[c])
    vanishing = {"rate of the dominant token's attention": rate - attention * (total(by_i, i) + total(by_c, c))}
    s_0, s_i, s_c, falls = positive("s_0 s_i s_c v_c")
    one, other = short(s_0, s_i, sp.Symbol("a_i", nonnegative=True), s_c, falls)
    signed = {
        "attention on the dominant token grows: distinct tokens": (one, ">= 0"),
        "attention on the dominant token grows: common tokens": (other, ">= 0"),
    }
    return vanishing, signed
