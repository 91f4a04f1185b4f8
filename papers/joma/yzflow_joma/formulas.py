r"""Closed forms. Time is in units of the inverse learning rate. Source: arXiv 2310.00535, in our statement."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import quad, solve_ivp
from scipy.optimize import minimize_scalar
from scipy.special import erf, erfinv


def linear_time(v: ArrayLike, delta: ArrayLike) -> np.ndarray:
    r"""Time at which v' = Delta e^{v^2/2}, started at zero, reaches v: sqrt(pi/2) erf(v/sqrt 2)/Delta."""
    return np.sqrt(np.pi / 2) * erf(np.asarray(v, float) / np.sqrt(2)) / np.asarray(delta, float)


def linear_weights(delta: ArrayLike, t: float) -> np.ndarray:
    r"""v(t) = sqrt 2 erfinv(Delta t sqrt(2/pi)); infinite from the blow-up time on."""
    return np.sqrt(2) * erfinv(np.clip(np.asarray(delta, float) * t * np.sqrt(2 / np.pi), -1, 1))


def blow_up_time(delta: ArrayLike) -> float:
    r"""Time at which the first entry becomes infinite: sqrt(pi/2)/max |Delta|."""
    return float(np.sqrt(np.pi / 2) / np.abs(np.asarray(delta, float)).max())


def nonlinear_time(v: float, mu: float) -> float:
    r"""Time at which v' = (mu - v) e^{v^2/2}, started at zero, reaches v: \int_0^v e^{-s^2/2}/(mu - s) ds."""
    return float(quad(lambda s: np.exp(-s * s / 2) / (mu - s), 0.0, v, epsabs=1e-13, epsrel=1e-12, limit=400)[0])


def delay(mu: float) -> float:
    r"""tau(mu) = \int_0^mu (e^{-s^2/2} - e^{-mu^2/2})/(mu - s) ds: ln(1/delta) = e^{mu^2/2} (t - tau) + o(1)."""
    end = np.exp(-mu * mu / 2)

    def integrand(s: float) -> float:
        return float((np.exp(-s * s / 2) - end) / (mu - s)) if s != mu else float(mu * end)

    return float(quad(integrand, 0.0, mu, epsabs=1e-13, epsrel=1e-11)[0])


def late_ratio(first: float, second: float) -> float:
    r"""Limit of ln(1/delta_j)/ln(1/delta_k) for late times: e^{(mu_j^2 - mu_k^2)/2}."""
    return float(np.exp((first**2 - second**2) / 2))


def entropy_rate(v: np.ndarray, mu: np.ndarray) -> float:
    r"""dH/dt of softmax(u), u = v^2/2: minus the covariance of u and u' = v (mu - v) e^u under the softmax."""
    u = v * v / 2
    p = np.exp(u - u.max())
    p /= p.sum()
    return float(-(p * (u - p @ u)) @ (v * (mu - v) * np.exp(u)))


def turns(mu: ArrayLike) -> bool | None:
    r"""True if the entropy falls at first and rises in the end; None where both sides of the condition are equal.

    With p = softmax(mu^2/2) and m the smallest nonzero |mu|, the condition is m^2 < sum p mu^2.
    """
    mu = np.abs(np.asarray(mu, float))
    if not mu.any():
        return None
    p = np.exp(mu**2 / 2 - (mu**2).max() / 2)
    slow, mean = mu[mu > 0].min() ** 2, (p @ mu**2) / p.sum()
    return None if np.isclose(slow, mean, rtol=1e-13, atol=0.0) else bool(slow < mean)


def turning_zeros(mu: ArrayLike) -> tuple[float, float]:
    r"""Two bounds on the number Z of zero entries.

    Below the first, the entropy rises in the end; from the second on, it never rises.

    With m the least |mu_j| > 0, the first is sum_j (mu_j^2/m^2 - 1) e^{mu_j^2/2}; above it, the entropy falls in the
    end. The second is sum_j (mu_j^2/m^2 e^{mu_j^2} - 1) e^{mu_j^2/2} over entries larger than m. In between the entropy
    may rise for a while, at times where `rising_zeros` is above Z.
    """
    moving = np.abs(np.asarray(mu, float))
    moving = moving[moving > 0]
    if not moving.size:
        return 0.0, 0.0
    ratio, weight = (moving / moving.min()) ** 2, np.exp(moving**2 / 2)
    larger = ratio > 1
    return float((ratio - 1) @ weight), float((((ratio * weight**2) - 1) * weight)[larger].sum())


def rising_zeros(mu: ArrayLike, t: ArrayLike | None = None) -> np.ndarray | float:
    r"""R(t), or its supremum: at t the entropy rises with fewer zero entries than R(t), and falls with more.

    R = \sum e^u u \sum e^u w / \sum e^u u w - \sum e^u over the mu_j that are not zero, w = u' = v (mu - v) e^u.
    Without ``t``, the supremum over all times; with as many zeros or more, the entropy never rises.

    Parameters
    ----------
    mu : (C,) float
        Zeros among them are left out.
    t : (T,) float, optional
        Positive times.

    Returns
    -------
    (T,) array, or float
        Integrated to 1e-10 in ln(1/delta), delta = 1 - v/mu. The supremum is over times to t = 60 and the limit of R,
        to about 1e-7.
    """
    given = np.asarray(mu, float)
    mu = np.abs(given[given != 0])
    if not mu.size:
        raise ValueError(f"`mu` must have an entry that is not zero, but got {given.tolist()}")
    if t is not None:
        times = np.atleast_1d(np.asarray(t, float))
        if not (np.isfinite(times).all() and (times > 0).all()):
            raise ValueError(f"`t` must be positive times, but got {times.tolist()}")
        order = np.argsort(times)
        bounds = np.empty(len(times))
        bounds[order] = _rising_zeros(mu, _closeness(mu, times[order]))
        return bounds
    # Search on eight points in each step of the integrator, whose steps resolve the fastest entry.
    steps = _closeness(mu, None, last=60.0)
    times = np.unique(np.concatenate([steps[:-1] + np.diff(steps) * i / 8 for i in range(1, 9)]))
    path = _closeness(mu, times)
    bounds = _rising_zeros(mu, path)
    best = int(bounds.argmax())
    end, _ = turning_zeros(mu)
    if best in (0, len(times) - 1):
        return max(end, float(bounds[best]))
    inside = minimize_scalar(
        lambda s: -_rising_zeros(mu, _closeness(mu, np.array([s])))[0],
        bounds=(times[best - 1], times[best + 1]),
        method="bounded",
        options={"xatol": 1e-9},
    )
    return max(end, float(bounds[best]), -float(inside.fun))


def _rate(mu: np.ndarray) -> Callable[[float, np.ndarray], np.ndarray]:
    """Rate e^{v^2/2} of ln(1/delta) for each entry. The variable ln(1/delta) keeps its digits at late times."""
    return lambda _, x: np.exp((mu * -np.expm1(-np.asarray(x))) ** 2 / 2)


def _closeness(mu: np.ndarray, times: np.ndarray | None, *, last: float = 0.0) -> np.ndarray:
    """ln(1/delta) of each entry at increasing times, (C, T); for None, the integrator's own times to ``last``."""
    end = last if times is None else float(times[-1])
    path = solve_ivp(_rate(mu), (0.0, end), np.zeros(len(mu)), method="LSODA", t_eval=times, rtol=1e-10, atol=1e-12)
    return np.asarray(path.t if times is None else path.y)


def _speeds(mu: np.ndarray, path: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """u = v^2/2 and ln u' of each entry, from ln(1/delta)."""
    v = mu[:, None] * -np.expm1(-path)
    return v**2 / 2, np.log(v * mu[:, None]) - path + v**2 / 2


def _rising_zeros(mu: np.ndarray, path: np.ndarray) -> np.ndarray:
    u, speed = _speeds(mu, path)
    w, e = np.exp(speed - speed.max(axis=0)), np.exp(u)
    return (e * u).sum(axis=0) * (e * w).sum(axis=0) / (e * u * w).sum(axis=0) - e.sum(axis=0)


def level_time(first: float, second: float) -> float:
    r"""The only time at which u = v^2/2 of two entries has equal speeds; their |mu| must differ and not be zero.

    The larger entry is faster before it, the smaller one after it. Without zeros the entropy falls before the first
    such time over all pairs, and rises after the last; for two sizes it turns there.

    Parameters
    ----------
    first, second : float
        mu_j and mu_k.
    """
    mu = np.sort(np.abs(np.array([first, second], float)))
    if not (np.isfinite(mu).all() and 0 < mu[0] < mu[1]):
        raise ValueError(f"`first` and `second` must differ in size and not be zero, but got {first:g} and {second:g}")

    def apart(_: float, x: np.ndarray) -> float:
        speed = _speeds(mu, np.asarray(x)[:, None])[1][:, 0]
        return float(speed[1] - speed[0])

    apart.terminal = True  # type: ignore[attr-defined]
    rates = np.exp(mu**2 / 2)
    delays = rates * [delay(float(entry)) for entry in mu]
    late = float((np.diff(2 * np.log(mu) + mu**2 / 2 + delays) / np.diff(rates))[0])
    # Search from a time at which u = mu^2 t^2/2 holds, to twice the time by the late form, and 10 more.
    start = 1e-6 / mu[1]
    path = solve_ivp(
        _rate(mu), (start, 10 + 2 * late), [start, start], method="LSODA", events=apart, rtol=1e-11, atol=1e-13
    )
    if not path.t_events[0].size:
        raise ValueError(f"no time was found at which the speeds of {first:g} and {second:g} are one")
    return float(path.t_events[0][0])
