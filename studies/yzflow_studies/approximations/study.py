"""How good (13), (118) and (119) are: exact errors over K, M and overlaps, and what a norm that moves does to B.

Proofs: `theory.scan_and_snap.proofs.approximations`. Paper: Tian, Wang, Chen, Du (2023), arXiv 2305.16380, Appendix F.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from dynamics import gradient_flow
from theory import attention, decoder
from theory.scan_and_snap.proofs.approximations import beta_error, beta_ratio, moving_exponent, speed_error, speed_ratio
from yzflow.figures.registry import Effort, Entry
from yzflow.figures.style import BLACK, canvas, ordered_colours, styled
from yzflow.papers.scan_and_snap.settings import classes_with_common_shares


def errors(sizes: Sequence[Sequence[float]]) -> dict[str, Any]:
    """Relative errors of (119) and of (13) with K - 1 terms at (K, M, rho), exact and to leading order."""
    rows = []
    for k, m, rho in sizes:
        at = {"m": int(m), "k": int(k), "rho": rho}
        rows.append(
            {
                "k": int(k),
                "m": int(m),
                "rho": rho,
                "beta": float(beta_ratio(**at)) - 1,
                "beta_leading": float(beta_error(**at)),
                "speed": float(speed_ratio(**at)) - 1,
                "speed_leading": float(speed_error(**at)),
            }
        )
    return {"rows": rows}


def falls(k: int, m: int, rho: float, eta_y: float, eta_z: float, times: Sequence[float]) -> dict[str, np.ndarray]:
    """-z of the common token in the theory flow, one distinct token a class, and B with a norm that stands or moves."""
    times = np.array(times, float)
    classes = classes_with_common_shares([rho**0.5] * k, m, distinct=(1.0,))
    rates: dict[str, Any] = {"eta_y": eta_y, "eta_z": eta_z, "t_end": times[-1], "rtol": 1e-9, "atol": 1e-12}
    flow = gradient_flow(classes, decoder="theory", times=np.concatenate([[0.0], times]), **rates).dataset
    sizes: dict[str, Any] = {"vocab_size": m, "n_classes": k, "eta_y": eta_y}
    accumulated = decoder.gamma_integral(times, **sizes, eta_z=eta_z)
    c0 = attention.speed_constant(n_classes=k, overlap=rho, vocab_size=m)
    moving = np.array([float(moving_exponent(one, c0, 1 + 1 / k)) for one in accumulated])
    still = attention.growth_exponent(times, **sizes, eta_z=eta_z, c0=c0)
    return {"t": times, "flow": -flow["z"].values[1:, 0, 0], "still": still, "moving": moving}


def exponents(ks: Sequence[int], m: int, rho: float, eta_y: float, etas_z: Sequence[float], t: float) -> dict[str, Any]:
    """At the end: the fall in the flow, and how much B is too large, with a norm that stands and one that moves."""
    rows = []
    for k in ks:
        for eta_z in etas_z:
            found = falls(k, m, rho, eta_y, eta_z, [t / 10, t])
            end = {name: float(found[name][-1]) for name in ("flow", "still", "moving")}
            errors = {f"{name}_error": end[name] / end["flow"] - 1 for name in ("still", "moving")}
            rows.append({"k": k, "eta_z": eta_z, **end, **errors, "limit": 1 / k})
    return {"rows": rows}


# The figure

_SIZES = ((2, 1000), (10, 1000), (10, 100_000), (50, 100_000))
_FALLS: dict[str, Any] = {"k": 2, "m": 100_000, "rho": 1e-3, "eta_y": 1.0}


def _drawn(effort: Effort) -> dict[str, Any]:
    rho = np.geomspace(1e-4, 0.5, 20 if effort.quick else 200)
    curves = {
        size: {
            "exact": np.array([float(speed_ratio(size[1], size[0], one)) - 1 for one in rho]),
            "leading": np.array([float(speed_error(size[1], size[0], one)) for one in rho]),
        }
        for size in _SIZES
    }
    times = np.geomspace(1, 1e4 if effort.quick else 1e6, 20 if effort.quick else 100)
    return {"rho": rho, "curves": curves, "falls": {eta: falls(**_FALLS, eta_z=eta, times=times) for eta in (1e4, 1e6)}}


def _how_large(data: Mapping[str, Any]) -> str:
    parts = [
        f"K = {k}, M = {m:,}: (13) is least wrong near rho = {data['rho'][np.abs(curve['exact']).argmin()]:.2g}."
        for (k, m), curve in data["curves"].items()
    ]
    for eta, found in data["falls"].items():
        still, moving = (found[name][-1] / found["flow"][-1] - 1 for name in ("still", "moving"))
        parts.append(
            f"eta_Z = {eta:g}: B is too large by {still:.1%} at the end, with a norm that moves by {moving:.1%}."
        )
    return " ".join(parts)


@styled
def drawn(data: Mapping[str, Any]) -> Figure:
    """How good the approximations behind Theorem 4 are, for equal classes with one common token.

    Left: relative error of the common token's speed by (13), with K - 1 terms and class probabilities, against the
    overlap: exact, and to leading order (dashed), 1/(M rho) - (K - 1) rho. Right: the fall of the common token in the
    theory flow with one distinct token a class, and B by Theorem 4, whose norm rho_0 stands still, and with one that
    moves. The learning rates of attention are large, so that the logits move far.

    Parameters
    ----------
    data : mapping
        ``rho``, ``curves`` by (K, M), and ``falls`` by eta_Z.
    """
    figure = canvas(figsize=(10, 4))
    left, right = figure.subplots(1, 2)
    for ((k, m), curve), colour in zip(data["curves"].items(), ordered_colours(len(data["curves"])), strict=True):
        left.plot(data["rho"], -curve["exact"], color=colour, label=f"K = {k}, M = {m:,}")
        left.plot(data["rho"], -curve["leading"], color=colour, linestyle="--", linewidth=1)
    left.axhline(0, color=BLACK, linewidth=0.8)
    left.set(xscale="log", ylim=(-1, 1), xlabel=r"overlap $\rho$", ylabel="part of the speed that (13) has too much")
    left.legend(loc="upper left")
    first = True
    for (eta, found), colour in zip(data["falls"].items(), ordered_colours(len(data["falls"])), strict=True):
        for name, style, label in (
            ("flow", "-", "theory flow"),
            ("still", ":", "Theorem 4's B"),
            ("moving", "--", "B with a norm that moves"),
        ):
            right.plot(found["t"], found[name], color=colour, linestyle=style, label=label if first else None)
        high = float(np.log10(eta))
        place = {"xy": (found["t"][-1], found["moving"][-1] - 0.06), "ha": "right", "va": "top"}
        right.annotate(rf"$\eta_Z = 10^{{{high:.0f}}}$", **place, color=colour)
        first = False
    right.set(xscale="log", xlabel="t (SGD steps)", ylabel="fall of the common token's logit, -z", ylim=(0, 3))
    right.legend(loc="upper left")
    figure.suptitle("Theorem 4's approximations: two errors of opposite sign, and a norm that moves")
    return figure


FIGURES = (Entry("approximations", "Scan and Snap", drawn, _drawn, claims=_how_large),)
