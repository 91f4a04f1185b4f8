"""Theorem 2(a) for the true decoder gradient: xi_n of the full flow with frozen features, for any overlaps.

Derivations: `yzflow_beyond_scan_and_snap.proofs.true_gradient`. Paper: Tian, Wang, Chen, Du (2023), arXiv 2305.16380.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy
import xarray as xr
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from dynamics.support import checks
from yzflow.figures.registry import Effort, Entry
from yzflow.figures.style import BLACK, canvas, ordered_colours, styled
from yzflow_studies.true_gradient import nearly_equal

KINDS = ("Gaussian", "sparse", "twins", "hub")
_START = -6.0


def frozen_flow(overlap: ArrayLike, *, vocab_size: int, ln_t: ArrayLike, rtol: float = 1e-7) -> xr.Dataset:
    """xi_n and its terms over time, under Lemma 1's decoder gradient with fixed features.

    V' = R with rows r_n = e_n - softmax(L_n), L = G V from V = 0, in units where eta_Y/K = 1.

    Parameters
    ----------
    overlap : (K, K) array
        G = F^T F: symmetric, a diagonal of ones, entries at or above zero.
    vocab_size : int
        M >= K.
    ln_t : (n,) array
        Logarithm of eta_Y t/K, increasing, above -6.
    rtol : float
        Tolerance of the integrator (Radau in ln t with the exact Jacobian).

    Returns
    -------
    xarray.Dataset
        ``xi`` (ln_t, next_token); ``share`` = xi_n/sum_j alpha_n(j)|H_n(j) - H_n(n)|, from -1 to 1, 0 for a class
        without overlaps; ``term`` (ln_t, next_token, other), the terms -G_nn' V_n'.r_n of xi_n; ``log_alpha``
        (ln_t, next_token, other), ln alpha_n(n') up to a number for each n.

    Raises
    ------
    ValueError
        If an argument is out of its range.
    """
    G = checks.finite_array("overlap", overlap, ndim=2)
    k = len(G)
    if G.shape != (k, k) or not np.allclose(G, G.T, rtol=0, atol=1e-12) or not np.allclose(np.diag(G), 1):
        raise checks.reject("overlap", "be symmetric with ones on the diagonal", "another matrix")
    if (G < 0).any():
        raise checks.reject("overlap", "have no negative entry", G.min())
    m = checks.integer("vocab_size", vocab_size, minimum=max(k, 2))
    s = checks.finite_array("ln_t", ln_t, ndim=1)
    if s.size == 0 or (np.diff(s) <= 0).any() or s[0] <= _START:
        raise checks.reject("ln_t", f"be increasing and above {_START:g}", s)
    columns = k + (m > k)
    count = np.ones(columns)
    count[k:] = m - k
    target, n = np.eye(k, columns), k * columns

    def each(L: np.ndarray) -> np.ndarray:
        """The probability of one token of each column."""
        raised = np.exp(L - L.max(axis=1, keepdims=True))
        return raised / (raised @ count)[:, None]

    def rate(s: float, y: np.ndarray) -> np.ndarray:
        r = target - each(y[:n].reshape(k, columns))
        return np.exp(s) * np.concatenate([(G @ r).ravel(), r.ravel()])

    def jacobian(s: float, y: np.ndarray) -> np.ndarray:
        a = each(y[:n].reshape(k, columns))
        slopes = np.zeros((k, columns, k, columns))
        for i in range(k):
            slopes[i, :, i, :] = np.outer(a[i], a[i] * count) - np.diag(a[i])
        J = np.zeros((2 * n, 2 * n))
        J[n:, :n] = slopes.reshape(n, n)
        J[:n, :n] = (G @ slopes.reshape(k, -1)).reshape(n, n)
        return np.exp(s) * J

    V = np.exp(_START) * (target - 1 / m)
    first = np.concatenate([(G @ V).ravel(), V.ravel()])
    solution = scipy.integrate.solve_ivp(
        rate, (_START, float(s[-1])), first, method="Radau", jac=jacobian, t_eval=s, rtol=rtol, atol=1e-2 * rtol
    )
    if not solution.success:
        raise RuntimeError(f"the frozen flow stopped at ln t = {solution.t[-1]:g}: {solution.message}")
    L, V = (part.T.reshape(-1, k, columns) for part in (solution.y[:n], solution.y[n:]))
    a = np.stack([each(state) for state in L])
    H = L - V
    apart = H - np.einsum("tnn->tn", H[:, :, :k])[:, :, None]
    xi = (a * count * apart).sum(axis=2)
    scale = (a * count * np.abs(apart)).sum(axis=2)
    inner = np.einsum("tkj,tnj,j->tnk", V, target - a, count)
    term = -(G * (1 - np.eye(k))) * inner
    share = np.divide(xi, scale, out=np.zeros_like(xi), where=scale > 0)
    dims = ("ln_t", "next_token")
    return xr.Dataset(
        {
            "xi": (dims, xi),
            "share": (dims, share),
            "term": ((*dims, "other"), term),
            "log_alpha": ((*dims, "other"), L[:, :, :k]),
        },
        {"ln_t": s},
        {"vocab_size": m},
    )


def early_xi(overlap: ArrayLike, *, vocab_size: int) -> np.ndarray:
    """xi_n/t as t -> 0, sum_{n' != n} G_nn'/M in units where eta_Y/K = 1: beta_nn' = 1/M for every pair."""
    G = checks.finite_array("overlap", overlap, ndim=2)
    return (G.sum(axis=1) - np.diag(G)) / checks.integer("vocab_size", vocab_size, minimum=2)


def random_overlaps(rng: np.random.Generator, n_classes: int, kind: str) -> np.ndarray:
    """A Gram matrix of K random features with entries at or above zero.

    ``kind``: "Gaussian", moduli of normal numbers; "sparse", two or three tokens a class; "twins", pairs that differ by
    1e-3 to 0.3 only; "hub", all near one feature, at distances of different orders.

    Raises
    ------
    ValueError
        If the kind is not one of `KINDS`.
    """
    k = checks.integer("n_classes", n_classes, minimum=2)
    kind = checks.one_of("kind", kind, KINDS)
    F = np.abs(rng.normal(size=(k + 2, k)))
    if kind == "sparse":
        F *= rng.random(F.shape) < 3 / (k + 2)
        F[np.arange(k), np.arange(k)] += 0.1
    elif kind == "twins":
        for n in range(1, k, 2):
            F[:, n] = F[:, n - 1] + 10 ** rng.uniform(-3, -0.5) * F[:, n]
    elif kind == "hub":
        F = F[:, [0]] * rng.random(k) + 10 ** rng.uniform(-2, 0, k) * F
    F /= np.linalg.norm(F, axis=0)
    G = F.T @ F
    np.fill_diagonal(G, 1.0)
    return 0.5 * (G + G.T)


def survey(*, draws: int, seed: int = 0, last: float = 9.0, n_times: int = 60) -> xr.Dataset:
    """xi_n over random Gram matrices: K from 3 to 7, M = K, 2 K or 50, `KINDS` in turn.

    Returns
    -------
    xarray.Dataset
        Over ``draw``: ``least``, the smallest share over classes and times; ``negative``, whether some term was below
        zero, by more than 1e-6 of the sum of the terms' moduli; ``kind``, ``n_classes``, ``vocab_size``.
    """
    draws = checks.integer("draws", draws, minimum=1)
    rng = np.random.default_rng(seed)
    s = np.linspace(-3, last, n_times)
    rows: list[dict[str, Any]] = []
    for i in range(draws):
        k, kind = int(rng.integers(3, 8)), KINDS[i % len(KINDS)]
        m = int(rng.choice([k, 2 * k, 50]))
        flow = frozen_flow(random_overlaps(rng, k, kind), vocab_size=m, ln_t=s, rtol=1e-6)
        term, moves = flow["term"].values, (np.abs(flow["xi"].values) > 1e-9).all(axis=0)
        bad = (term < -1e-6 * np.abs(term).sum(axis=2, keepdims=True) - 1e-12).any()
        least = float(flow["share"].values[:, moves].min(initial=1.0))
        rows.append({"least": least, "negative": bool(bad), "kind": kind, "n_classes": k, "vocab_size": m})
    return xr.Dataset({name: ("draw", [row[name] for row in rows]) for name in rows[0]})


def three_classes(*, draws: int, seed: int = 0, last: float = 20.0, n_times: int = 80) -> xr.Dataset:
    """Whether n gives more to the class that it overlaps more, and xi_n, for three classes and M = 3, 6 or 50.

    Overlaps are of `KINDS` in turn. `yzflow_beyond_scan_and_snap.proofs.true_gradient` needs that order, at M = 3.

    Returns
    -------
    xarray.Dataset
        Over ``draw``: ``order``, the least ln(alpha_n(j)/alpha_n(i)) with G_nj >= G_ni, over n and times, 0 at the
        start; ``least``, the smallest share of xi_n over n and times; ``kind``, ``vocab_size``.
    """
    draws = checks.integer("draws", draws, minimum=1)
    rng = np.random.default_rng(seed)
    s = np.linspace(-3, last, n_times)
    rows: list[dict[str, Any]] = []
    for i in range(draws):
        kind, m = KINDS[i % len(KINDS)], (3, 6, 50)[i % 3]
        G = random_overlaps(rng, 3, kind)
        flow = frozen_flow(G, vocab_size=m, ln_t=s, rtol=1e-8)
        order = []
        for n in range(3):
            less, more = sorted({0, 1, 2} - {n}, key=G[n].__getitem__)
            order.append(float((flow["log_alpha"][:, n, more] - flow["log_alpha"][:, n, less]).min()))
        moves = (np.abs(flow["xi"].values) > 1e-9).all(axis=0)
        least = float(flow["share"].values[:, moves].min(initial=1.0))
        rows.append({"order": min(order), "least": least, "kind": kind, "vocab_size": m})
    return xr.Dataset({name: ("draw", [row[name] for row in rows]) for name in rows[0]})


def crossing(*, h_fast: float = 3.0, back: float = 1.5, mu: float = 30.0) -> tuple[float, float]:
    """Why the order of the H_n matters: the weighted sum of H for prescribed H of two tokens that turn back, and ahead.

    phi = exp(H)/(1 + int exp(H) dmu) for H(mu) = +-``h_fast`` up to ``mu``, then at once +-(``h_fast`` - ``back``).
    Returns sum phi H after the turn and before it. The first is negative: were such H the overlaps' part of a class's
    logits, Theorem 2(a) would fail there. `nearly_equal` has a Gram matrix that makes such a turn.
    """
    before = np.array([h_fast, -h_fast])
    after = before * (1 - back / h_fast)
    memory = 1 + np.exp(before) * mu
    return tuple(float((np.exp(H) / memory) @ H) for H in (after, before))  # type: ignore[return-value]


# The figure


def _gradients(effort: Effort) -> dict[str, Any]:
    s, k, m = np.linspace(-5, 9, 30 if effort.quick else 90), 5, 50
    rng, curves = np.random.default_rng(3), []
    for kind in KINDS:
        for _ in range(1 if effort.quick else 6):
            G = random_overlaps(rng, k, kind)
            flow = frozen_flow(G, vocab_size=m, ln_t=s)
            early = early_xi(G, vocab_size=m) * np.exp(s)[:, None]
            moves = early[0] > 0  # a class without overlaps has xi_n = 0 at all times
            worst = flow["term"].min("other") / np.abs(flow["term"]).sum("other")
            curves.append({"kind": kind, "ratio": flow["xi"].values[:, moves] / early[:, moves],
                           "share": flow["share"].values[:, moves], "term": worst.values[:, moves]})  # fmt: skip
    after = np.linspace(-6, 5, 221)
    turns = {
        last: nearly_equal.limit(spread=0.4, pull=0.4, ln_turned=last, ln_t=last + after)["share"].values
        for last in (30.0, 40.0, 50.0, 100.0)
    }
    return {
        "ln_t": s,
        "curves": curves,
        "n_classes": k,
        "vocab_size": m,
        "after": after,
        "turns": turns,
        "survey": survey(draws=6 if effort.quick else 100, seed=2),
    }


def _signs(data: Mapping[str, Any]) -> str:
    found = data["survey"]
    return (
        f"Of {found.sizes['draw']} random Gram matrices (K from {int(found['n_classes'].min())} to"
        f" {int(found['n_classes'].max())}) {int((found['least'] <= 0).sum())} have some "
        f"xi_n <= 0 at some time; the smallest share is {float(found['least'].min()):.3g}. A single term is "
        f"below zero in {float(found['negative'].mean()):.0%} of them. Next to two classes that are nearly the same "
        + "the least share is "
        + ", ".join(f"{share.min():.2f} at ln T = {last:g}" for last, share in data["turns"].items())
        + "."
    )


@styled
def true_gradient(data: Mapping[str, Any]) -> Figure:
    """xi_n under the true decoder gradient, frozen features: its start, sign and terms; overlaps at which it turns.

    Left: over its first order (eta_Y t/(K M)) sum G_nn', proved for any overlaps. Middle: xi_n as a share of the sum of
    the moduli in sum_j alpha_n(j)(H_n(j) - H_n(n)): above 0 for all of these overlaps. Third: the most negative single
    term over the sum of the moduli of all. Theorem 2(a) is proved early, late, and for equal overlaps at all times,
    with frozen features. Last: four classes, two of them told apart at a time of order T^2 only; in the limit its share
    is < 0 for a while.

    Parameters
    ----------
    data : mapping
        ``ln_t``, ``curves`` (kind, ratio, share, term), their ``n_classes`` and ``vocab_size``, ``survey``; ``after`` =
        ln t - ln T, ``turns`` by ln T.
    """
    figure = canvas(figsize=(14, 3.8))
    axes = figure.subplots(1, 4)
    colours = dict(zip(KINDS, ordered_colours(len(KINDS)), strict=True))
    for curve in data["curves"]:
        for name, panel in zip(("ratio", "share", "term"), axes[:3], strict=True):
            panel.plot(data["ln_t"], curve[name], color=colours[curve["kind"]], linewidth=0.7, alpha=0.7)
    for kind, colour in colours.items():
        axes[1].plot([], [], color=colour, label=kind)
    axes[1].legend()
    for panel, label in zip(
        axes[:3], (r"$\xi_n$ over its first order", r"share of $\xi_n$", "most negative term"), strict=True
    ):
        panel.set(xlabel=r"$\ln(\eta_Y t/K)$", ylabel=label)
        panel.axhline(0, color=BLACK, linewidth=0.8)
    axes[0].set(yscale="log", ylim=(1e-6, 1e3))
    axes[1].set_ylim(min(0.0, float(data["survey"]["least"].min())) - 0.03, 1.03)
    for colour, (last, share) in zip(ordered_colours(len(data["turns"])), data["turns"].items(), strict=True):
        axes[3].plot(data["after"], share, color=colour, label=rf"$\ln T = {last:g}$")
    axes[3].set(xlabel=r"$\ln t - \ln T$", ylabel=r"share of $\xi_n$", ylim=(-1.03, 1.03))
    axes[3].set_title("two nearly equal classes, $K = M = 4$", fontsize="small")
    axes[3].axhline(0, color=BLACK, linewidth=0.8)
    axes[3].legend()
    sizes = f"$K = {data['n_classes']}$, $M = {data['vocab_size']}$"
    figure.suptitle(f"Theorem 2(a) without the modified gradient: {sizes}, and a case where it fails")
    return figure


FIGURES = (Entry("true_gradient", "Scan and Snap", true_gradient, _gradients, claims=_signs),)
