"""Lemma 6, (44)-(45): the continuous decoder growth h, its implicit solution and the closed form.

Nothing is integrated: the implicit form is differentiated along (44), and the closed form is put into (44).
"""

from __future__ import annotations

import sympy as sp

from theory.scan_and_snap.proofs import lemma5
from theory.symbolic import Claim, Derivation, Scalar

ETA, T = sp.symbols("eta_Y t", positive=True)
OTHERS = sp.Symbol("m", positive=True)  # M - 1
M = OTHERS + 1


def rate(m: sp.Expr, h: sp.Expr, eta: Scalar) -> sp.Expr:
    """(44): dh/dt."""
    return eta / (m - 1 + sp.exp(m * h))


def implicit(m: Scalar, h: sp.Expr, eta: Scalar, t: Scalar) -> sp.Expr:
    """(45): zero along the solution."""
    return sp.exp(m * h) + (m - 1) * m * h - m * eta * t - 1


def omega_argument(m: sp.Expr, eta: sp.Expr, t: sp.Expr) -> sp.Expr:
    """The argument of Wright's omega, A - ln(M - 1) with A = (M eta_Y t + 1)/(M - 1)."""
    return (m * eta * t + 1) / (m - 1) - sp.log(m - 1)


def derive(*, rate: Claim = rate, implicit: Claim = implicit, omega_argument: Claim = omega_argument) -> Derivation:
    """(45) and the closed form M h = ln((M - 1) omega(A - ln(M - 1))), for symbolic M, eta_Y, t."""
    growth = sp.Function("h")(T)
    h = sp.Symbol("h", real=True)
    along = sp.diff(implicit(M, growth, ETA, T), T).subs(sp.Derivative(growth, T), rate(M, growth, ETA))
    slope = sp.diff(implicit(M, h, ETA, T), h)

    # w + ln w = argument defines omega; differentiating this equation gives its derivative.
    w = sp.Symbol("w", positive=True)
    closed = sp.log((M - 1) * w) / M
    # In (45) the time enters through M eta_Y t + 1 = (M - 1)(w + ln w + ln(M - 1)): solve the argument for t.
    time = sp.solve(sp.Eq(omega_argument(M, ETA, T), w + sp.log(w)), T)[0]
    omega_rate = sp.diff(omega_argument(M, ETA, T), T) / (1 + 1 / w)
    start = omega_argument(M, ETA, sp.Integer(0))
    vanishing = {
        "(45) along (44)": along.subs(growth, h),
        "(45) at t = 0, h = 0": implicit(M, sp.Integer(0), ETA, sp.Integer(0)),
        "closed form in (45)": implicit(M, closed, ETA, time),
        "closed form in (44)": sp.diff(closed, w) * omega_rate - rate(M, closed, ETA),
        # h(0) = 0 is w = 1/(M - 1).
        "closed form at t = 0": start - (1 / (M - 1) + sp.log(1 / (M - 1))),
        "(44) is one step of (33) per unit of time": rate(M, h, ETA) - (lemma5.step(M, h, ETA) - h),
    }
    return Derivation(
        statement="Lemma 6",
        vanishing=vanishing,
        signed={"(45) has one root h": (slope, "> 0"), "omega has one value": (1 + 1 / w, "> 0")},
        steps=(
            r"Separate (44): $(M - 1 + e^{Mh})\,dh = \eta_Y dt$; with $h(0) = 0$: $e^{Mh} + (M-1)Mh = M\eta_Y t + 1$.",
            r"Put $w = e^{Mh}/(M-1)$ and divide by $M - 1$: $w + \ln w = A - \ln(M-1)$, $A = (M\eta_Y t + 1)/(M-1)$.",
            r"The left side increases in w: $w = \omega(A - \ln(M-1))$ and $Mh = \ln((M-1)w)$.",
            r"Check: $\omega' = \omega/(1+\omega)$, so that $\dot h = \frac{\dot A}{M(1+w)} = \frac{\eta_Y}{(M-1)(1+w)}"
            r" = \frac{\eta_Y}{M-1+e^{Mh}}$.",
        ),
        scope=r"all $M > 1$, $\eta_Y > 0$, $t \ge 0$",
        sizes={},
        prose=("(44) has one solution",),
    )
