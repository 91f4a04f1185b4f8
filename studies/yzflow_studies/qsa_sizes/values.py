"""One unit trained on sparse averaging at N = 100 and N = 200: distance from the target by m, and steps needed."""

import math
from collections.abc import Sequence

import numpy as np
import xarray as xr
from yzflow_sparse_averaging import averaging
from yzflow_sparse_averaging import instances as tasks

from theory.values import Study
from yzflow import intervals
from yzflow_studies.qsa_sizes import runs, study


def learnt(seeds: Sequence[int]) -> dict:
    """Distances at the end by cell and m, steps needed, and the verdict on each hypothesis."""
    found = study.learning(seeds=seeds)
    rows = []
    for name, run in found.items():
        n, q = study.SIZES[study.CELLS[name].size]
        for m in run["dimension"].values:
            own = run.sel(dimension=m)
            end = own.isel(time=-1)
            steps = [study.steps_needed(one) for one in own["distance"].transpose("seed", "time")]
            rows.append(
                {
                    "query": study.CELLS[name].query,
                    "n": n,
                    "q": q,
                    "m": int(m),
                    "steps": study.CELLS[name].steps,
                    "distance": _mean(end["distance"]),
                    "largest": _mean(end["largest_distance"]),
                    "found": float(end["found"].mean()),
                    "certified": float(own["certified"].mean()),
                    "needed": f"{max(steps):.0f}" if math.isfinite(max(steps)) else "-",
                }
            )
    return {
        "rows": rows,
        "verdicts": study.judged(found),
        "hidden": runs.HIDDEN,
        "sets": runs.N_TEST,
        "n_seeds": len(seeds),
    }


def _mean(values: xr.DataArray) -> dict[str, float]:
    return {"mean": float(values.mean("seed")), "half": float(intervals.of_mean(values))}


def constructed(n: int, q: int, sets: int, seed: int) -> dict:
    """Sizes that constructions need: m of the moment curve and of random keys, and what these can do at 2 q ln N."""
    m = math.ceil(2 * q * math.log(n))
    drawn = tasks.random_subsets(n, q, size=sets, rng=np.random.default_rng(seed))
    keys = averaging.random_keys(n, m, rng=np.random.default_rng(seed + 1))
    return {
        "curve": 2 * q,
        "bits": math.ceil(q * math.log(n)),
        "m": m,
        "certified": runs.certified(keys, drawn),
        "closest": averaging.smallest_dimension(n, q, rng=np.random.default_rng(seed)),
    }


STUDIES = (
    Study("learnt", learnt, {"seeds": list(study.SEEDS)}, quick=False, tolerance=0.05),
    Study("constructed", constructed, {"n": 100, "q": 8, "sets": 128, "seed": 0}),
    Study("constructed_200", constructed, {"n": 200, "q": 16, "sets": 128, "seed": 0}),
)
