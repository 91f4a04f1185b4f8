"""What the full flow does late: it overtakes the theory, and its attention does not freeze.

Both flows of a symmetric population are integrated in s = ln t, with the logarithms of their probabilities as
variables, so that ln t = 10,000 is reached. Derivations: `theory.scan_and_snap.proofs.late_full_flow` and ``slowdown``.
Paper: Tian, Wang, Chen, Du (2023), arXiv 2305.16380.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy
import xarray as xr
from numpy.typing import ArrayLike

from dynamics.support import checks

_START = -12.0  # ln t from which on the first terms of the series are no longer exact to rounding


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
    """
    s = checks.finite_array("ln_t", ln_t, ndim=1)
    if s.size == 0 or (np.diff(s) <= 0).any() or s[0] <= _START:
        raise checks.reject("ln_t", f"be increasing and above {_START:g}", s)
    k = checks.integer("n_classes", n_classes, minimum=2)
    m = checks.integer("vocab_size", vocab_size, minimum=k)
    eta_y, eta_z = checks.positive("eta_y", eta_y), checks.positive("eta_z", eta_z)
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
    c, t = start * d, np.exp(_START)
    first = np.array([d * d * eta_y * t / k - _START, c * c * eta_y * t / k, c * eta_y * t / k, 0.0])
    states = _solve(lambda s, y: parts(s, y)[0], first, s, rtol)
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
    if common >= 1:
        raise checks.reject("common", "be below 1", common)
    return common * float(np.sqrt(checks.integer("n_distinct", n_distinct, minimum=1))) / (1 - common)


def _solve(
    rate: Callable[[float, np.ndarray], np.ndarray], first: np.ndarray, s: np.ndarray, rtol: float
) -> np.ndarray:
    """The states at ``s``: (len(s), size of the state)."""
    with np.errstate(over="ignore", invalid="ignore"):
        solution = scipy.integrate.solve_ivp(
            rate, (_START, float(s[-1])), first, method="Radau", t_eval=s, rtol=rtol, atol=1e-2 * rtol
        )
    if not solution.success:
        raise RuntimeError(f"the late flow stopped at ln t = {solution.t[-1]:g}: {solution.message}")
    return solution.y.T


def final_exponent(*, n_classes: int, vocab_size: int) -> float:
    """alpha = (K - 1)/(M - 1): f_common/|f_distinct| falls like (ln t)^-alpha in the end."""
    k = checks.integer("n_classes", n_classes, minimum=2)
    return (k - 1) / (checks.integer("vocab_size", vocab_size, minimum=k) - 1)


def slow_exponent(ratio: ArrayLike, *, n_classes: int, vocab_size: int) -> tuple[np.ndarray, np.ndarray]:
    """The exponent -d ln w/d ln ln t and p/q at w = f_common/|f_distinct|, where w changes slowly; K < M.

    With s = ln t, c = w/sqrt(1 + w^2), d = c/w, R = p/q, mu = 1 + (K - 1) R/(M - K): the margins give A = s/d and
    B = -c C/d, the common token's rest C = c s mu, and the rates of A, B, C three equations for R, the exponent and
    t q, if the change of R is neglected. As w -> 0: R -> 1 and `final_exponent`; while M w^2 is large, up to 1/2.

    Raises
    ------
    ValueError
        If K = M, or the ratio is not positive.
    """
    k, m = checks.integer("n_classes", n_classes, minimum=2), checks.integer("vocab_size", vocab_size, minimum=3)
    if m <= k:
        raise checks.reject("vocab_size", f"be above {k}", m)
    w = checks.finite_array("ratio", ratio)
    if (w <= 0).any():
        raise checks.reject("ratio", "be positive", w.min())
    found = np.array([_slow(value, k, m) for value in w.ravel()])
    return found[:, 0].reshape(w.shape), found[:, 1].reshape(w.shape)


def _slow(w: float, k: int, m: int) -> tuple[float, float]:
    d = 1 / np.sqrt(1 + w * w)
    c = w * d

    def fall(R: float) -> tuple[float, float]:
        """The exponent a of w, and eta_Y t q/K, from the rates of C and of A."""
        mu = 1 + (k - 1) * R / (m - k)
        # d(c s mu)/ds = mu c (1 - a d^2) = q M c and d(s/d)/ds = (1 - a c^2)/d = d q (K R + M - K).
        wide = d * d * (k * R + m - k) / m * mu
        a = (1 - wide) / (c * c - d * d * wide)
        return a, mu * (1 - a * d * d) / m

    def gap(R: float) -> float:
        a, q = fall(R)
        mu = 1 + (k - 1) * R / (m - k)
        # -d(c^2 s mu/d)/ds = d q (1 - R), with c^2/d falling like s^(-a (2 d^2 + c^2)).
        # Times the denominator of a, so that a change of sign is a root and no pole.
        whole = c * c - d * d * (d * d * (k * R + m - k) / m * mu)
        return (c * c * mu / d * (1 - a * (2 * d * d + c * c)) - d * q * (R - 1)) * whole

    grid = 1 + np.geomspace(1e-12, 1e6, 700)
    values = np.array([gap(R) for R in grid])
    turn = int(np.flatnonzero(np.diff(np.sign(values)))[0])
    R = scipy.optimize.brentq(gap, grid[turn], grid[turn + 1], xtol=1e-12)
    return fall(R)[0], R


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
    case 1/M << y << 1/K. Parameters and errors as for `late_flow`.
    """
    s = checks.finite_array("ln_t", ln_t)
    k = checks.integer("n_classes", n_classes, minimum=2)
    m = checks.integer("vocab_size", vocab_size, minimum=k)
    gain, start = 1 + 1 / (k * n_distinct), _start_ratio(common, n_distinct)

    def phi(log_y: float) -> float:
        inverse = np.exp(-log_y)
        return (inverse - (k + 1 - m) * log_y - (m - k) * (m - 1) / m * np.log1p(m * np.exp(log_y))) / (2 * gain)

    first = 2 * np.log(start)
    out = []
    for value in s.ravel():
        x = _log_growth(value + np.log(m * eta_y / k), m)
        gamma = eta_z * k * (m - 1) ** 2 * (x / m) ** 2 / (2 * eta_y)
        target = phi(first) + (k - 1) * m / (m - 1) ** 2 * gamma
        low = first - 1.0
        while phi(low) < target:
            low -= 1.0
        out.append((scipy.optimize.brentq(lambda v, goal=target: phi(v) - goal, low, first, xtol=1e-13) - first) / 2)
    return (np.array(out) / gain).reshape(s.shape)


def _log_growth(log_time: float, m: int) -> float:
    """x = M h with exp(x) + (M - 1) x = 1 + exp(log_time) (45), also where the exponential would overflow."""

    def gap(x: float) -> float:
        return np.logaddexp(x, np.log(m - 1) + np.log(x)) - np.logaddexp(0.0, log_time)

    high = max(log_time, 0.0) + 1.0
    return float(scipy.optimize.brentq(gap, np.exp(min(log_time, 0.0)) / m / 2, high, xtol=1e-15, rtol=1e-14))


def frozen_speeds(
    ln_t: ArrayLike, *, n_classes: int, vocab_size: int, overlap: float, rtol: float = 1e-9
) -> np.ndarray:
    """Speed of attention in the full flow over that in the theory, with frozen features of equal overlaps.

    Parameters
    ----------
    ln_t : (n,) array
        Logarithm of eta_Y t/K, increasing, above -12.
    n_classes, vocab_size : int
        2 <= K <= M.
    overlap : float
        rho, between 0 and 1.

    Returns
    -------
    (n,) array
        It starts at s of finding 1 and tends to s_inf > 1, `theory.scan_and_snap.proofs.slowdown.late_ratio`.
    """
    s = checks.finite_array("ln_t", ln_t, ndim=1)
    k, m = (
        checks.integer("n_classes", n_classes, minimum=2),
        checks.integer("vocab_size", vocab_size, minimum=n_classes),
    )
    rho = checks.positive("overlap", overlap)
    if rho >= 1:
        raise checks.reject("overlap", "be below 1", rho)
    log_classes, log_others = np.log(k - 1), np.log(m - k) if m > k else -np.inf

    def probabilities(s: float, y: np.ndarray) -> tuple[float, float]:
        u = y[0] + s
        total = np.logaddexp(0.0, np.logaddexp(log_classes - u, log_others - u - y[1]))
        return np.exp(-y[0] - total), np.exp(-y[0] - y[1] - total) if m > k else 0.0

    def rate(s: float, y: np.ndarray) -> np.ndarray:
        p, q = probabilities(s, y)
        return np.array([(1 - rho) * (k * p + (m - k) * q) - 1, (1 + (m - 1) * rho) * q - (1 - rho) * p])

    t = np.exp(_START)
    states = _solve(rate, np.array([(1 - rho) * t - _START, rho * t]), s, rtol)
    beta = m * (1 + (m - 1) * rho) / ((m - 1) ** 2 * (1 - rho) * (1 + (k - 1) * rho))
    out = []
    for point, y in zip(s, states, strict=True):
        p, q = probabilities(point, y)
        apart = (y[0] + point) / (1 - rho)  # a - b
        below = (y[0] + point + y[1] - apart) / (1 + (k - 1) * rho)  # b - c
        log_full = np.log(apart * p - (m - k) * below * q) - point
        x = _log_growth(point + np.log(m), m)
        log_gamma = 2 * np.log(m - 1) + np.log(x / m) - np.logaddexp(np.log(m - 1), x)
        out.append(np.exp(log_full - log_gamma) / beta)
    return np.array(out)


def overtaking(
    *, n_classes: int, vocab_sizes: Sequence[int], overlaps: Sequence[float], last: float = 1e4, n_times: int = 400
) -> xr.DataArray:
    """ln(eta_Y t/K) at which the full flow's attention first moves as fast as the theory's; inf if not by ``last``."""
    s = np.concatenate([np.linspace(-8, 8, n_times // 2), np.geomspace(8.1, last, n_times // 2)])
    found = np.empty((len(vocab_sizes), len(overlaps)))
    for i, m in enumerate(vocab_sizes):
        for j, rho in enumerate(overlaps):
            options: dict[str, Any] = {"n_classes": n_classes, "vocab_size": m, "overlap": rho, "rtol": 1e-7}
            above = np.flatnonzero(frozen_speeds(s, **options) >= 1)
            found[i, j] = s[above[0]] if above.size else np.inf
            if above.size and above[0] > 0:
                # Steps of the grid are of 4%: between two of them the crossing is found by a line through near points.
                near = np.linspace(s[above[0] - 1], s[above[0]], 20)
                found[i, j] = np.interp(1.0, frozen_speeds(near, **options), near)
    coordinates: dict[str, Any] = {"vocab_size": list(vocab_sizes), "overlap": list(overlaps)}
    return xr.DataArray(found, coordinates, ["vocab_size", "overlap"], attrs={"n_classes": n_classes, "last": last})
