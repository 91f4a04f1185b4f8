"""Training of a linear query on sparse averaging: just below and at the width that is needed, and over time."""

from collections.abc import Sequence

import numpy as np

from dynamics.units.qsa import train_qsa
from theory.values import Study


def widths(n: int, q: int, m: Sequence[int], steps: int, seeds: int) -> dict:
    """The mean L1 distance of attention from its target at the end: least and largest over seeds, by width."""
    rows = []
    for width in m:
        found = [
            float(
                train_qsa(n, q, embedding_dim=width, steps=steps, record_every=steps, seed=seed)["distance"].isel(
                    time=-1
                )
            )
            for seed in range(seeds)
        ]
        rows.append({"m": width, "low": min(found), "high": max(found)})
    return {"rows": rows}


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
    Study("widths", widths, {"n": 20, "q": 3, "m": [18, 19], "steps": 40_000, "seeds": 4}, quick=False),
    *(
        Study(
            f"dimension{d}",
            over_time,
            {"n": 20, "q": 3, "m": 24, "dimension": d, "times": times, "seeds": 5},
            quick=False,
        )
        for d, times in ((8, [0, 100, 1000, 40_000]), (5, [1000, 40_000]))
    ),
)
