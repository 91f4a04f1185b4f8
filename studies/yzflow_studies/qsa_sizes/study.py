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
from matplotlib.figure import Figure

from dynamics.support import checks
from yzflow.figures.registry import Effort, Entry
from yzflow.figures.style import BLACK, BLUE, GREEN, ORANGE, VERMILION, canvas, log_ticks, styled
from yzflow.sweeps.store import Store
from yzflow.sweeps.sweep import sweep
from yzflow_studies.qsa_sizes.tasks import QSA_SIZES
from yzflow_studies.uniform_attention.study import Hypothesis, verdict

SEEDS = (4600, 4601, 4602)  # used by no other study of this project
LEARNT = 0.1  # of the distance, whose largest value is 2
SIZES = {"small": (100, 8), "large": (200, 16)}  # N and q


class UnitSizes(NamedTuple):
    """A unit that is trained at these sizes, with these m, for these steps."""

    query: str
    size: str
    dimensions: tuple[int, ...]
    steps: int


CELLS = {
    "linear": UnitSizes("linear", "small", (37, 74, 98, 99), 5000),
    "perceptron": UnitSizes("perceptron", "small", (74,), 5000),
    "perceptron, longer": UnitSizes("perceptron", "small", (74,), 10_000),
    "linear, N = 200": UnitSizes("linear", "large", (198, 199), 2000),
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
    cells: dict[str, UnitSizes] | None = None,
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
            run = swept.isel(dict.fromkeys(set(grid) - {"dimension"}, 0), drop=True)
            found[name] = run.assign_attrs(n_tokens=n, subset_size=q)
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


# The figure


_COLOURS = {"linear": BLUE, "perceptron": ORANGE, "perceptron, longer": VERMILION, "linear, N = 200": GREEN}


@styled
def qsa_sizes(runs: dict[str, xr.Dataset]) -> Figure:
    """Distance of attention from its target, by embedding dimension and over training, for two kinds of queries.

    Left: after training, each seed: mean over sets (filled) and the largest (hollow); perceptrons are drawn to the
    right of their m. Dotted: q ln N and 2 q ln N; at the second, random keys have a right query for nearly
    every set. Dashed: N - 1, which a linear query needs. Right: the mean over sets and seeds during training.
    Distances are at most 2.

    Parameters
    ----------
    runs : mapping
        From `learning`.
    """
    figure = canvas(figsize=(10.5, 4.2))
    left, right = figure.subplots(1, 2)
    n, q = (next(iter(runs.values())).attrs[size] for size in ("n_tokens", "subset_size"))
    for name, run in runs.items():
        label = f"{name}, {int(run['time'][-1]):,} steps"
        end = run.isel(time=-1)
        shown = (("distance", "full"), ("largest_distance", "none")) if run.attrs["n_tokens"] == n else ()
        for measure, fill in shown:
            nudge = {"linear": 0.0, "perceptron": 1.5, "perceptron, longer": 3.0}[name]
            values = end[measure].transpose("dimension", "seed").values
            left.plot(
                np.repeat(end["dimension"].values + nudge, values.shape[1]), values.ravel(), "o", fillstyle=fill,
                color=_COLOURS[name], markersize=5, label=label if fill == "full" else None,
            )  # fmt: skip
        for m, style in zip(run["dimension"].values[-3:], (":", "--", "-")[-run.sizes["dimension"] :], strict=False):
            mean = run["distance"].sel(dimension=m).mean("seed")
            right.plot(run["time"][1:], mean[1:], style, color=_COLOURS[name], label=f"{name}, m = {m}")
    left.axvline(q * math.log(n), color=BLACK, linestyle=":", linewidth=1, label="q ln N, 2 q ln N")
    left.axvline(2 * q * math.log(n), color=BLACK, linestyle=":", linewidth=1)
    left.axvline(n - 1, color=BLACK, linestyle="--", linewidth=1, label="N - 1")
    for axes in (left, right):
        axes.set(yscale="log")
        log_ticks(axes.yaxis)
    left.set(xlabel="embedding dimension m", ylabel=r"distance $\|a - 1_y/q\|_1$ after training")
    right.set(xlabel="step of Adam", ylabel="mean distance", xscale="log")
    left.set_title(f"N = {n}, q = {q}")
    right.set_title("over training")
    left.legend(loc="lower left", fontsize=8)
    right.legend(loc="lower left", fontsize=8)
    return figure


def _claims(runs: dict[str, xr.Dataset]) -> str:
    """The verdicts, in sentences."""
    found = judged(runs)
    return " ".join(f"{name}, {claim.says}: {found[name]}." for name, claim in HYPOTHESES.items())


def _runs(effort: Effort) -> dict[str, xr.Dataset]:
    if not effort.quick:
        return learning(store=effort.store, progress=effort.progress)
    few = {name: cell._replace(steps=50) for name, cell in CELLS.items()}
    return learning(cells=few, seeds=SEEDS[:2], progress=effort.progress)


FIGURES = (Entry("qsa_sizes", "Sparse averaging", qsa_sizes, _runs, claims=_claims),)

# <!-- numbers
# typed: 2 200 100 8 16 (written before the runs, and in the study's code)
# -->
