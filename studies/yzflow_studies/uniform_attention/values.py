"""Footnote 4: layers whose attention is held uniform, beside those that train it."""

from collections.abc import Sequence

import numpy as np
import xarray as xr
from yzflow_bounded_dyck import training as dyck

from theory.values import Study
from yzflow import intervals
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


def replicated(seeds: Sequence[int], data_seeds: Sequence[int], scale: float) -> dict:
    """Gain at length of attention held uniform on prefixes drawn anew, seed by seed, by decoder and data seed.

    The mean over all seeds has Student's interval over seeds, those of one data seed taken for independent.
    """
    options = {"seeds": seeds, "scale": scale, "store": STORE}
    gains = []
    for data_seed in data_seeds:
        accuracy = study.trained(data_seed=data_seed, **options)["accuracy"].sel(length=study.LONG, query="close")
        gains.append(accuracy.sel(held="uniform") - accuracy.sel(held="trained"))
    rows = [
        {"data_seed": data_seed, **{key: _mean(gain.sel(decoder=name)) for key, name in DECODERS.items()}}
        for data_seed, gain in zip(data_seeds, gains, strict=True)
    ]
    whole = xr.concat([gain.assign_coords(seed=range(len(seeds))) for gain in gains], "data_seed")
    runs = whole.rename(seed="start").stack(seed=("data_seed", "start"))
    together = {key: _mean(runs.sel(decoder=name)) for key, name in DECODERS.items()}
    return {
        "rows": rows,
        "together": together,
        "draws": len(data_seeds),
        "helps": together["feed_forward"]["mean"] > together["feed_forward"]["half"],
        "replicated": {
            "what": "what attention held uniform gains at length behind a linear decoder",
            "data_seeds": list(data_seeds),
            "seeds": len(seeds) * len(data_seeds),
            **together["linear"],
        },
    }


def _mean(values: xr.DataArray) -> dict[str, float]:
    return {"mean": float(values.mean("seed")), "half": float(intervals.of_mean(values))}


DECODERS = {"linear": "linear decoder", "feed_forward": "feed-forward part"}
STORE = "uniform_attention.store"  # in the repository's root, where git ignores it: what it holds is not trained again
STUDIES = (
    Study(
        "footnote",
        footnote,
        {"steps": dyck.STEPS, "seeds": list(study.SEEDS), "data_seed": study.DATA_SEED, "scale": study.SCALE},
        ("trained on the last positions of prefixes, k = 2, D = 4",),
        quick=False,
        tolerance=0.05,
    ),
    Study(
        "replicated",
        replicated,
        {"seeds": list(range(300, 312)), "data_seeds": [2027, 2028], "scale": study.SCALE},
        quick=False,
        tolerance=0.05,
    ),
)
