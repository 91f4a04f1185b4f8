"""Footnote 4: layers whose attention is held uniform, beside those that train it."""

from collections.abc import Sequence

import numpy as np
import xarray as xr

from theory.values import Study
from yzflow import intervals
from yzflow.papers.bounded_dyck import training as dyck
from yzflow_studies.uniform_attention import study


def footnote(steps: int, seeds: Sequence[int], data_seed: int, scale: float) -> dict:
    """Means over seeds with 95% intervals, extremes, and the verdict on each hypothesis."""
    runs = study.trained(steps=steps, seeds=seeds, scale=scale, samples=dyck.data(seed=data_seed))
    rows = []
    for decoder in runs["decoder"].values:
        for held in study.ATTENTION:
            cell = runs.sel(decoder=decoder, held=held)
            short = cell["accuracy"].sel(length=study.SHORT, query="all")
            long = cell["accuracy"].sel(length=study.LONG, query="close")
            error = abs(cell["predicted"].sel(length=study.LONG, query="close") - long)
            rows.append(
                {
                    "decoder": str(decoder),
                    "attention": held,
                    "loss": float(cell["loss"].mean()),
                    "short": _mean(short),
                    "least_short": np.sort(short.values)[:2].tolist(),
                    "long": _mean(long),
                    "least_long": float(long.min()),
                    "most_long": float(long.max()),
                    **({} if error.isnull().any() else {"predicted_off": float(error.mean())}),
                }
            )
    accuracy = runs["accuracy"].sel(length=study.LONG, query="close")
    gain = accuracy.sel(held="uniform") - accuracy.sel(held="trained")
    decided = [
        {"decoder": name, "gain": _mean(gain.sel(decoder=name)), **own} for name, own in study.verdicts(runs).items()
    ]
    return {
        "rows": rows,
        "verdicts": decided,
        "n_seeds": runs.sizes["seed"],
        "brackets": len(dyck.data(seed=data_seed).test[study.LONG]),
    }


def _mean(values: xr.DataArray) -> dict[str, float]:
    return {"mean": float(values.mean("seed")), "half": float(intervals.of_mean(values))}


STUDIES = (
    Study(
        "footnote",
        footnote,
        {"steps": dyck.STEPS, "seeds": list(study.SEEDS), "data_seed": study.DATA_SEED, "scale": study.SCALE},
        ("trained on the last positions of prefixes, k = 2, D = 4",),
        quick=False,
        tolerance=0.05,
    ),
)
