"""Lemma 5, (31)-(33): the steps of the modified decoder when class n is drawn every time, by induction.

M, eta_Y and h are symbols. A vector that is constant outside n has two distinct entries: entry n, and the entry of the
M - 1 other tokens. Row n of W moves by eta_Y (e_n - alpha_n) (Lemma 3).
"""

from __future__ import annotations

import sympy as sp
from sympy import KroneckerDelta

from theory.symbolic import Claim, Derivation
from theory.symbolic.indexed import index, size, total

ETA = sp.Symbol("eta_Y", positive=True)
OTHERS = sp.Symbol("m", positive=True)  # M - 1
M = OTHERS + 1


def zeta(m: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    """(31): entries of zeta_n = M/(M - 1) (e_n - 1/M) at n and elsewhere."""
    return m / (m - 1) * (1 - 1 / m), m / (m - 1) * (-1 / m)


def residual(m: sp.Expr, h: sp.Expr) -> sp.Expr:
    """(32): entries of e_n - alpha_n = (M - 1)/(M - 1 + exp(M h)) zeta_n, as the factor of zeta_n."""
    return (m - 1) / (m - 1 + sp.exp(m * h))


def step(m: sp.Expr, h: sp.Expr, eta: sp.Expr) -> sp.Expr:
    """(33): h*(s) from h*(s - 1)."""
    return h + eta / (m - 1 + sp.exp(m * h))


def derive(*, zeta: Claim = zeta, residual: Claim = residual, step: Claim = step) -> Derivation:
    """Base and step of the induction for symbolic M, by the two entries of a vector and by the whole vector."""
    h = sp.Symbol("h", nonnegative=True)
    at, off = zeta(M)
    w_at, w_off = (M - 1) * h * at, (M - 1) * h * off  # induction hypothesis (31)
    total = sp.exp(w_at) + OTHERS * sp.exp(w_off)
    r_at, r_off = 1 - sp.exp(w_at) / total, -sp.exp(w_off) / total
    vanishing = {
        "residual at n": r_at - residual(M, h) * at,
        "residual elsewhere": r_off - residual(M, h) * off,
        "step at n": w_at + ETA * r_at - (M - 1) * step(M, h, ETA) * at,
        "step elsewhere": w_off + ETA * r_off - (M - 1) * step(M, h, ETA) * off,
        "zeta sums to 0": at + OTHERS * off,
        # Base: W = 0, so that alpha is uniform: (36).
        "first step at n": ETA * (1 - 1 / M) - (M - 1) * step(M, sp.Integer(0), ETA) * at,
        "first step elsewhere": ETA * (0 - 1 / M) - (M - 1) * step(M, sp.Integer(0), ETA) * off,
    }
    vanishing.update(_whole_vectors(zeta, residual, step))
    return Derivation(
        statement="Lemma 5",
        vanishing=vanishing,
        signed={"h* grows": (step(M, h, ETA) - h, "> 0")},
        steps=(
            r"Base: W = 0 gives $\alpha = 1/M$ and $w_n(1) = \eta_Y (e_n - 1/M) = (M-1) h^*(1) \zeta_n$ with $h^*(1) ="
            r" \eta_Y/M$: the entries of (36), $\eta_Y(1 - 1/M)$ at n and $-\eta_Y/M$ elsewhere.",
            r"Hypothesis $w_n = (M-1) h \zeta_n$: its entries are $(M-1)h$ at n and $-h$ elsewhere.",
            r"Softmax: $1 - \alpha_{nn} = (M-1)/(M-1+e^{Mh})$ and $\alpha_{nj} = 1/(M-1+e^{Mh})$, so that $e_n -"
            r" \alpha_n = \frac{M-1}{M-1+e^{Mh}} \zeta_n$.",
            r"Adding $\eta_Y$ times it keeps the form, with $h + \eta_Y/(M-1+e^{Mh})$ in place of h.",
        ),
        scope=r"all $M > 1$, $\eta_Y > 0$ and $s$",
        sizes={},
        prose=("induction over s",),
    )


def _whole_vectors(zeta, residual, step):
    """One step of (8) on the full vector at a generic token, with softmax written as a sum over all tokens."""
    m, h = size("M"), sp.Symbol("h", nonnegative=True)
    j, l, n = index("j", m), index("l", m), index("n", m)
    at, off = zeta(m)

    def entry(token):
        return off + (at - off) * KroneckerDelta(n, token)

    def w(token):
        return (m - 1) * h * entry(token)

    left = KroneckerDelta(n, j) - sp.exp(w(j)) / total(sp.exp(w(l)), l)
    return {
        "whole vector: zeta_n = M/(M - 1) (e_n - 1/M)": entry(j) - m / (m - 1) * (KroneckerDelta(n, j) - 1 / m),
        "whole vector: residual": left - residual(m, h) * entry(j),
        "whole vector: step": w(j) + ETA * left - (m - 1) * step(m, h, ETA) * entry(j),
    }
