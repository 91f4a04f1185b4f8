"""How far finite sequences move attention beside the full flow: SGD at several lengths and batches, and predicted."""

from collections.abc import Sequence

import numpy as np
import xarray as xr

from dynamics import gradient_flow, linear_noise, sgd
from theory.values import Study
from yzflow.intervals import of_mean
from yzflow.papers.scan_and_snap.settings import single_common_token

DISTINCT = 5


def by_token(z: np.ndarray) -> np.ndarray:
    """(.., logits) -> (.., 6): the common token, then each distinct one in the mean over the classes."""
    own = z[..., 1:].reshape(*z.shape[:-1], -1, DISTINCT).mean(axis=-2)
    return np.concatenate([z[..., :1], own], axis=-1)


def moves(
    k: int,
    m: int,
    rho: float,
    eta_z: float,
    steps: int,
    sizes: Sequence[tuple[int, int]],
    seeds: int,
    foreseen: Sequence[int],
) -> dict:
    """Logits at the end of the full flow, of SGD for pairs of T and b (halves of 95% intervals), and foreseen at T."""
    classes = single_common_token(k, m, rho)
    full = by_token(gradient_flow(classes, eta_y=1.0, eta_z=eta_z, t_end=steps).dataset["z"].values[-1, 0])
    rows = []
    for length, b in sizes:
        options = {"steps": steps, "batch_size": b, "length": length, "momentum": 0.0, "record_every": steps}
        runs = [sgd(classes, eta_y=1.0, eta_z=eta_z, seed=seed, **options).dataset["z"] for seed in range(seeds)]
        z = xr.DataArray(by_token(np.stack([run.values[-1, 0] for run in runs])), dims=("seed", "token"))
        rows.append({"t": length, "b": b, "z": z.mean("seed").values, "half": of_mean(z).values})
    found = linear_noise(classes, eta_y=1.0, eta_z=eta_z, steps=[0, steps]).sel(time=steps)
    drift, shift = (by_token(found[name].values) for name in ("z", "shift"))
    predicted = [{"t": t, "z": drift + shift / (t - 1)} for t in foreseen]
    # The row of each length with the batch that is not the smallest nor the largest.
    usual = {row["t"]: row["z"] for row in rows if row["b"] == sizes[0][1]}
    short, smallest = usual[foreseen[-1]], min(b for _, b in sizes)
    return {
        "flow": full,
        "rows": rows,
        "half_smallest": max(row["half"][1:].max() for row in rows if row["b"] == smallest),
        "half_rest": max(row["half"][1:].max() for row in rows if row["b"] != smallest),
        "common_times": short[0] / full[0],
        "apart_times": (short[1] - short[-1]) / (full[1] - full[-1]),
        "shift": shift[[0, 1, -1]],
        "equal": (1 + np.abs(shift / drift))[[0, 1, -1]],
        "predicted": predicted,
        "off": [np.abs(row["z"] - usual[row["t"]]).max() / np.abs(row["z"]).max() for row in predicted],
    }


SIZES = [(16_384, 128), (2048, 128), (512, 128), (128, 16), (128, 128), (128, 1024), (64, 128)]
SETTING = {"k": 10, "m": 1000, "rho": 0.05, "eta_z": 0.5, "steps": 2000}
STUDIES = (
    Study(
        "paper",
        moves,
        {**SETTING, "sizes": SIZES, "seeds": 20, "foreseen": [512, 128]},
        ("eta_Y = 1, full decoder, zero start, no momentum", "predicted: to first order in 1/T"),
        quick=False,
        tolerance=1e-3,
    ),
)
