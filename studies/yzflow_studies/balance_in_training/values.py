"""Theorems 1 and 2 and Corollary 1 of bounded Dyck on layers along their training."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from yzflow_bounded_dyck import training as dyck

from theory.values import Study
from yzflow import intervals
from yzflow_studies.balance_in_training import study

_KINDS = ("residual", "miss", "violation", "excess", "allowed", "borne", "short", "long", "longest", "exposed")


def along(steps: int, seeds: Sequence[int]) -> dict[str, Any]:
    """Means over seeds with 95% intervals at the end of SGD and at the end of the flow, and verdicts."""
    times = [time for time in study.TIMES if time <= steps]
    runs = study.followed(seeds=seeds, times=times)
    rows, flows = [], []
    for name, cell in study.CELLS.items():
        sgd = runs.sel(cell=name, level="SGD")
        rows.append({"cell": name, **_means(sgd.isel(time=-1)), "start": _means(sgd.isel(time=0)), **_top(sgd)})
        if cell.flow_until:
            until = {"cell": name, "time": cell.flow_until}
            both = {level: _means(runs.sel(level=level, **until)) for level in study.LEVELS}
            flows.append({"cell": name, "until": int(cell.flow_until), "flow": both["flow"], "sgd": both["SGD"]})
    return {
        "rows": rows,
        "flows": flows,
        "verdicts": study.verdicts(runs),
        "losses": [_loss(name, runs.sel(cell=name, level="SGD").isel(time=-1)) for name in study.CELLS],
        "nearer": int(runs["nearer"].sel(level="SGD").sum()),
        "none_balanced": bool((runs["miss"].sel(level="SGD").isel(time=-1) > 0).all()),
        "listed": study.PREFIXES,
        "per_pair": _per_pair(),
        "n_seeds": runs.sizes["seed"],
        "broken": int(runs["broken"].sum()),
        "layers": int(runs["broken"].notnull().sum()),
    }


def _means(runs: xr.Dataset) -> dict[str, Any]:
    """By measure, and how many layers Theorem 2 rules out at `study.LENGTH`."""
    found: dict[str, Any] = {kind: _mean(runs[kind]) for kind in _KINDS}
    found["least_long"], found["most_long"] = float(runs["long"].min()), float(runs["long"].max())
    found["ruled_out"] = float(runs["ruled_out"].mean())
    return found


def _per_pair() -> float:
    """Factor by which one more pair divides the weight of a prefix, between the first level and the last."""
    q = dyck.LANGUAGE.open_probability
    return dyck.LANGUAGE.n_types / (q * (1 - q))


def _mean(values: xr.DataArray) -> dict[str, float]:
    return {"mean": float(values.mean("seed")), "half": float(intervals.of_mean(values))}


def _top(runs: xr.Dataset) -> dict[str, Any]:
    """The largest mean residual along the training, and when it was."""
    mean = runs["residual"].mean("seed")
    return {"top": float(mean.max()), "top_time": int(mean["time"].values[np.argmax(mean.values)])}


def _loss(name: str, runs: xr.Dataset) -> dict[str, Any]:
    """Findings of the cross-entropy on outputs: its excess on short prefixes, and how loose the bound of S / P is."""
    finite = runs["slack"].where(np.isfinite(runs["slack"]), drop=True)
    return {
        "cell": name,
        "excess": _mean(runs["exact_excess"]),
        "squares": _mean(runs["squares"]),
        "left": float(runs["left"].max()),
        "says": float(runs["says"].mean()),
        "slack": f"{float(finite.min()):,.0f}" if finite.size else "none",
    }


STUDIES = (
    Study(
        "along",
        along,
        {"steps": max(study.TIMES), "seeds": list(study.SEEDS)},
        ("trained on the last positions of prefixes, k = 2, D = 4", "plain SGD at the rate 1"),
        quick=False,
        tolerance=0.05,
    ),
)
