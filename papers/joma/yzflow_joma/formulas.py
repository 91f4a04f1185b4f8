r"""Closed forms. Time is in units of the inverse learning rate. Source: arXiv 2310.00535, as we state it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import quad
from scipy.special import erf, erfinv


def linear_time(v: ArrayLike, delta: ArrayLike) -> np.ndarray:
    r"""t at which v' = Delta e^{v^2/2} from zero is at v: sqrt(pi/2) erf(v/sqrt 2)/Delta."""
    return np.sqrt(np.pi / 2) * erf(np.asarray(v, float) / np.sqrt(2)) / np.asarray(delta, float)


def linear_weights(delta: ArrayLike, t: float) -> np.ndarray:
    r"""v(t) = sqrt 2 erfinv(Delta t sqrt(2/pi)); infinite from the blow-up time on."""
    return np.sqrt(2) * erfinv(np.clip(np.asarray(delta, float) * t * np.sqrt(2 / np.pi), -1, 1))


def blow_up_time(delta: ArrayLike) -> float:
    r"""sqrt(pi/2)/max |Delta|."""
    return float(np.sqrt(np.pi / 2) / np.abs(np.asarray(delta, float)).max())


def nonlinear_time(v: float, mu: float) -> float:
    r"""t at which v' = (mu - v) e^{v^2/2} from zero is at v: \int_0^v e^{-s^2/2}/(mu - s) ds."""
    return float(quad(lambda s: np.exp(-s * s / 2) / (mu - s), 0.0, v, epsabs=1e-13, epsrel=1e-12, limit=400)[0])


def delay(mu: float) -> float:
    r"""tau(mu) = \int_0^mu (e^{-s^2/2} - e^{-mu^2/2})/(mu - s) ds: ln(1/delta) = e^{mu^2/2} (t - tau) + o(1)."""
    end = np.exp(-mu * mu / 2)

    def integrand(s: float) -> float:
        return float((np.exp(-s * s / 2) - end) / (mu - s)) if s != mu else float(mu * end)

    return float(quad(integrand, 0.0, mu, epsabs=1e-13, epsrel=1e-11)[0])


def late_ratio(first: float, second: float) -> float:
    r"""e^{(mu_j^2 - mu_k^2)/2}: what ln(1/delta_j)/ln(1/delta_k) tends to."""
    return float(np.exp((first**2 - second**2) / 2))


def entropy_rate(v: np.ndarray, mu: np.ndarray) -> float:
    r"""dH/dt of softmax(u), u = v^2/2: minus the covariance of u and u' = v (mu - v) e^u under the softmax."""
    u = v * v / 2
    p = np.exp(u - u.max())
    p /= p.sum()
    return float(-(p * (u - p @ u)) @ (v * (mu - v) * np.exp(u)))


def turns(mu: ArrayLike) -> bool | None:
    r"""Whether the entropy falls and in the end rises, by the argument on the slowest entry; None where it is level.

    With p = softmax(mu^2/2) and m the smallest nonzero |mu|: it rises in the end if m^2 < sum p mu^2.
    """
    mu = np.abs(np.asarray(mu, float))
    if not mu.any():
        return None
    p = np.exp(mu**2 / 2 - (mu**2).max() / 2)
    slow, mean = mu[mu > 0].min() ** 2, (p @ mu**2) / p.sum()
    return None if np.isclose(slow, mean, rtol=1e-13, atol=0.0) else bool(slow < mean)


def turning_zeros(mu: ArrayLike) -> tuple[float, float]:
    r"""Numbers of zero entries below which the entropy rises in the end, and from which on it never does.

    With m the least of the |mu_j| > 0: Z < sum_j (mu_j^2/m^2 - 1) e^{mu_j^2/2} means that it rises in the end, and Z
    above it that it falls; Z >= sum_j (mu_j^2/m^2 e^{mu_j^2} - 1) e^{mu_j^2/2}, over those larger than m, that it falls
    at all times. In between it may rise for a while.
    """
    moving = np.abs(np.asarray(mu, float))
    moving = moving[moving > 0]
    if not moving.size:
        return 0.0, 0.0
    ratio, weight = (moving / moving.min()) ** 2, np.exp(moving**2 / 2)
    larger = ratio > 1
    return float((ratio - 1) @ weight), float((((ratio * weight**2) - 1) * weight)[larger].sum())
