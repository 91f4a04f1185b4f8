"""Training of a linear query on sparse averaging: just below and at the width that is needed, and over time."""

from collections.abc import Sequence

import numpy as np
from yzflow_sparse_averaging.trained.qsa import train_qsa

from theory.values import Study


def width(n: int, q: int, m: int, steps: int, seeds: int) -> dict:
    """The mean L1 distance of attention from its target at the end: least and largest over seeds."""
    found = [
        float(train_qsa(n, q, embedding_dim=m, steps=steps, record_every=steps, seed=seed)["distance"].isel(time=-1))
        for seed in range(seeds)
    ]
    return {"low": min(found), "high": max(found)}


def over_time(n: int, q: int, m: int, dimension: int, times: Sequence[int], seeds: int) -> dict:
    """The same at several times, mean over seeds, with vectors of this dimension."""
    steps = times[-1]
    runs = [
        train_qsa(
            n, q, embedding_dim=m, value_dim=dimension, steps=steps, record_every=steps, times=list(times), seed=seed
        )["distance"]
        for seed in range(seeds)
    ]
    return {"distance": [float(np.mean([run.sel(time=time) for run in runs])) for time in times]}


STUDIES = (
    *(
        Study(f"m{m}", width, {"n": 20, "q": 3, "m": m, "steps": 40_000, "seeds": 4}, quick=False, tolerance=1e-2)
        for m in (18, 19)
    ),
    *(
        Study(
            f"dimension{d}",
            over_time,
            {"n": 20, "q": 3, "m": 24, "dimension": d, "times": times, "seeds": 5},
            quick=False,
            tolerance=1e-2,
        )
        for d, times in ((8, [0, 100, 1000, 40_000]), (5, [1000, 40_000]))
    ),
)
