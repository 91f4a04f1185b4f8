"""How fast attention moves in the full flow and in the theory: where the first overtakes.

With frozen features for equal classes of any size, and with moving ones for any two classes.

Derivation: `theory.scan_and_snap.proofs.slowdown`. Paper: Tian, Wang, Chen, Du (2023), arXiv 2305.16380.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy
import xarray as xr
from matplotlib.figure import Figure
from numpy.typing import ArrayLike
from yzflow_beyond_scan_and_snap.late import START, log_growth, solve

from dynamics import SequenceClasses
from dynamics.support import checks
from theory.scan_and_snap.proofs.slowdown import late_ratio
from yzflow.figures.registry import Effort, Entry
from yzflow.figures.style import BLACK, canvas, ordered_colours, styled

_SIDES = np.array([1.0, -1.0])  # of two next tokens, whose logits add up to zero


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

    t = np.exp(START)
    states = solve(rate, np.array([(1 - rho) * t - START, rho * t]), s, rtol)
    beta = m * (1 + (m - 1) * rho) / ((m - 1) ** 2 * (1 - rho) * (1 + (k - 1) * rho))
    out = []
    for point, y in zip(s, states, strict=True):
        p, q = probabilities(point, y)
        apart = (y[0] + point) / (1 - rho)  # a - b
        below = (y[0] + point + y[1] - apart) / (1 + (k - 1) * rho)  # b - c
        log_full = np.log(apart * p - (m - k) * below * q) - point
        x = log_growth(point + np.log(m), m)
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


def two_classes(
    probabilities: ArrayLike, ln_t: ArrayLike, *, eta_y: float, eta_z: float, rtol: float = 1e-9
) -> xr.Dataset:
    """The logits of any two classes of one query in the full flow and in the theory, for K = M = 2, features moving.

    Parameters
    ----------
    probabilities : (2, n_tokens) array
        P(l|n), whose features are independent.
    ln_t : (n,) array
        Increasing, above -12.
    eta_y, eta_z : float
        Learning rates per step, positive.
    rtol : float
        Tolerance of the integrator (Radau in ln t).

    Returns
    -------
    xarray.Dataset
        ``full`` and ``theory`` (ln_t, token), z from zero.
    """
    P = SequenceClasses(probabilities, [0, 0], vocab_size=2).probabilities.toarray()
    s = checks.finite_array("ln_t", ln_t, ndim=1)
    eta_y, eta_z = checks.positive("eta_y", eta_y), checks.positive("eta_z", eta_z)
    n = P.shape[1]

    def features(z: np.ndarray) -> np.ndarray:
        pulls = P * np.exp(z - z.max())
        return pulls / np.linalg.norm(pulls, axis=1, keepdims=True)

    def attention(F: np.ndarray, back: np.ndarray) -> np.ndarray:
        return eta_z * (F * (back - F * (F * back).sum(axis=1, keepdims=True))).mean(axis=0)

    def full(s: float, state: np.ndarray) -> np.ndarray:
        # y, the difference of Y's columns: margins are +- f_n y, and t times the wrong probability needs no exp(s).
        z, y = state[:n], state[n:]
        F = features(z)
        wrong = _SIDES * np.exp(s - np.logaddexp(0.0, _SIDES * (F @ y)))
        return np.concatenate([attention(F, np.outer(wrong, y)), eta_y * wrong @ F])

    def theory(s: float, z: np.ndarray) -> np.ndarray:
        # (10) over Gamma, with beta from the Gram matrix: Theorem 1 at M = 2.
        F = features(z)
        return attention(F, np.linalg.solve(F @ F.T, 2 * np.outer(_SIDES, _SIDES)).T @ F) / eta_z

    start = np.concatenate([np.zeros(n), eta_y * np.exp(START) / 2 * (_SIDES @ features(np.zeros(n)))])
    clock = np.array([eta_z / eta_y * (log_growth(point + np.log(eta_y), 2) / 2) ** 2 for point in s])
    flow = solve(full, start, s, rtol)[:, :n]
    followed = scipy.integrate.solve_ivp(
        theory, (0, clock[-1]), np.zeros(n), method="Radau", t_eval=clock, rtol=rtol, atol=1e-2 * rtol
    )
    dims = ("ln_t", "token")
    return xr.Dataset({"full": (dims, flow), "theory": (dims, followed.y.T)}, {"ln_t": s})


# The figure


_SPEEDS = ((5, 60, 0.967), (5, 60, 0.3), (10, 100, 0.1), (10, 1000, 0.011))  # K, M, rho


def _speeds(effort: Effort) -> dict[str, Any]:
    n, last = (25, 400.0) if effort.quick else (60, 1e4)
    s = np.concatenate([np.linspace(-6, 8, n), np.geomspace(8.2, last, n)])
    curves = {
        setting: frozen_speeds(s, n_classes=setting[0], vocab_size=setting[1], overlap=setting[2])
        for setting in _SPEEDS
    }
    sizes, overlaps = [20, 1000], [0.01, 0.3]
    if not effort.quick:
        sizes, overlaps = [10, 20, 50, 100, 300, 1000, 3000, 10_000], [0.003, 0.01, 0.03, 0.1, 0.3, 0.6, 0.9]
    times = overtaking(n_classes=10, vocab_sizes=sizes, overlaps=overlaps, last=last)
    return {"ln_t": s, "curves": curves, "map": times}


def _who_overtakes(data: Mapping[str, Any]) -> str:
    parts = []
    for (k, m, rho), curve in data["curves"].items():
        above = np.flatnonzero(curve >= 1)
        when = f"passes 1 near ln t = {data['ln_t'][above[0]]:.3g}" if above.size else "stays below 1"
        limit = float(late_ratio(m, k, rho))
        parts.append(f"K = {k}, M = {m}, rho = {rho:g}: {when}, {curve[-1]:.3g} at the end, limit {limit:.3g}.")
    return " ".join(parts)


@styled
def drawn(data: Mapping[str, Any]) -> Figure:
    """Where the full flow overtakes the theory: ratio of the speeds of attention with frozen features, equal overlaps.

    Left: from s at the start to s_inf (dotted), in ln(eta_Y t/K). Right, K = 10: ln(eta_Y t/K) at which the ratio first
    reaches one. The paper says of its modified gradient only that the modification is small.

    Parameters
    ----------
    data : mapping
        ``ln_t``, ``curves`` by (K, M, rho), and ``map`` from `overtaking`.
    """
    figure = canvas(figsize=(10, 4))
    left, right = figure.subplots(1, 2, gridspec_kw={"width_ratios": [1.3, 1]})
    n = len(data["curves"])
    for i, (((k, m, rho), curve), colour) in enumerate(zip(data["curves"].items(), ordered_colours(n), strict=True)):
        left.plot(data["ln_t"], curve, color=colour, label=rf"$K = {k}$, $M = {m}$, $\rho = {rho:g}$")
        # The dots of limits that nearly agree stand side by side, each in the colour of its curve.
        dots = (1.5 * i, (1.5, 1.5 * (n - 1)))
        left.axhline(float(late_ratio(m, k, rho)), color=colour, linestyle=dots, linewidth=1.6)
    left.axhline(1, color=BLACK, linewidth=0.8)
    left.set_xscale("symlog", linthresh=10)
    left.set(yscale="log", xlabel=r"$\ln(\eta_Y t/K)$", ylabel="speed, full flow : theory", xlim=(-6, data["ln_t"][-1]))
    left.legend(loc="lower right")
    times = data["map"]
    shown = np.log10(np.maximum(times.values, 1.0))
    mesh = right.imshow(shown, origin="lower", cmap="cividis", aspect="auto")
    for (i, j), value in np.ndenumerate(times.values):
        light = shown[i, j] < 0.6 * shown.max()
        right.text(
            j,
            i,
            f"{value:.0f}" if value >= 100 else f"{value:.3g}",
            ha="center",
            va="center",
            color="white" if light else "black",
            fontsize=8,
        )
    right.set_xticks(range(times.sizes["overlap"]), [f"{rho:g}" for rho in times["overlap"].values])
    right.set_yticks(range(times.sizes["vocab_size"]), [str(m) for m in times["vocab_size"].values])
    right.grid(False)
    right.set(xlabel=r"overlap $\rho$", ylabel="M", title=r"$\ln(\eta_Y t/K)$ of overtaking, $K = 10$")
    figure.colorbar(mesh, ax=right, label="its decimal logarithm")
    figure.suptitle("The full flow starts slower than the theory and ends faster")
    return figure


FIGURES = (Entry("overtaking", "Scan and Snap", drawn, _speeds, claims=_who_overtakes),)

# <!-- numbers
# typed: 10 (setting of the runs that this module makes)
# -->
