"""The exact peak of gamma, between scanning and snapping. Not in the paper, which brackets it in Theorem 1 (b).

gamma comes from Theorem 1 and h from Lemma 6, both as functions of the margin x = M h.
"""

from __future__ import annotations

import sympy as sp

from theory.scan_and_snap.proofs import lemma6, theorem1
from theory.symbolic import Claim, Derivation

ETA, K, X, W = sp.symbols("eta_Y K x w", positive=True)
OTHERS = sp.Symbol("m", positive=True)  # M - 1


def peak_margin(w: sp.Expr) -> sp.Expr:
    """u* = M h at the peak, 1 + W((M - 1)/e), as a function of the value w of Lambert's W."""
    return 1 + w


def peak_time(m: sp.Expr, k: sp.Expr, eta: sp.Expr, u: sp.Expr) -> sp.Expr:
    """t* from u*, in SGD steps of the whole run."""
    return k * (sp.exp(u) + (m - 1) * u - 1) / (m * eta)


def peak(m: sp.Expr, w: sp.Expr) -> sp.Expr:
    """gamma(t*) = (M - 1)/M W((M - 1)/e)."""
    return (m - 1) / m * w


def derive(*, peak_margin: Claim = peak_margin, peak_time: Claim = peak_time, peak: Claim = peak) -> Derivation:
    """d gamma/dt = 0 at u*, only there, and a maximum; its time and height."""
    m = OTHERS + 1
    # Class time is t/K, so that dx/dt = (M/K) dh/d(t/K).
    speed = m * lemma6.rate(m, X / m, ETA) / K
    gamma = theorem1.gamma(m, X / m)
    first = sp.diff(gamma, X) * speed
    second = sp.diff(first, X) * speed

    # w = W((M - 1)/e) is w exp(w) = (M - 1)/e: use w in place of M - 1, which covers every M > 1.
    by_w = {OTHERS: W * sp.exp(W + 1)}
    u = peak_margin(W)
    at_peak = {X: u}
    # The derivative has the sign of M - 1 - (x - 1) exp(x), which falls with x.
    deciding = OTHERS - (X - 1) * sp.exp(X)
    time = peak_time(m, K, ETA, u)
    vanishing = {
        "d gamma/dt at u*": first.subs(at_peak).subs(by_w),
        "sign of d gamma/dt": sp.diff(gamma, X) - OTHERS**2 / m * deciding / (OTHERS + sp.exp(X)) ** 2,
        "slope of the deciding term": sp.diff(deciding, X) + X * sp.exp(X),
        "t* by (45)": lemma6.implicit(m, u / m, ETA, time / K).subs(by_w),
        "gamma at the peak": (gamma.subs(at_peak) - peak(m, W)).subs(by_w),
    }
    signed = {
        "one peak: the deciding term falls": (-X * sp.exp(X), "< 0"),
        "d gamma/dt > 0 at the start": (first.subs(X, 0), "> 0"),
        "second derivative at u*": (sp.simplify(second.subs(at_peak).subs(by_w)), "< 0"),
    }
    return Derivation(
        statement="Transition time",
        vanishing=vanishing,
        signed=signed,
        steps=(
            r"With $x = Mh$: $\gamma = \frac{(M-1)^2}{M}\frac{x}{M-1+e^x}$, and $\dot x = \frac{M\eta_Y}{K(M-1+e^x)}"
            r" > 0$.",
            r"$d\gamma/dx$ has the sign of $M - 1 - (x-1)e^x$, which is positive at 0 and falls strictly: one zero.",
            r"$(x-1)e^{x-1} = (M-1)/e$ is $x = u^* = 1 + W((M-1)/e)$.",
            r"(45) at class time $t^*/K$: $t^* = K(e^{u^*} + (M-1)u^* - 1)/(M\eta_Y)$.",
            r"$e^{u^*} = (M-1)/(u^*-1)$ gives $\gamma(t^*) = \frac{M-1}{M}(u^*-1)$, without K and $\eta_Y$.",
        ),
        scope=r"all $M > 1$, $K$ and $\eta_Y$",
        sizes={},
        prose=("a slope that changes its sign once, from plus to minus, is that of one peak",),
    )
