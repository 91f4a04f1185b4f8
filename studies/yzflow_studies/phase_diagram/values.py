"""The transition in units of t*: when attention moves fastest, how much is done at t*, and what collapses."""

from collections.abc import Sequence

import numpy as np
import xarray as xr

from theory import decoder
from theory.values import Study
from yzflow_studies.phase_diagram.study import LEVELS, SPAN, diagram, falls, gamma_curves


def slow(k: int, ratio: float, sizes: Sequence[int], overlaps: Sequence[float]) -> dict:
    """When the most frequent distinct token gains fastest, in t*, and the share of the change up to the end at t*."""
    axes = {"vocab_size": xr.DataArray(sizes, dims="m"), "overlap": xr.DataArray(overlaps, dims="rho")}
    found = diagram({"n_classes": k, "ratio": ratio, **axes})
    full, rest = found.sel(level="full"), found.sel(level=["theory", "modified"])
    done = found["done"].sel(level="theory")
    closed = []
    for m in sizes:
        own = decoder.Decoder(m, 1, 1.0)
        closed.append((own.h(own.transition_time) / own.h(SPAN * own.transition_time)) ** 2)
    rows = [
        {"m": m, "fastest": full["fastest_distinct"][i].values, "full": full["done"][i].values, "closed": share}
        for i, (m, share) in enumerate(zip(sizes, closed, strict=True))
    ]
    return {
        "rows": rows,
        "at_t_star": float(np.abs(rest["fastest_distinct"] - 1).max()),
        "same": float(np.abs(done / np.array(closed)[:, None] - 1).max()),
        "later": bool((full["fastest_distinct"] > 1).all()),
    }


def halves(sizes: Sequence[int]) -> dict:
    """Where gamma has fallen to a half of its peak, in t*."""
    curves = gamma_curves(sizes, np.array([1.0]))
    return {"half": curves["half"].values, "falls": bool((np.diff(curves["half"]) < 0).all())}


def start(n: int, seed: int, at: float) -> dict:
    """How far the fall is from B with the constant that is exact at the start, early."""
    found = falls(n, seed=seed, times=np.array([at]))
    return {"off": float(np.abs(found["fall"] / found["from_start"] - 1).max())}


def shares(ratio: xr.DataArray, where: np.ndarray, low: float, high: float) -> dict:
    """Median and two quantiles over the settings that are meant."""
    low, middle, high = np.nanquantile(ratio.values[where], [low, 0.5, high])
    return {"median": middle, "low": low, "high": high}


def collapse(
    n: int, seed: int, low: float, high: float, slow_below: float, fast_above: float, small: float, large: float
) -> dict:
    """-z / B at settings drawn at random, at t* and at the end, and with Theorem 4's own constant."""
    found = falls(n, seed=seed, times=np.array([1.0, SPAN]))
    rho, rate = found["overlap"].values, found["ratio"].values
    groups = {
        "all": rho > 0,
        "small": (rate < slow_below) & (rho < small),
        "large": (rate < slow_below) & (rho > large),
        "fast": rate > fast_above,
    }
    cells = {}
    for level in LEVELS:
        own = found.sel(level=level)
        exact, paper = own["fall"] / own["from_start"], own["fall"] / own["exponent"]
        cells[level] = {
            name: {
                "start": shares(exact.isel(time=0), where, low, high),
                "end": shares(exact.isel(time=1), where, low, high),
                "paper": shares(paper.isel(time=0), where, low, high),
            }
            for name, where in groups.items()
        }
    shown = [("theory", "all"), ("modified", "all"), ("full", "all"), ("full", "small"), ("full", "large")]
    names = {
        "all": "all",
        "small": f"ratio < {slow_below:g}, rho < {small:g}",
        "large": f"ratio < {slow_below:g}, rho > {large:g}",
    }
    rows = [{"flow": level, "settings": names[name], **cells[level][name]} for level, name in shown]
    return {"rows": rows, "cells": {level: cells[level] for level in ("theory", "modified")}, "span": SPAN}


RTOL = ("five distinct tokens a class, probabilities 1, 0.8, .., 0.2", "rtol 1e-8, atol 1e-14")
STUDIES = (
    Study(
        "slow",
        slow,
        {"k": 10, "ratio": 1e-6, "sizes": [10, 1000, 100_000], "overlaps": [0.1, 0.5]},
        RTOL,
        tolerance=1e-4,
    ),
    Study("halves", halves, {"sizes": [10, 100, 1000, 10_000, 1_000_000]}, ("Theorem 1",), tolerance=1e-5),
    Study("start", start, {"n": 40, "seed": 3, "at": 1e-6}, RTOL, tolerance=0.5),
    Study(
        "falls",
        collapse,
        {
            "n": 2000,
            "seed": 1,
            "low": 0.05,
            "high": 0.95,
            "slow_below": 0.01,
            "fast_above": 0.1,
            "small": 0.05,
            "large": 0.2,
        },
        (*RTOL, "K 2 to 50, M to 100,000, rho 0.001 to 0.5, eta_Z / eta_Y 1e-4 to 1, log-uniform"),
        tolerance=1e-3,
    ),
)
