"""Heads pruned by a penalty while the others adapt: accuracy, heads left, stack-likeness (Appendix B.2)."""

from collections.abc import Sequence

import numpy as np
import xarray as xr
from scipy.stats import spearmanr

from theory.values import Study
from yzflow import intervals
from yzflow_studies.precise_dyck import precise
from yzflow_studies.pruned_heads import study

STORE = "pruned_heads.store"  # in the repository's root, where git ignores it: what it holds is not run again


def mean(values: xr.DataArray | np.ndarray) -> dict[str, float]:
    """Mean over seeds that have a number, with half of its 95% interval."""
    some = np.asarray(values, dtype=float)
    some = some[np.isfinite(some)]
    found = xr.DataArray(some, dims="seed")
    return {"mean": float(found.mean()), "half": float(intervals.of_mean(found))}


def within(runs: xr.Dataset) -> np.ndarray:
    """Rank correlation of cost and stack share within upper layers, mean over those where it is defined: (seed,)."""
    found = []
    for seed in runs["seed"].values:
        one = runs.sel(seed=seed)
        pairs = [(one["cost"].values[layer], one["share_before"].values[layer]) for layer in range(1, study.LAYERS)]
        ranks = [spearmanr(*pair).statistic for pair in pairs if np.ptp(pair[0]) > 0]
        found.append(np.mean(ranks) if ranks else np.nan)
    return np.array(found)


def adapted(penalties: Sequence[float], seeds: Sequence[int], steps: int, settle: int, most_steps: int) -> dict:
    """Rows by penalty, and the number and the verdict of each hypothesis."""
    runs = study.pruned(
        penalty=penalties, seeds=seeds, steps=steps, settle=settle, most_steps=most_steps, store=STORE
    ).transpose("penalty", "seed", "layer", "head")
    left = runs["left"].astype(bool).sum("head")
    rows = [
        {
            "penalty": float(penalty),
            "left": float(left.sel(penalty=penalty).sum("layer").mean()),
            "layers": [float(left.sel(penalty=penalty, drop=True).isel(layer=n).mean()) for n in range(study.LAYERS)],
            **{name: mean(runs[name].sel(penalty=penalty)) for name in ("accuracy", "fixed", "same")},
            "share": mean(study.of_survivors(runs, "share_after").sel(penalty=penalty)),
            "place": mean(study.of_survivors(runs, "kept_place").sel(penalty=penalty)),
        }
        for penalty in runs["penalty"].values
    ]
    tested = study.by_seed(runs)
    cost = runs["cost"].isel(penalty=0)
    return {
        "rows": rows,
        "heads": study.LAYERS * study.HEADS,
        "before": mean(runs["before"].isel(penalty=0)),
        "least_fixed": float(runs["fixed"].sel(penalty=penalties[3]).min()),
        "share_before": float(runs["share_before"].mean()),
        "tested": {name: mean(values) for name, values in tested.items()},
        "verdicts": study.verdicts(runs),
        "n_seeds": runs.sizes["seed"],
        "cost": [float(cost.isel(layer=layer).mean()) for layer in range(study.LAYERS)],
        "place_first": float(runs["kept_place"].isel(penalty=0, layer=0).mean()),
        "place_upper": float(runs["kept_place"].isel(penalty=0, layer=slice(1, None)).mean()),
        "within": mean(within(runs.isel(penalty=0))),
    }


STUDIES = (
    Study(
        "adapted",
        adapted,
        {
            "penalties": list(study.PENALTIES),
            "seeds": list(study.SEEDS),
            "steps": study.STEPS,
            "settle": study.SETTLE,
            "most_steps": precise.MOST_STEPS,
        },
        ("GPTs of three layers with four heads, k = 2, D = 4, words",),
        quick=False,
        tolerance=0.05,
    ),
)
