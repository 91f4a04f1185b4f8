"""Training runs on sparse averaging: the setting of the talk's pictures, and the embedding dimension that it needs.

Task and pictures: Sanford, Hsu, Telgarsky (2023), arXiv 2306.02896, and the slides of the talk.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from dynamics.support.progress import Progress
from dynamics.units.qsa import train_qsa

STEPS = 40_000
SHOWN = (0, 1000, STEPS)  # of the slides' pictures
N_TOKENS, SUBSET_SIZE, EMBEDDING_DIM = 20, 3, 24


def training(*, steps: int = STEPS, seed: int = 0, progress: bool = False) -> xr.Dataset:
    """One run of `train_qsa` at N = 20, q = 3, m = 24, recorded at times even in log t, at 100 and every 1000 steps."""
    times = np.append(np.geomspace(1, steps, 61).round().astype(int), min(100, steps))
    return train_qsa(
        N_TOKENS,
        SUBSET_SIZE,
        embedding_dim=EMBEDDING_DIM,
        steps=steps,
        times=times,
        record_every=1000,
        seed=seed,
        progress=progress,
    )


def by_embedding_dim(
    *,
    embedding_dim: Sequence[int] = (16, 17, 18, 19, 20, 24),
    n_tokens: int = N_TOKENS,
    subset_size: int = SUBSET_SIZE,
    seeds: int = 3,
    steps: int = 10_000,
    progress: bool = False,
) -> xr.Dataset:
    """Distance of attention from its target after training, over (embedding_dim, seed): mean and largest over sets."""
    shape = (len(embedding_dim), seeds)
    mean, largest = np.empty(shape), np.empty(shape)
    with Progress("embedding dimensions", enabled=progress) as report:
        for k, (which, seed) in enumerate(np.ndindex(shape)):
            final = train_qsa(
                n_tokens,
                subset_size,
                embedding_dim=embedding_dim[which],
                steps=steps,
                record_every=steps,
                seed=seed,
            ).isel(time=-1)
            mean[which, seed], largest[which, seed] = final["distance"], final["largest_distance"]
            report.update((k + 1) / mean.size, f"m = {embedding_dim[which]}, seed {seed}")
    axes = ("embedding_dim", "seed")
    return xr.Dataset(
        {
            "distance": (axes, mean, {"long_name": "mean L1 distance from 1_y/q", "units": "1"}),
            "largest_distance": (axes, largest, {"long_name": "largest L1 distance", "units": "1"}),
        },
        {"embedding_dim": list(embedding_dim), "seed": np.arange(seeds)},
        {"n_tokens": n_tokens, "subset_size": subset_size, "steps": steps},
    )
