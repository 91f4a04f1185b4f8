"""The closed forms of the decoder and of B in balls: of numbers, of ranges of them, and along time.

The formulas are those of `theory.scan_and_snap.decoder` and `theory.scan_and_snap.attention`, written on the margin x =
M h, the root of exp(x) + (M - 1) x = tau + 1 with tau = M eta_Y t (45). A function takes balls of `flint.arb`, whose
radius may be that of a whole range, and returns a ball that holds every value. Where it says so, it takes a series, or
a `yzflow_enclose.Quantity`.
"""

from __future__ import annotations

import math
from typing import Any

from flint import arb, arb_series

# Steps of Newton's method in floats, from above on a convex increasing function, and in balls.
_FLOAT_STEPS, _BALL_STEPS = 60, 4


def _endpoint(tau: arb, others: arb) -> arb:
    """The root for thin balls, with ``others`` = M - 1 > 0; exactly zero at tau = 0."""
    if tau.is_zero():
        return arb(0)
    # Both are above the root: exp(x) >= 1 + x, and (M - 1) x >= 0.
    log = float((1 + tau).log().mid())
    x = min(float((tau / (others + 1)).mid()), log)
    for _ in range(_FLOAT_STEPS):
        scaled = math.exp(x - log)  # exp(x)/(1 + tau), which cannot overflow
        rest = float(others.mid()) / math.exp(min(log, 700.0))
        x -= (scaled + rest * x - 1) / (scaled + rest)
    found = arb(max(x, 0.0))
    for _ in range(_BALL_STEPS):
        odds = found.exp()
        found = (found - (odds + others * found - tau - 1) / (odds + others)).mid()
        found = found if found > 0 else arb(0)
    # The slope is at least M wherever x >= 0, so that the residual bounds the distance to the root.
    residual = found.exp() + others * found - tau - 1
    return found + arb(0, (residual / (others + 1)).abs_upper())


def margin(tau: arb, vocab_size: arb | int) -> arb:
    """x = M h after the scaled time tau = M eta_Y t, for every tau >= 0 and M >= 2 of the balls: (45).

    It grows with tau at fixed M and falls with M at fixed tau, so that two corners of the range bound it.
    """
    others = arb(vocab_size) - 1
    lowest, highest = _non_negative(tau.lower()), _non_negative(tau.upper())
    low, high = _endpoint(lowest, others.upper()), _endpoint(highest, others.lower())
    return low if tau.is_exact() and others.is_exact() else low.union(high)


def _non_negative(value: arb) -> arb:
    return value if value > 0 else arb(0)


def margin_series(tau: arb_series, vocab_size: int) -> arb_series:
    """x = M h along a series of tau: x' = tau'/(M - 1 + exp(x)), through `margin` at the first coefficient."""
    length = tau.prec
    first = margin(tau[0], vocab_size)
    x = arb_series([first], length)
    for _ in range(length):
        x = (tau.derivative() / (x.exp() + (vocab_size - 1))).integral() + first
    return x


def gamma(x: Any, vocab_size: Any) -> Any:
    """gamma = (M - 1)^2 h/(M - 1 + exp(M h)) of Theorem 1 at the margin x; x and M balls, or x a quantity."""
    others = vocab_size - 1
    return x * others * others / (x.exp() + others) / vocab_size


def gamma_integral(x: Any, vocab_size: Any, n_classes: Any, eta_y: Any, eta_z: Any) -> Any:
    """Gamma = eta_Z K (M - 1)^2 h^2/(2 eta_Y) at the margin x: (128)."""
    growth = x * (vocab_size - 1) / vocab_size
    return growth * growth * n_classes * eta_z / eta_y / 2


def growth_exponent(x: Any, vocab_size: Any, n_classes: Any, eta_y: Any, eta_z: Any, c0: Any) -> Any:
    """B = ln(1 + 4 Gamma/C_0)/4 at the margin x: (14), corrected."""
    return (gamma_integral(x, vocab_size, n_classes, eta_y, eta_z) * 4 / c0 + 1).log() / 4
