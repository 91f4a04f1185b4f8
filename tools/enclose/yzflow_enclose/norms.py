"""The norm for errors: weights for which errors grow slowly. Any weights prove; good weights prove more.

The error grows by exp of the integral of the logarithmic norm mu of W J W^-1. With equal weights a mere rotation
between variables of different units seems to grow. So W is chosen to make the integral along a rough solution small.
The ratio of the weights is added as an exponent, since a bound in one variable is worse than a bound in another by this
ratio.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import numpy as np
from flint import arb, arb_series
from scipy import integrate, optimize

from yzflow_enclose.fields import VectorField
from yzflow_enclose.stepping import jacobian, precision

_SAMPLES, _MOST_CALLS, _LARGEST = 8, 1500, 12.0


class _Enough(Exception):
    pass


def chosen_weights(field: VectorField, start: Sequence[float], t_end: float, size: int) -> np.ndarray:
    """Weights of the first ``size`` variables of a field, from its Jacobians along a rough solution in floats."""
    if size == 1:
        return np.ones(1)
    times, points = _rough(field, start, t_end)
    wanted = np.unique(np.linspace(0, len(times) - 1, _SAMPLES).round().astype(int))
    lengths = np.diff(times[wanted], append=times[-1])
    found = []
    for place, length in zip(wanted.tolist(), lengths.tolist(), strict=True):
        try:
            with precision(64):
                table = jacobian(field, [arb(x) for x in points[place].tolist()])
        except ValueError:
            continue
        slopes = np.array([[float(entry.mid()) for entry in row] for row in table])[:size, :size]
        if np.isfinite(slopes).all():
            found.append((max(length, times[-1] / 64), slopes))
    return _least(found, size) if found else np.ones(size)


def _rough(field: VectorField, start: Sequence[float], t_end: float) -> tuple[np.ndarray, np.ndarray]:
    """Times and points of a rough solution that is computed quickly, as far as it goes."""
    seen: list[tuple[float, np.ndarray]] = []

    def slope(t: float, x: np.ndarray) -> np.ndarray:
        if len(seen) >= _MOST_CALLS or not np.isfinite(x).all():
            raise _Enough
        seen.append((t, x.copy()))
        try:
            with precision(cap=1):
                velocity = field.derivative([arb_series([arb(value)], 1) for value in x.tolist()])
        except ValueError as error:
            raise _Enough from error
        return np.array([float(series[0].mid()) for series in velocity])

    with precision(64), np.errstate(all="ignore"), contextlib.suppress(_Enough):
        integrate.solve_ivp(slope, (0.0, t_end), np.array(start, float), method="RK45", rtol=1e-4, atol=1e-6)
    seen.sort(key=lambda pair: pair[0])
    kept = [pair for pair in seen if np.isfinite(pair[1]).all()]
    return np.array([t for t, _ in kept]), np.array([x for _, x in kept])


def _least(found: list[tuple[float, np.ndarray]], size: int) -> np.ndarray:
    """exp(u) for the u with a small growth of errors."""

    def cost(u: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = 0.0, np.zeros(size)
        ratio = np.exp(u[:, None] - u)
        for length, table in found:
            scaled = ratio * table
            own, vectors = np.linalg.eigh((scaled + scaled.T) / 2)
            # A smooth maximum of the eigenvalues, close to it in units of the exponent.
            heat = 1e-2 * (1 / length + abs(own).max())
            shares = np.exp((own - own[-1]) / heat)
            value += length * (own[-1] + heat * np.log(shares.sum()))
            shares /= shares.sum()
            turned = vectors * (scaled @ vectors) - vectors * (scaled.T @ vectors)
            slope += length * (turned @ shares)
        far = np.sqrt(u @ u + 1e-4)
        return value + far, slope + u / far

    best = optimize.minimize(cost, np.zeros(size), jac=True, method="L-BFGS-B", bounds=[(-_LARGEST, _LARGEST)] * size)
    u = best.x if np.isfinite(best.x).all() and best.fun < cost(np.zeros(size))[0] else np.zeros(size)
    return np.exp2(np.round((u - u.max()) / np.log(2) * 256) / 256)
