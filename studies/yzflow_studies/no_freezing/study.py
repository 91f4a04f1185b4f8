"""Attention late in the full flow: the exponent with which the common token's share falls, where that changes slowly.

Derivation: `yzflow_beyond_scan_and_snap.proofs.late_full_flow`. Paper: Tian, Wang, Chen, Du (2023), arXiv 2305.16380.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import scipy
import xarray as xr
from matplotlib.figure import Figure
from numpy.typing import ArrayLike
from yzflow_beyond_scan_and_snap.late import final_exponent, late_flow, theory_logit

from dynamics.support import checks
from yzflow.figures.registry import Effort, Entry
from yzflow.figures.style import BLUE, GREEN, VERMILION, canvas, styled


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


# The figure


_FALLS = ((10, 1000, 5), (5, 20, 1), (5, 5, 1))  # K, M, distinct tokens a class


def _falls(effort: Effort) -> dict[tuple[int, int, int], xr.Dataset]:
    s = np.geomspace(2, 300.0 if effort.quick else 1e4, 40 if effort.quick else 80)
    found = {}
    for k, m, n_distinct in _FALLS:
        flow = late_flow(s, n_classes=k, vocab_size=m, n_distinct=n_distinct, rtol=1e-7)
        flow["theory"] = ("ln_t", theory_logit(s, n_classes=k, vocab_size=m, n_distinct=n_distinct))
        if m > k:
            slow, _ = slow_exponent(flow["ratio"].values, n_classes=k, vocab_size=m)
            flow["slow"] = ("ln_t", slow)
        found[k, m, n_distinct] = flow
    return found


def _exponents(flows: Mapping[tuple[int, int, int], xr.Dataset]) -> str:
    parts = []
    for (k, m, _), flow in flows.items():
        values = ", ".join(
            f"{float(flow['exponent'].sel(ln_t=s, method='nearest')):.3g}" for s in (10, 100, float(flow["ln_t"][-1]))
        )
        limit = final_exponent(n_classes=k, vocab_size=m)
        last = float(flow["ln_t"][-1])
        parts.append(f"K = {k}, M = {m}: exponent {values} at ln t = 10, 100, {last:.0f}; limit {limit:.3g}.")
    return " ".join(parts)


@styled
def no_freezing(flows: Mapping[tuple[int, int, int], xr.Dataset]) -> Figure:
    """The common token's logit late, and the exponent with which its share of attention falls in ln t.

    Left: z in the full flow (lines) and in the theory flow (dashed, exact); -(1/2) ln ln t, Theorem 4's late form, as
    a slope. Right: -d ln(f_common/f_distinct)/d ln ln t of the full flow, what a slow change predicts (dots, from
    ln t = 10 on), and the limit (K - 1)/(M - 1), dotted. Nothing freezes: attention moves for ever, like a power of
    ln t.

    Parameters
    ----------
    flows : mapping
        (K, M, distinct tokens) -> `late_flow` with ``theory`` and, for K < M, ``slow``.
    """
    figure = canvas(figsize=(10, 4.2))
    left, right = figure.subplots(1, 2)
    for ((k, m, _), flow), colour in zip(flows.items(), (BLUE, GREEN, VERMILION), strict=False):
        label = f"K = {k}, M = {m}"
        left.plot(flow["ln_t"], flow["z"], color=colour, label=label)
        left.plot(flow["ln_t"], flow["theory"], "--", color=colour, linewidth=1)
        right.plot(flow["ln_t"], flow["exponent"], color=colour, label=label)
        if "slow" in flow:
            dots = flow.sel(ln_t=slice(10, None))[{"ln_t": slice(None, None, 4)}]
            right.plot(dots["ln_t"], dots["slow"], "o", color=colour, markersize=3.5)
        limit = final_exponent(n_classes=k, vocab_size=m)
        right.axhline(limit, color=colour, linestyle=":", linewidth=1.2)
    s = flow["ln_t"].values
    left.plot(s, 1.0 - 0.5 * np.log(s), color="0.5", linewidth=3, alpha=0.5, label=r"slope $-\frac{1}{2}\ln\ln t$")
    left.plot([], [], "--", color="0.3", linewidth=1, label="theory flow")
    right.axhline(0.5, color="0.5", linewidth=3, alpha=0.5)
    left.set(xscale="log", xlabel=r"$\ln t$", ylabel="logit of the common token")
    right.set(xscale="log", xlabel=r"$\ln t$", ylabel=r"exponent of $\ln t$")
    left.legend()
    right.legend()
    figure.suptitle(r"Attention does not freeze: the common token's share falls like a power of $\ln t$")
    return figure


FIGURES = (Entry("no_freezing", "Scan and Snap", no_freezing, _falls, claims=_exponents),)

# <!-- numbers
# typed: 10 100 (setting of the runs that this module makes)
# -->
