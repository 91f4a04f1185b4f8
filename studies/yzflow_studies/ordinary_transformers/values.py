"""Ordinary transformers on text: entropy of attention by learning rate (Figs. 7 and 10 of Scan and Snap)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from theory.values import Study
from yzflow.intervals import standard_error
from yzflow_studies.ordinary_transformers import study as deep_text


def uniform(length: int) -> dict[str, float]:
    """Mean entropy of uniform attention over the positions of a window."""
    return {"entropy": float(np.log(np.arange(1, length + 1)).mean())}


def spread(values: xr.DataArray) -> dict[str, float]:
    """Mean and standard error over seeds."""
    return {"mean": float(values.mean()), "half": float(standard_error(values))}


def rates(
    text: str, vocabulary: int, length: int, rates: Sequence[float], steps: int, batch: int, records: int, seeds: int
) -> dict[str, Any]:
    """Entropy of attention and loss on held-out windows after the same number of steps, by learning rate."""
    tokens = deep_text.read(text, vocabulary)
    runs = deep_text.trained(
        tokens, rates=rates, steps=steps, length=length, batch_size=batch, records=records, seeds=seeds
    )
    entropy = runs["entropy"].mean("head").isel(layer=0)
    end = entropy.isel(time=-1)
    sooner = round(steps * rates[-2] / rates[-1])  # the same learning rate x steps
    return {
        "tokens": int(tokens.size),
        "rows": [
            {
                "rate": rate,
                "entropy": spread(end.sel(learning_rate=rate)),
                "loss": float(runs["loss"].isel(time=-1).sel(learning_rate=rate).mean()),
            }
            for rate in rates
        ],
        "start": float(entropy.isel(time=0).mean()),
        "rises_first": bool((entropy.max("time") > entropy.isel(time=0)).all()),
        "same_time": {
            "product": steps * rates[-2],
            "step": sooner,
            "large": spread(entropy.sel(learning_rate=rates[-1], time=sooner)),
            "small": spread(end.sel(learning_rate=rates[-2])),
        },
    }


def moves(
    text: str, vocabulary: int, rate: float, steps: int, batch: int, records: int, layers: int
) -> dict[str, float]:
    """How fast maps of the first layer move, one seed: at the start, where it is slowest in the first half, after that
    at most, and at the end."""
    runs = deep_text.trained(
        deep_text.read(text, vocabulary),
        rates=[rate],
        seeds=1,
        n_layers=layers,
        steps=steps,
        batch_size=batch,
        records=records,
    )
    line = deep_text.movement(runs.isel(learning_rate=0, seed=0)).isel(layer=0).values
    lowest = int(line[: line.size // 2].argmin())
    return {"start": line[0], "plateau": line[lowest], "burst": line[lowest:].max(), "end": line[-1]}


def diverges(
    text: str, vocabulary: int, length: int, rates: Sequence[float], steps: int, batch: int, norm: str
) -> dict[str, Any]:
    """At which step runs at large rates diverge (-1: not at all), and how far attention then is from uniform."""
    # With the paper's own normalisation there is no residual stream and no feed-forward part.
    paper: dict[str, Any] = {"norm": "mixture", "norm_kind": "unit", "residual": False, "mlp_width": 0}
    options = {"seeds": 1, "length": length, "batch_size": batch, **(paper if norm == "paper" else {})}
    runs = deep_text.trained(deep_text.read(text, vocabulary), rates=rates, steps=steps, **options).isel(seed=0)
    rows = []
    for rate in rates:
        one = runs.sel(learning_rate=rate)
        at, end = int(one["diverged"]), float(one["entropy"].isel(time=-1).mean())
        rows.append({"rate": rate, "at": at} | ({"entropy": end} if at < 0 else {}))
    return {"rows": rows}


SOTU: dict[str, Any] = {"text": "sotu", "vocabulary": 1000}
SGD = ("plain SGD, one layer of width 32 without positions, LayerNorm before each part, tied embedding",)
STUDIES = (
    Study("short_windows", uniform, {"length": 64}),
    Study("long_windows", uniform, {"length": 128}),
    Study(
        "rates",
        rates,
        SOTU | {"length": 64, "rates": [0.05, 0.1, 0.2, 0.4], "steps": 240, "batch": 8, "records": 12, "seeds": 5},
        SGD,
        quick=False,
        tolerance=1e-3,
    ),
    *(
        Study(
            name,
            moves,
            SOTU | {"rate": 0.2, "steps": 600, "batch": 16, "records": 20, "layers": layers},
            SGD,
            quick=False,
            tolerance=1e-2,
        )
        for name, layers in (("moves", 1), ("moves_deep", 3))
    ),
    Study(
        "diverges",
        diverges,
        SOTU | {"vocabulary": 10000, "length": 128, "rates": [1.0, 1.6], "steps": 40, "batch": 8, "norm": "usual"},
        SGD,
        quick=False,
        tolerance=1e-2,
    ),
    Study(
        "normalised",
        diverges,
        SOTU | {"vocabulary": 2000, "length": 64, "rates": [1.0, 2.0, 5.0], "steps": 600, "batch": 16, "norm": "paper"},
        ("one seed",),
        quick=False,
        tolerance=1e-2,
    ),
)
