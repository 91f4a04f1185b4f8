"""Theorems 1 and 2 and Corollary 1 of bounded Dyck on layers along their training."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

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
        rows.append({"cell": name, **_means(sgd.isel(time=-1)), "start": _means(sgd.isel(time=0))})
        if cell.flow_until:
            until = {"cell": name, "time": cell.flow_until}
            both = {level: _means(runs.sel(level=level, **until)) for level in study.LEVELS}
            flows.append({"cell": name, "until": int(cell.flow_until), "flow": both["flow"], "sgd": both["SGD"]})
    return {
        "rows": rows,
        "flows": flows,
        "verdicts": study.verdicts(runs),
        "seeds": runs.sizes["seed"],
        "broken": int(runs["broken"].sum()),
        "asked": int(runs["broken"].notnull().sum()),
    }


def _means(runs: xr.Dataset) -> dict[str, Any]:
    """By measure, and how many layers Theorem 2 rules out at `study.LENGTH`."""
    found: dict[str, Any] = {
        kind: {"mean": float(runs[kind].mean("seed")), "half": float(intervals.of_mean(runs[kind]))} for kind in _KINDS
    }
    found["least_long"], found["most_long"] = float(runs["long"].min()), float(runs["long"].max())
    found["ruled_out"] = float(runs["ruled_out"].mean())
    found["none_balanced"] = bool(np.all(runs["miss"] > 0))
    return found


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
