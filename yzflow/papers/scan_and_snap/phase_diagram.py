"""The transition over K, M, overlap and learning rates, by ensembles of flows, with time in units of t*.

A flow depends on eta_Y t and eta_Z t alone, and eta_Y t* on K and M. So with the rates eta_Y t* and eta_Z t* a flow
runs in units of t*, and K, M, rho and eta_Z / eta_Y are all that a phase diagram can depend on: eta_Y sets t* and
nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from dynamics import gradient_flow_ensemble
from dynamics.support import checks
from theory import attention, decoder

LEVELS = ("theory", "modified", "full")
AXES = ("n_classes", "vocab_size", "overlap", "ratio")
# How long the flows are, in t*: attention moves on like ln t, so that the share done depends on where one stops.
SPAN = 1000.0
_DISTINCT = np.array([1.0, 0.8, 0.6, 0.4, 0.2])
# Where attention is slow and overlaps are small, logits stay below 1e-6.
_TOLERANCES: dict[str, Any] = {"rtol": 1e-8, "atol": 1e-14}


def in_transition_times(sizes: Mapping[str, Any]) -> dict[str, xr.DataArray]:
    """Settings of `gradient_flow_ensemble` whose unit of time is t*.

    Parameters
    ----------
    sizes : mapping
        ``n_classes`` (K), ``vocab_size`` (M), ``overlap`` (rho) and ``ratio`` (eta_Z / eta_Y): numbers or data arrays.
    """
    for name in AXES:
        if name not in sizes:
            raise checks.reject("sizes", f"have the keys {', '.join(AXES)}", f"none called {name!r}")
    given = {name: xr.DataArray(sizes[name]) for name in AXES}
    outside = (given["overlap"] <= 0) | (given["overlap"] >= 1)
    if outside.any():
        raise checks.reject("sizes['overlap']", "lie between 0 and 1", float(given["overlap"].where(outside).max()))
    both = xr.broadcast(given["n_classes"], given["vocab_size"])
    pairs, which = np.unique(np.stack([part.values.ravel() for part in both]), axis=1, return_inverse=True)
    scaled = [decoder.transition_time(n_classes=int(k), vocab_size=int(m), eta_y=1.0) for k, m in pairs.T]
    unit = both[0].copy(data=np.array(scaled)[which].reshape(both[0].shape))
    return {
        "n_classes": given["n_classes"],
        "vocab_size": given["vocab_size"],
        "common": np.sqrt(given["overlap"] / (1 - given["overlap"]) * (_DISTINCT**2).sum()),
        "distinct": xr.DataArray(_DISTINCT, dims="distinct_token"),
        "eta_y": unit,
        "eta_z": unit * given["ratio"],
    }


def diagram(
    sizes: Mapping[str, Any],
    *,
    levels: Sequence[str] = LEVELS,
    span: float = SPAN,
    path: str | os.PathLike | None = None,
    progress: bool = False,
) -> xr.Dataset:
    """When attention moves fastest, and how much of its change is done at t*, at every setting.

    Parameters
    ----------
    sizes : mapping
        As in `in_transition_times`.
    levels : sequence of str
        Some of "theory", "modified" and "full".
    span : float
        How long the flows are, in t*.
    path : path-like, optional
        A folder for the ensembles, to be taken up again.
    progress : bool
        Show progress on standard error.

    Returns
    -------
    xarray.Dataset
        Over ``level`` and the dimensions of the sizes: ``fastest_common`` and ``fastest_distinct`` (the most frequent
        one), when their logits move fastest, in t*, nan where that is after ``span``; ``done``, the share of the change
        of attention up to ``span`` that is done at t*; and ``change``, that change as total variation.
    """
    span = checks.positive("span", span)
    if span <= 1:
        raise checks.reject("span", "be above 1, in t*", span)
    levels = [checks.one_of("levels", level, LEVELS) for level in checks.listed("levels", levels, "be a list of words")]
    settings = in_transition_times(sizes)
    shares = xr.concat([settings["common"].expand_dims("kind"), _kinds(settings["distinct"])], "kind")
    start = shares / shares.sum("kind")
    parts = []
    for level in levels:
        flows = gradient_flow_ensemble(
            settings,
            t_end=span,
            times=[1.0, span],
            decoder=level,
            record=["attention"],
            **_TOLERANCES,
            path=None if path is None else Path(path) / level,
            progress=progress,
        )
        moved = np.abs(flows["attention"].drop_vars("kind") - start).sum("kind", skipna=False)
        parts.append(
            xr.Dataset(
                {
                    "fastest_common": flows["fastest_time"].isel(kind=0, drop=True),
                    "fastest_distinct": flows["fastest_time"].isel(kind=1, drop=True),
                    "done": moved.isel(time=0, drop=True) / moved.isel(time=1, drop=True),
                    "change": moved.isel(time=1, drop=True) / 2,
                    "failed": flows["failed"],
                }
            ).reset_coords(drop=True)
        )
    found = xr.concat(parts, xr.DataArray(list(levels), dims="level", name="level"))
    return found.assign_coords({name: xr.DataArray(sizes[name]) for name in AXES}).assign_attrs(span=span)


def _kinds(distinct: xr.DataArray) -> xr.DataArray:
    return distinct.rename(distinct_token="kind")


def gamma_curves(vocab_sizes: Sequence[int], times: np.ndarray) -> xr.Dataset:
    """gamma(t) / gamma(t*) over t / t*, which neither K nor eta_Y changes, and where it has fallen by half.

    Parameters
    ----------
    vocab_sizes : sequence of int
    times : array
        In t*.
    """
    curves, halves = [], []
    for vocab_size in vocab_sizes:
        own = decoder.Decoder(vocab_size, 1, 1.0)
        curves.append(own.gamma(times * own.transition_time) / own.peak_gamma)
        late = np.geomspace(1, 100, 20_001)
        fallen = own.gamma(late * own.transition_time) / own.peak_gamma
        halves.append(float(np.interp(-0.5, -fallen, late)))
    return xr.Dataset(
        {"gamma": (("vocab_size", "time"), np.array(curves)), "half": ("vocab_size", halves)},
        {"vocab_size": list(vocab_sizes), "time": times},
    )


def start_constant(level: str, *, n_classes: int, vocab_size: int, overlap: float) -> float:
    """C_0 with which B of Theorem 4 is exact at the start, for every K, M and rho.

    That of `theory.attention.speed_constant` with M; the full flow begins s times as fast
    (`theory.attention.full_flow_slowdown`).

    Parameters
    ----------
    level : "theory", "modified" or "full"
    n_classes, vocab_size, overlap : float
        K, M, rho.
    """
    checks.one_of("level", level, LEVELS)
    sizes: dict[str, Any] = {"n_classes": n_classes, "vocab_size": vocab_size, "overlap": overlap}
    return attention.speed_constant(**sizes) / (attention.full_flow_slowdown(**sizes) if level == "full" else 1)


def falls(
    n_settings: int,
    *,
    seed: int = 0,
    levels: Sequence[str] = LEVELS,
    times: np.ndarray | None = None,
    progress: bool = False,
) -> xr.Dataset:
    """The fall of the common token's logit beside Theorem 4's B(t), at settings drawn at random.

    In units of t*, B = 1/4 ln(1 + 2 kappa ((M - 1)/M)^2 x^2) with kappa = (eta_Z / eta_Y) K / C_0 and the margin
    x = M h, which as a function of t / t* depends on M alone: where the law holds, K, rho and the ratio enter as one
    number.

    Parameters
    ----------
    n_settings : int
        K from 2 to 50, M from max(K, 10) to 1e5, rho from 1e-3 to 0.5, eta_Z / eta_Y from 1e-4 to 1, log-uniform.
    seed : int
    levels : sequence of str
    times : array, optional
        In t*. Default: 25 from 0.03 to 1000.
    progress : bool

    Returns
    -------
    xarray.Dataset
        ``fall(level, setting, time)``, -z of the common token; ``exponent(setting, time)``, B of Theorem 4; and
        ``from_start(level, setting, time)``, the same with the constant of `start_constant`.
    """
    n_settings, seed = checks.integer("n_settings", n_settings, minimum=1), checks.integer("seed", seed, minimum=0)
    times = np.geomspace(0.03, SPAN, 25) if times is None else times
    rng = np.random.default_rng(seed)

    def drawn(lowest: Any, highest: float) -> np.ndarray:
        return np.exp(rng.uniform(np.log(lowest), np.log(highest), n_settings))

    n_classes = np.round(drawn(2, 50)).astype(int)
    vocab_size = np.round(drawn(np.maximum(n_classes, 10), 1e5)).astype(int)
    values = {"n_classes": n_classes, "vocab_size": vocab_size, "overlap": drawn(1e-3, 0.5), "ratio": drawn(1e-4, 1)}
    sizes = {name: xr.DataArray(value, dims="setting") for name, value in values.items()}
    settings = in_transition_times(sizes)
    exponent, exact = np.empty((n_settings, times.size)), np.empty((len(levels), n_settings, times.size))
    for i in range(n_settings):
        own: dict[str, Any] = {"vocab_size": int(vocab_size[i]), "n_classes": int(n_classes[i])}
        rho = float(values["overlap"][i])
        given = own | {name: float(settings[name][i]) for name in ("eta_y", "eta_z")}
        paper = attention.speed_constant(n_classes=own["n_classes"], overlap=rho)
        exponent[i] = attention.growth_exponent(times, **given, c0=paper)
        for j, level in enumerate(levels):
            exact[j, i] = attention.growth_exponent(times, **given, c0=start_constant(level, **own, overlap=rho))
    found = [
        -gradient_flow_ensemble(
            settings, t_end=float(times[-1]), times=times, decoder=level, record=["z"], progress=progress, **_TOLERANCES
        )["z"].isel(kind=0, drop=True)
        for level in levels
    ]
    fall = np.stack([part.transpose("setting", "time").values for part in found])
    return xr.Dataset(
        {
            "fall": (("level", "setting", "time"), fall),
            "exponent": (("setting", "time"), exponent),
            "from_start": (("level", "setting", "time"), exact),
        },
        {
            "level": list(levels),
            "time": times,
            **{name: ("setting", value) for name, value in values.items()},
        },
    )
