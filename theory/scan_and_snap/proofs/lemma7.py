"""Lemma 7, (46)-(49): the steps h* stay above the flow h, by no more than eta_Y/M.

The paper has 2 eta_Y/M. Steps and flow have the rate r(h) = eta_Y/(M - 1 + exp(M h)) (Lemmas 5 and 6). The expressions
decide the inequalities between rates that the argument in ``steps`` uses, and show that the bound is sharp.
"""

from __future__ import annotations

import sympy as sp

from theory.scan_and_snap.proofs import lemma6
from theory.symbolic import Claim, Derivation

ETA, X = sp.symbols("eta_Y x", positive=True)
OTHERS = sp.Symbol("m", positive=True)  # M - 1
M = OTHERS + 1


def bound(m: sp.Expr, eta: sp.Expr) -> sp.Expr:
    """Largest possible h* - h."""
    return eta / m


def small_rate_gap(m: sp.Expr, eta: sp.Expr, fraction: sp.Expr) -> sp.Expr:
    """h* - h to first order in eta_Y where the rate has fallen to ``fraction`` of its first value."""
    return eta * fraction * sp.log(1 / fraction) / (2 * m)


def derive(*, bound: Claim = bound, small_rate_gap: Claim = small_rate_gap) -> Derivation:
    """The inequalities behind Lemma 7 (a), and the gap for very large and very small learning rates."""
    # exp(M h) = 1 + a, and 1 + a + b after growth.
    a, b = sp.symbols("a b", nonnegative=True)
    h = sp.Symbol("h", positive=True)
    power = sp.Symbol("y", positive=True)
    rate = lemma6.rate(M, h, ETA).subs(sp.exp(M * h), power)
    now, later = rate.subs(power, 1 + a), rate.subs(power, 1 + a + b)

    # One step from 0, eta_Y as a function of the margin x that the flow reaches: (45) at t = 1.
    eta = (sp.exp(X) + OTHERS * X - 1) / M
    first_gap = (eta - X) / M

    vanishing = {
        "x of the first step": lemma6.implicit(M, X / M, eta, 1),
        "x exp(-x) at infinity": sp.limit(X * sp.exp(-X), X, sp.oo),
        "first gap over the bound, eta_Y -> infinity": _limit_of_first_gap(first_gap / bound(M, eta)) - 1,
    }
    vanishing.update(_small_rate(small_rate_gap))
    return Derivation(
        statement="Lemma 7",
        vanishing=vanishing,
        signed={
            "the rate falls with h": (now - later, ">= 0"),
            "one increment is at most the bound": (bound(M, ETA) - now, ">= 0"),
        },
        steps=(
            r"$r(h) = \eta_Y/(M-1+e^{Mh})$ falls with h. Connect $h^*(0), h^*(1), \dots$ by straight lines: on line s"
            r" the slope is $r(h^*(s-1)) \ge r$ at the present value, so that the line stays above the solution h.",
            r"If $h(s) \le h^*(s-1)$, then h grows in step s at a rate of at least $r(h^*(s-1))$: the gap does not"
            r" widen.",
            r"If not, the gap at s is below $h^*(s) - h^*(s-1) = r(h^*(s-1)) \le r(0) = \eta_Y/M$.",
            r"By induction $0 \le h^* - h \le \eta_Y/M$ at all steps, half of the printed bound.",
            r"It cannot be improved: after one step the gap is $(\eta_Y - Mh(1))/M$, and $Mh(1)/\eta_Y \to 0$ for"
            r" $\eta_Y\to\infty$.",
            r"$\eta_Y \to 0$: the gap $\delta$ obeys $\delta' = r'(h)\delta - \frac12 r r'$ to first order, solved by"
            r" $\delta = \frac12 r\ln(r(0)/r)$, which is largest, $\eta_Y/(2eM)$, where $r = r(0)/e$.",
        ),
        scope=r"all $M > 1$ and $\eta_Y > 0$; the gap for small $\eta_Y$ to leading order",
        sizes={},
        prose=(
            "the steps joined by straight lines stay above the flow, by comparison of rates",
            "induction over the steps",
            "small eta_Y: the equation of the gap to first order",
        ),
    )


def _limit_of_first_gap(ratio):
    """Limit for x -> infinity (eta_Y -> infinity), with exp(-x) and x exp(-x) as small quantities."""
    small, product = sp.symbols("u v", positive=True)
    scaled = sp.expand(sp.numer(sp.together(ratio)) * sp.exp(-X)) / sp.expand(sp.denom(sp.together(ratio)) * sp.exp(-X))
    scaled = scaled.subs(X * sp.exp(-X), product).subs(sp.exp(-X), small)
    return sp.cancel(scaled.subs({small: 0, product: 0}))


def _small_rate(small_rate_gap):
    """The leading gap solves its equation, starts at 0 and peaks where the rate has fallen by e."""
    h, fraction = sp.symbols("h rho", positive=True)
    rate = lemma6.rate(M, h, ETA)
    start = rate.subs(h, 0)
    gap = small_rate_gap(M, ETA, rate / start)
    # delta' = (d delta/dh) r along the flow. One step of (33) is r; the flow does r + r r'/2 + ... in the same time.
    equation = sp.diff(gap, h) * rate - sp.diff(rate, h) * gap + rate * sp.diff(rate, h) / 2
    height = small_rate_gap(M, ETA, fraction)
    return {
        "gap to first order": equation,
        "gap at the start": gap.subs(h, 0),
        "gap is largest after a fall by e": sp.diff(height, fraction).subs(fraction, sp.exp(-1)),
        "largest gap": height.subs(fraction, sp.exp(-1)) - ETA / (2 * sp.E * M),
    }
