"""One unit trained on sparse averaging at N = 100, q = 8 and N = 200, q = 16, by the embedding dimension m.

Sanford, Hsu, Telgarsky (2023), arXiv 2306.02896. The hypotheses below were written, with cells, seeds and statistics,
before any of the runs that they are judged by.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from contextlib import nullcontext
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from dynamics.support import checks
from yzflow.sweeps.store import Store
from yzflow.sweeps.sweep import sweep
from yzflow_studies.qsa_sizes.tasks import QSA_SIZES
from yzflow_studies.uniform_attention.study import Hypothesis, verdict

SEEDS = (4600, 4601, 4602)  # used by no other study of this project
LEARNT = 0.1  # of the distance, whose largest value is 2
SIZES = {"small": (100, 8), "large": (200, 16)}  # N and q


class Cell(NamedTuple):
    """A unit that is trained at these sizes, with these m, for these steps."""

    query: str
    size: str
    dimensions: tuple[int, ...]
    steps: int


def bits_of_sets(size: str) -> int:
    """q ln N, rounded up: what the constructions of finite precision need up to a constant."""
    n, q = SIZES[size]
    return math.ceil(q * math.log(n))


CELLS = {
    "linear": Cell("linear", "small", (37, 74, 98, 99), 5000),
    "perceptron": Cell("perceptron", "small", (74,), 5000),
    "perceptron, longer": Cell("perceptron", "small", (74,), 10_000),
    "linear, N = 200": Cell("linear", "large", (198, 199), 2000),
}
HYPOTHESES = {
    "H1": Hypothesis("H1", "N = 100, q = 8: a linear query of m = N - 1 learns, on every set", LEARNT, False),
    "H2": Hypothesis("H2", "of m = N - 2 it does not, on some set", LEARNT, True),
    "H3": Hypothesis("H3", "of m = 2 q ln N it does not, on average", LEARNT, True),
    "H4": Hypothesis("H4", "there a perceptron of the set comes closer, seed by seed", 0.0, True),
    "H5": Hypothesis("H5", "and learns in twice the steps, on average", LEARNT, False),
    "H6": Hypothesis("H6", "N = 200, q = 16: a linear query of m = N - 1 learns, on every set", LEARNT, False),
    "H7": Hypothesis("H7", "of m = N - 2 it does not, on some set", LEARNT, True),
}


def learning(
    *,
    cells: dict[str, Cell] | None = None,
    seeds: Sequence[int] = SEEDS,
    store: str | os.PathLike | Store | None = None,
    progress: bool = False,
) -> dict[str, xr.Dataset]:
    """Runs of the sweep "qsa_sizes": for each cell those over (dimension, seed, time).

    Parameters
    ----------
    cells : mapping, optional
        Default: `CELLS`.
    seeds : sequence of int
    store : path-like or Store, optional
        Where runs are kept: an interrupted call goes on there.
    progress : bool
        Show progress on standard error.
    """
    found = {}
    with TemporaryDirectory(prefix="yzflow-") if store is None else nullcontext(store) as kept:
        for name, cell in (CELLS if cells is None else cells).items():
            n, q = SIZES[checks.one_of("size", cell.size, tuple(SIZES))]
            grid: dict[str, Sequence[Any]] = {
                "query": [cell.query], "n_tokens": [n], "subset_size": [q], "dimension": list(cell.dimensions),
                "steps": [cell.steps],
            }  # fmt: skip
            swept = sweep(QSA_SIZES, grid, store=kept, seeds=list(seeds), workers=1, progress=progress)
            found[name] = swept.isel(dict.fromkeys(set(grid) - {"dimension"}, 0), drop=True)
    return found


def judged(runs: dict[str, xr.Dataset]) -> dict[str, str]:
    """Verdict on each of `HYPOTHESES`."""

    def end(cell: str, m: int, measure: str) -> np.ndarray:
        return runs[cell][measure].isel(time=-1).sel(dimension=m).values

    (small, _), (large, _) = SIZES.values()
    m = math.ceil(2 * SIZES["small"][1] * math.log(small))
    values = {
        "H1": end("linear", small - 1, "largest_distance"),
        "H2": end("linear", small - 2, "largest_distance"),
        "H3": end("linear", m, "distance"),
        "H4": end("linear", m, "distance") - end("perceptron", m, "distance"),
        "H5": end("perceptron, longer", m, "distance"),
        "H6": end("linear, N = 200", large - 1, "largest_distance"),
        "H7": end("linear, N = 200", large - 2, "largest_distance"),
    }
    return {name: verdict(values[name], claim) for name, claim in HYPOTHESES.items()}


def steps_needed(run: xr.DataArray, level: float = LEARNT) -> float:
    """The first recorded step from which on a distance over time stays below a level; infinite if none does."""
    above = np.flatnonzero(run.values >= level)
    after = int(above[-1]) + 1 if above.size else 0
    return float(run["time"][after]) if after < run.sizes["time"] else math.inf
