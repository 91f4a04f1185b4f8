"""The full flow and the theory flow of equal classes at late times.

Both flows of a symmetric population are integrated in s = ln t, with the logarithms of their probabilities as
variables, so that ln t = 10,000 is reached. Derivations: `yzflow_beyond_scan_and_snap.proofs.late_full_flow`
and `theory.scan_and_snap.proofs.slowdown`.
Paper: Tian, Wang, Chen, Du (2023), arXiv 2305.16380.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy
import xarray as xr
from numpy.typing import ArrayLike

from dynamics import IntegrationError
from dynamics.support import checks

_LEAST = 1e-100  # a share whose inverse square is still a number
START = -12.0  # Integration starts at this ln t: up to here the first terms of the series are exact up to rounding.


def late_flow(
    ln_t: ArrayLike,
    *,
    n_classes: int,
    vocab_size: int,
    common: float = 0.4,
    n_distinct: int = 5,
    eta_y: float = 1.0,
    eta_z: float = 0.5,
    rtol: float = 1e-8,
) -> xr.Dataset:
    """The full flow, Lemma 1 (3), of K equal classes with one common token and equal distinct ones, in s = ln t.

    Parameters
    ----------
    ln_t : (n,) array
        Increasing, above -12.
    n_classes, vocab_size : int
        2 <= K <= M.
    common : float
        P(common | n), between 0 and 1.
    n_distinct : int
        Distinct tokens of each class; they share 1 - ``common`` equally.
    eta_y, eta_z : float
        Learning rates per step, positive.
    rtol : float
        Tolerance of the integrator (Radau).

    Returns
    -------
    xarray.Dataset
        Over ``ln_t``: ``z``, the common token's logit; ``ratio``, w = f_common/|f_distinct|; ``exponent``,
        -d ln w/d ln ln t; ``p_over_q``, the probability of another class over that of a token that never occurs.

    Raises
    ------
    ValueError
        If an argument is out of its range.
    IntegrationError
        If the integrator fails.
    """
    s = checks.finite_array("ln_t", ln_t, ndim=1)
    if s.size == 0 or (np.diff(s) <= 0).any() or s[0] <= START:
        raise checks.reject("ln_t", f"be increasing and above {START:g}", s)
    k = checks.integer("n_classes", n_classes, minimum=2)
    m = checks.integer("vocab_size", vocab_size, minimum=k)
    eta_y, eta_z = checks.positive("eta_y", eta_y), checks.positive("eta_z", eta_z)
    rtol = checks.below("rtol", checks.positive("rtol", rtol), 1)
    start = _start_ratio(common, n_distinct)
    gain = 1 + 1 / (k * n_distinct)  # of ln w over z: the distinct tokens rise by what the common one falls
    log_classes, log_others = np.log(k - 1), np.log(m - k) if m > k else -np.inf

    def parts(s: float, y: np.ndarray) -> tuple[np.ndarray, float, float]:
        # u = U + s and u + D are the margins to another class and to a token that never occurs.
        U, D, C, z = y
        w = start * np.exp(gain * z)
        d = 1 / np.sqrt(1 + w * w)
        c = w * d
        u = U + s
        A, B = u / d, (D - c * C) / d
        total = np.logaddexp(0.0, np.logaddexp(log_classes - u, log_others - u - D))
        p = np.exp(-U - total)  # t p and t q
        q = np.exp(-U - D - total) if m > k else 0.0
        dA, dB, dC = eta_y * d / k * (k * p + (m - k) * q), eta_y * d / k * (q - p), eta_y * c * m * q / k
        dz = eta_z * c * d * (d * (m - k) * q * C - c * ((k - 1) * p * A + (m - k) * q * (A + B)))
        dd, dc = -c * c * d * gain * dz, c * d * d * gain * dz
        rate = np.array([dd * A + d * dA - 1, dd * B + d * dB + dc * C + c * dC, dC, dz])
        return rate, w, p / q if q else np.inf

    d = 1 / np.sqrt(1 + start**2)
    c, t = start * d, np.exp(START)
    first = np.array([d * d * eta_y * t / k - START, c * c * eta_y * t / k, c * eta_y * t / k, 0.0])
    states = solve(lambda s, y: parts(s, y)[0], first, s, rtol)
    found = [parts(point, y) for point, y in zip(s, states, strict=True)]
    return xr.Dataset(
        {
            "z": ("ln_t", states[:, 3], {"long_name": "logit of the common token"}),
            "ratio": ("ln_t", [w for _, w, _ in found], {"long_name": "f_common/|f_distinct|"}),
            "exponent": ("ln_t", [-gain * rate[3] * point for point, (rate, _, _) in zip(s, found, strict=True)]),
            "p_over_q": ("ln_t", [p for _, _, p in found]),
        },
        {"ln_t": s},
        {"n_classes": k, "vocab_size": m, "gain": gain, "start": start, "eta_y": eta_y, "eta_z": eta_z},
    )


def _start_ratio(common: float, n_distinct: int) -> float:
    common = checks.positive("common", common)
    if common < _LEAST:
        raise checks.reject("common", f"be at least {_LEAST:g}", common)
    if common >= 1:
        raise checks.reject("common", "be below 1", common)
    return common * float(np.sqrt(checks.integer("n_distinct", n_distinct, minimum=1))) / (1 - common)


def solve(rate: Callable[[float, np.ndarray], np.ndarray], first: np.ndarray, s: np.ndarray, rtol: float) -> np.ndarray:
    """The states at ``s``: (len(s), size of the state)."""
    with np.errstate(over="ignore", invalid="ignore"):
        solution = scipy.integrate.solve_ivp(
            rate, (START, float(s[-1])), first, method="Radau", t_eval=s, rtol=rtol, atol=1e-2 * rtol
        )
    if not solution.success:
        reached = solution.t[-1] if len(solution.t) else START  # the times of outputs alone
        why = f"the late flow stopped after ln t = {reached:g}: {solution.message}"
        raise IntegrationError(
            f"{why} Try smaller learning rates, or a larger rtol", float(np.exp(reached)), None, None
        )
    return solution.y.T


def final_exponent(*, n_classes: int, vocab_size: int) -> float:
    """alpha = (K - 1)/(M - 1): f_common/|f_distinct| falls like (ln t)^-alpha in the end."""
    k = checks.integer("n_classes", n_classes, minimum=2)
    return (k - 1) / (checks.integer("vocab_size", vocab_size, minimum=k) - 1)


def theory_logit(
    ln_t: ArrayLike,
    *,
    n_classes: int,
    vocab_size: int,
    common: float = 0.4,
    n_distinct: int = 5,
    eta_y: float = 1.0,
    eta_z: float = 0.5,
) -> np.ndarray:
    """The common token's logit in the theory flow, (10) with Theorem 1, for the population of `late_flow`: exact.

    (K - 1) M/(M - 1)^2 Gamma = Phi(y) - Phi(y(0)) with y = (f_common/|f_distinct|)^2 and

        Phi(y) = [1/y - (K + 1 - M) ln y - (M - K)(M - 1)/M ln(1 + M y)]/(2 g),   g = 1 + 1/(K D),

    D the number of distinct tokens, Gamma = eta_Z K (M - 1)^2 h(t/K)^2/(2 eta_Y) (128). Theorem 4's logarithm is the
    case 1/M << y << 1/K, with one for g: its norm stands still. Parameters and errors as for `late_flow`.
    """
    s = checks.finite_array("ln_t", ln_t)
    k = checks.integer("n_classes", n_classes, minimum=2)
    m = checks.integer("vocab_size", vocab_size, minimum=k)
    eta_y, eta_z = checks.positive("eta_y", eta_y), checks.positive("eta_z", eta_z)
    start = _start_ratio(common, n_distinct)
    gain = 1 + 1 / (k * n_distinct)

    def phi(log_y: float) -> float:
        inverse = np.exp(-log_y)
        return (inverse - (k + 1 - m) * log_y - (m - k) * (m - 1) / m * np.log1p(m * np.exp(log_y))) / (2 * gain)

    first = 2 * np.log(start)
    out = []
    for value in s.ravel():
        x = log_growth(value + np.log(m * eta_y / k), m)
        gamma = eta_z * k * (m - 1) ** 2 * (x / m) ** 2 / (2 * eta_y)
        target = phi(first) + (k - 1) * m / (m - 1) ** 2 * gamma
        low = first - 1.0
        while phi(low) < target:
            low -= 1.0
        out.append((scipy.optimize.brentq(lambda v, goal=target: phi(v) - goal, low, first, xtol=1e-13) - first) / 2)
    return (np.array(out) / gain).reshape(s.shape)


def log_growth(log_time: float, m: int) -> float:
    """x = M h with exp(x) + (M - 1) x = 1 + exp(log_time) (45), also where the exponential would overflow."""

    def gap(x: float) -> float:
        return np.logaddexp(x, np.log(m - 1) + np.log(x)) - np.logaddexp(0.0, log_time)

    high = max(log_time, 0.0) + 1.0
    return float(scipy.optimize.brentq(gap, np.exp(min(log_time, 0.0)) / m / 2, high, xtol=1e-15, rtol=1e-14))
