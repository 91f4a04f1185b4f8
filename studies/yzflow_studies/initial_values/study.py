"""Two distinct tokens of a class and their initial logits: who leads, and how long the other takes to be suppressed.

Proofs: `theory.scan_and_snap.proofs.initial_values`. Paper: Tian, Wang, Chen, Du (2023), arXiv 2305.16380, Section 5.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from dynamics.support import checks
from theory import attention
from theory.scan_and_snap import initial
from yzflow import intervals
from yzflow.figures.registry import Effort, Entry
from yzflow.figures.style import BLACK, canvas, ordered_colours, styled
from yzflow.papers.scan_and_snap.lengths import said
from yzflow.papers.scan_and_snap.settings import Setting, classes_with_common_shares

SEEDS = range(4800, 4820)
OFFS = (-0.3, -0.1, -0.02, 0.0, 0.02, 0.1, 0.3)
LEVELS = ("theory flow", "modified flow", "full flow")


def setting(k: int, m: int, rho: float, weaker: float, eta_z: float, t: float, **more: Any) -> Setting:
    """Equal classes of one query with a common token and two distinct ones, of which the second has ``weaker`` of P."""
    classes = classes_with_common_shares([rho**0.5] * k, m, distinct=(1.0, weaker))
    return Setting(f"K = {k}, M = {m}, rho = {rho:g}", classes, 1.0, eta_z, t, **more)


def flows(
    k: int, m: int, rho: float, weaker: float, etas_z: Sequence[float], offs: Sequence[float], t: float
) -> dict[str, Any]:
    """Leads at the end, at each level and rate, and whether each leader is that of the start at every recorded time."""
    rows, kept = [], []
    for eta_z in etas_z:
        one = setting(k, m, rho, weaker, eta_z, t)
        row: dict[str, Any] = {"eta_z": eta_z}
        for level in LEVELS:
            found = {off: initial.leads(one, level, off) for off in (*(-off for off in offs), *offs)}
            kept += [bool((lead * off > 0).all()) for off, lead in found.items()]
            row[level.removesuffix(" flow")] = [float(found[off][-1]) for off in offs]
        rows.append(row)
    return {"rows": rows, "kept": all(kept), "n_flows": len(kept), "gap": -math.log(weaker)}


def suppression(
    k: int, m: int, rho: float, eta_y: float, eta_z: float, leads: Sequence[float], wanted: float
) -> dict[str, Any]:
    """ln(eta_Y t/K) at which the leader's attention is ``wanted`` times the other's, by Theorem 4's B = K B_n.

    The lead needs B_n of `theory.scan_and_snap.initial.exponent_needed`; B = ln(1 + 4 Gamma/C_0)/4 and (128) give h.
    """
    c0 = attention.speed_constant(n_classes=k, overlap=rho, vocab_size=m)
    rows = []
    for lead in leads:
        exponent = float(initial.exponent_needed(lead, math.log(wanted)))
        accumulated = c0 * math.expm1(4 * k * exponent) / 4
        x = m / (m - 1) * math.sqrt(2 * eta_y * accumulated / (eta_z * k))
        # M eta_Y t/K = exp(x) - 1 + (M - 1) x
        ln_t = x + math.log(-math.expm1(-x) + (m - 1) * x * math.exp(-min(x, 700.0))) - math.log(m)
        rows.append({"lead": lead, "exponent": exponent, "ln_t": ln_t})
    return {"rows": rows}


def trained(
    k: int, m: int, rho: float, weaker: float, eta_z: float, steps: int, length: int, seeds: Sequence[int]
) -> xr.DataArray:
    """Leads at the end of SGD: (lead at the start, seed)."""
    one = setting(k, m, rho, weaker, eta_z, float(steps), length=length)
    seeds = [checks.integer("seeds", seed, minimum=0) for seed in seeds]
    ends = [[initial.leads(one, "SGD", off, seed=seed)[-1] for seed in seeds] for off in OFFS]
    return xr.DataArray(ends, {"lead": list(OFFS), "seed": seeds}, ["lead", "seed"])


def verdicts(ends: xr.DataArray) -> dict[str, Any]:
    """Mean end of each start with its 95% interval, runs that have the predicted leader, and H1 to H3."""
    rows: list[dict[str, Any]] = []
    for off in OFFS:
        end = ends.sel(lead=off)
        rows.append(
            {
                "lead": off,
                "end": {"mean": float(end.mean()), "half": float(intervals.of_mean(end))},
                "led": int((end * off > 0).sum()),
                "ahead": int((end > 0).sum()),
            }
        )
    of_all = {
        distance: sum(row["led"] for row in rows if abs(row["lead"]) == distance) for distance in (0.02, 0.1, 0.3)
    }
    shifted = rows[OFFS.index(0.0)]["end"]
    runs = 2 * ends.sizes["seed"]
    return {
        "rows": rows,
        "far": of_all[0.3],
        "near": of_all[0.02],
        "runs": runs,
        "H1": _said(of_all[0.3] == runs, of_all[0.3] < 0.9 * runs),
        "H2": _said(of_all[0.02] < 0.9 * runs, of_all[0.02] == runs),
        "H3": _said(shifted["mean"] + shifted["half"] < 0, shifted["mean"] - shifted["half"] > 0),
    }


def _said(supported: bool, refuted: bool) -> str:
    return "supported" if supported else "refuted" if refuted else "open"


# The figure

_SIZES: dict[str, Any] = {"k": 2, "m": 1000, "rho": 0.3, "weaker": 0.5, "eta_z": 0.5}
_LENGTH = 128


def _drawn(effort: Effort) -> dict[str, Any]:
    one = setting(**_SIZES, t=100.0 if effort.quick else 1e4)
    offs = [off for off in OFFS if off]
    times = np.concatenate([[0.0], np.geomspace(0.01, one.t_end, 120)])
    leads = {level: {off: initial.leads(one, level, off) for off in offs} for level in ("theory flow", "full flow")}
    seeds = list(SEEDS)[:2] if effort.quick else list(SEEDS)
    ends = trained(**_SIZES, steps=50 if effort.quick else 200, length=_LENGTH, seeds=seeds)
    return {"t": times, "leads": leads, "ends": ends}


def _who_leads(data: Mapping[str, Any]) -> str:
    kept = all((lead * off > 0).all() for level in data["leads"].values() for off, lead in level.items())
    most = max(abs(lead[-1] / off) for level in data["leads"].values() for off, lead in level.items())
    told = f"Every leader of the flows is {'' if kept else 'not '}that of the start"
    return f"{told}; no lead is above {most:.2g} times it. {said(_LENGTH)}"


@styled
def drawn(data: Mapping[str, Any]) -> Figure:
    """Who leads of two distinct tokens of a class: the initial logits decide, and training adds little.

    The second token has half the probability of the first, and starts so far above in its logit that the two tie but
    for the lead that is shown, ln(f_2/f_1). Left: over time in the theory flow and, dashed, in the full flow.
    Right: its end in runs of SGD with finite sequences, one dot a seed, against its start; on the line nothing has
    changed.

    Parameters
    ----------
    data : mapping
        ``t``, ``leads`` by level and start, and ``ends`` from `trained`.
    """
    figure = canvas(figsize=(10, 4))
    left, right = figure.subplots(1, 2)
    offs = [off for off in OFFS if off]
    for off, colour in zip(offs, ordered_colours(len(offs)), strict=True):
        for level, style in (("theory flow", "-"), ("full flow", "--")):
            label = level if off == offs[0] else None
            left.plot(data["t"][1:], data["leads"][level][off][1:], color=colour, linestyle=style, label=label)
    left.axhline(0, color=BLACK, linewidth=0.8)
    left.set(xscale="log", xlabel="t (SGD steps)", ylabel=r"lead, $\ln(f_2/f_1)$", title="flows")
    left.legend(loc="upper left")
    starts = np.repeat(OFFS, data["ends"].sizes["seed"])
    right.plot([-0.35, 0.35], [-0.35, 0.35], color=BLACK, linewidth=0.8)
    right.axhline(0, color=BLACK, linewidth=0.8, linestyle=":")
    right.plot(starts, data["ends"].values.ravel(), "o", markersize=3.5, alpha=0.5)
    right.set(xlabel="lead at the start", ylabel="lead at the end", title=f"SGD, T = {_LENGTH}")
    figure.suptitle("Initial logits decide who leads of two tokens, and training adds little")
    return figure


FIGURES = (Entry("initial_values", "Scan and Snap", drawn, _drawn, claims=_who_leads),)
