"""Which rates of Y and Z one rate on U, W_V, W_Q, W_K induces, where that is exact, and how it drifts."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from dynamics import SequenceClasses
from theory.values import Study
from yzflow import intervals
from yzflow_studies.one_rate import study as original

ZERO = {"value": 0.0, "query": 0.0}


def in_the_mean(size: int, starts: int, embedding: float, value: float, query: float, key: float) -> dict:
    """The mean rate along symmetric random gradients over random rotations, against the formula.

    As it stands, and with 2 v^2 and 2 q^2 k^2 times 1 + 1/d, which is the mean for a symmetric gradient.
    """
    scales = {"embedding": embedding, "value": value, "query": query, "key": key}
    doubled = (2 * (embedding * value) ** 2, 2 * (embedding * query * key) ** 2 / size)
    above, off = [], []
    for which in (0, 1):
        found = []
        for seed in range(starts):
            rng = np.random.default_rng([seed, which])
            first = original.start(rng, tokens=size, width=size, **scales)
            gradients = [np.zeros((size, size)), np.zeros((size, size))]
            gradients[which] = rng.normal(size=(size, size))
            gradients[which] += gradients[which].T
            moved = original.moved(first, original.velocity(first, *gradients, 1.0))[which]
            found.append((moved * gradients[which]).sum() / (gradients[which] ** 2).sum())
        claim = original.induced_rates(eta=1.0, width=size, **scales)[which]
        standard = np.std(found, ddof=1) / np.sqrt(starts)
        above.append(np.mean(found) / claim - 1)
        off.append(abs(np.mean(found) - claim - doubled[which] / size) / standard)
    return {"above": above, "off": max(off)}


def coupled(k: int, n_distinct: int, common: float, widths: Sequence[int], seeds: int, pairs: int) -> dict:
    """Cosines of dY/dt and dZ/dt with their own gradients at the start.

    ``by_width``: Gaussian, v = q = 0, at each width; ``z_own``, ``y_own``: orthogonal, all scales 1, d = M,
    over ``pairs`` seeds.
    """
    size = 1 + k * n_distinct
    classes = SequenceClasses.single_common_token(
        k, size, common=common, distinct=[(1 - common) / n_distinct] * n_distinct
    )
    bags = classes.population()

    def cosine(seed: int, width: int, **options: Any) -> dict[str, float]:
        first = original.start(np.random.default_rng(seed), tokens=size, width=width, **options)
        return original.effective(bags, first, eta=1.0, query=0)

    by_width = [np.mean([cosine(seed, d, gaussian=True, **ZERO)["cosine_y"] for seed in range(seeds)]) for d in widths]
    own = [cosine(seed, size) for seed in range(pairs)]
    z_own = np.array([one["cosine_z"] for one in own])
    return {
        "m": size,
        "by_width": by_width,
        "share": [d / (d + size) for d in widths],
        "z_own": {"mean": z_own.mean(), "half": float(intervals.of_mean(xr.DataArray(z_own, dims="seed")))},
        "y_own": np.mean([one["cosine_y"] for one in own]),
    }


def drift(k: int, n_distinct: Sequence[int], eta: float, times: Sequence[float], compare: Sequence[float]) -> dict:
    """The ratio of the effective rates over time from orthogonal starts, and the fall of the loss."""
    rows = []
    step = compare[0]
    for d in n_distinct:
        found = original.against_induced(
            n_classes=k, n_distinct=d, eta=eta, t_end=times[-1], n_times=round(times[-1] / step) + 1
        )
        ratio = found["eta_y"] / found["eta_z"]
        fall = (found[["loss", "loss_induced"]].isel(time=0) - found[["loss", "loss_induced"]]).sel(time=list(compare))
        rows.append(
            {
                "m": found.attrs["width"],
                "first": found.attrs["predicted_eta_y"] / found.attrs["predicted_eta_z"],
                "ratio": ratio.sel(time=list(times)).values,
                "grows": float(found["eta_y"].values[-1] / found.attrs["predicted_eta_y"]),
                "farther": (fall["loss"] / fall["loss_induced"]).values,
                "off": (fall["loss"] / fall["loss_induced"]).values - 1,
            }
        )
    return {"rows": rows}


def conserved(k: int, m: int, t: float, eta: float) -> dict:
    """How far the conserved norms move in the flow of the original parameters."""
    classes = SequenceClasses.single_common_token(k, m, common=0.5, distinct=[0.3, 0.2])
    first = original.start(np.random.default_rng(1), tokens=m, width=m, value=0.3, query=0.4, key=0.8)
    states, _ = original.simulate(classes.population(), first, eta=eta, times=[0.0, t / 2, t], rtol=1e-9)
    start = np.array(original.conserved(first))
    return {"off": max(np.abs(np.array(original.conserved(state)) - start).max() for state in states)}


STUDIES = (
    Study(
        "in_the_mean",
        in_the_mean,
        {"size": 6, "starts": 2000, "embedding": 1.1, "value": 0.8, "query": 0.9, "key": 1.2},
    ),
    Study(
        "coupled",
        coupled,
        {"k": 4, "n_distinct": 15, "common": 0.5, "widths": [16, 61, 244, 976], "seeds": 5, "pairs": 40},
    ),
    Study(
        "drift",
        drift,
        {"k": 4, "n_distinct": [3, 10], "eta": 0.05, "times": [50.0, 100.0, 200.0, 300.0], "compare": [12.5, 50.0]},
        tolerance=1e-3,
    ),
    Study("conserved", conserved, {"k": 3, "m": 7, "t": 80.0, "eta": 0.1}, noise=1e-7),
)
