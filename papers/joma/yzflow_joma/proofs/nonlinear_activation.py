r"""Nonlinear activation, v' = (mu - v) e^{v^2/2}: the rate of ln(1/delta), its integral and its limit."""

from __future__ import annotations

import sympy as sp

from theory.symbolic import Claim, Derivation


def integrand(s: sp.Expr, mu: sp.Expr) -> sp.Expr:
    """The claim for dt/dv."""
    return sp.exp(-(s**2) / 2) / (mu - s)


def rate(v: sp.Expr) -> sp.Expr:
    """The claim for d ln(1/delta)/dt."""
    return sp.exp(v**2 / 2)


def ratio(first: sp.Expr, second: sp.Expr) -> sp.Expr:
    """The claim for the limit of ln(1/delta_j)/ln(1/delta_k)."""
    return sp.exp((first**2 - second**2) / 2)


def derive(*, integrand: Claim = integrand, rate: Claim = rate, ratio: Claim = ratio) -> Derivation:
    """Check of each claim along the flow."""
    v = sp.Symbol("v", real=True)
    mu, other = sp.symbols("mu_j mu_k", positive=True)
    moved = (mu - v) * sp.exp(v**2 / 2)
    return Derivation(
        "Nonlinear activation",
        {
            "integral": integrand(v, mu) * moved - 1,
            "rate": sp.diff(-sp.log(1 - v / mu), v) * moved - rate(v),
            "ratio": rate(mu) / rate(other) - ratio(mu, other),
            "early ratio": rate(sp.Integer(0)) - 1,
        },
        steps=(
            r"$dt = e^{-v^2/2}\,dv/(\mu - v)$.",
            r"$\frac{d}{dt}\ln\frac1\delta = \dot v/(\mu - v) = e^{v^2/2}$: one first, $e^{\mu^2/2}$ in the end.",
        ),
        scope="each entry by itself",
        sizes={},
        prose=("v rises to mu, so that the ratio of two integrals tends to that of their integrands (l'Hopital)",),
    )
