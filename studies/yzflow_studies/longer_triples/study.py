"""Match3 at N = 32: more steps, a curriculum, starts near constructions; and three equal tokens, between Match2 and it.

Sanford, Hsu, Telgarsky (2023), arXiv 2306.02896; units and loss are those of finding 31. The hypotheses below were
written, with cells, seeds and criteria, before any of the runs that they are judged by.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from yzflow.figures.registry import Effort, Entry
from yzflow.figures.style import BLACK, BLUE, GREEN, ORANGE, PURPLE, VERMILION, canvas, log_ticks, styled
from yzflow.sweeps.store import Store
from yzflow.sweeps.sweep import sweep
from yzflow_studies.longer_triples.tasks import LONGER_TRIPLES

SEEDS = (4700, 4701)  # used by no other study of this project
LEARNT = 0.05  # of the best constant's loss
CHANCE = 0.55  # of the area on tokens where nothing but triples is left; 1/2 is chance
_ONE = {"kind": "one layer", "dimension": 16, "heads": 3}
_THIRD = {"kind": "third order", "dimension": 32}
_FREQUENCIES = (0.1, 0.3, 1.0, 2.0)
_FREQUENCY = (1e-5, 1e-4, 1e-3)

# In the order in which they are run; what is varied is a tuple.
CELLS: dict[str, dict[str, Any]] = {
    "near frequencies": {
        **_THIRD, "dimension": 31, "steps": 200, "learning_rate": 1e-3, "start": "frequencies",
        "distance": _FREQUENCIES,
    },
    "three equal": {**_ONE, "task": "three equal", "n_tokens": (8, 32)},
    "one layer, curriculum": {**_ONE, "curriculum": True, "steps": 1000},
    "near one frequency": {
        **_THIRD, "dimension": 4, "steps": 200, "learning_rate": 1e-4, "start": "one frequency", "distance": _FREQUENCY,
    },
    "one layer, ten times": {**_ONE, "steps": 30_000},
    "third order, curriculum": {**_THIRD, "curriculum": True, "steps": 1000},
}  # fmt: skip
# Added after the runs above had been seen; no claim is judged by them.
LATER: dict[str, dict[str, Any]] = {
    "pairs": {**_ONE, "task": "pairs", "n_tokens": (8, 32)},
    "pairs, m = 3": {"task": "pairs", "dimension": 3, "n_tokens": (8, 32)},
    "three equal, m = 3": {"task": "three equal", "dimension": 3, "n_tokens": (8, 32)},
    "near frequencies, longer": {**CELLS["near frequencies"], "steps": 2000, "distance": (0.3, 1.0)},
}


class SeedClaim(NamedTuple):
    """A claim about each seed at the end of training, and where it is read."""

    says: str
    cell: str
    holds: Callable[[xr.Dataset], xr.DataArray]
    at: dict[str, Any] | None = None


def share(end: xr.Dataset) -> xr.DataArray:
    """Loss over that of the best constant."""
    return end["loss"] / end["constant_loss"]


CLAIMS = {
    "T1": SeedClaim(
        "one layer tells no triples apart", "one layer, ten times", lambda end: end["triple_area"] < CHANCE
    ),
    "T2": SeedClaim("nor after a curriculum", "one layer, curriculum", lambda end: end["triple_area"] < CHANCE),
    "T3": SeedClaim(
        "nor does the third-order unit after one", "third order, curriculum", lambda end: end["triple_area"] < CHANCE
    ),
    "T4": SeedClaim(
        "ten frequencies are kept from a tenth off",
        "near frequencies",
        lambda end: share(end) < LEARNT,
        {"distance": 0.1},
    ),
    "T5": SeedClaim(
        "and lost from twice their size off",
        "near frequencies",
        lambda end: share(end) > LEARNT,
        {"distance": 2.0},
    ),
    "T6": SeedClaim(
        "one frequency is lost from a thousandth off",
        "near one frequency",
        lambda end: share(end) > LEARNT,
        {"distance": 1e-3},
    ),
    "E1": SeedClaim("three equal tokens are learnt", "three equal", lambda end: share(end) < LEARNT, {"n_tokens": 32}),
}


def learning(
    *,
    cells: dict[str, dict[str, Any]] | None = None,
    seeds: Sequence[int] = SEEDS,
    store: str | os.PathLike | Store | None = None,
    progress: bool = False,
) -> dict[str, xr.Dataset]:
    """Runs of the sweep "longer_triples": for each cell those over what it varies, seed and time.

    Parameters
    ----------
    cells : mapping, optional
        Default: `CELLS` and `LATER`.
    seeds : sequence of int
    store : path-like or Store, optional
        Where runs are kept: an interrupted call goes on there.
    progress : bool
        Show progress on standard error.
    """
    found = {}
    with TemporaryDirectory(prefix="yzflow-") if store is None else nullcontext(store) as kept:
        for name, cell in ({**CELLS, **LATER} if cells is None else cells).items():
            grid = {key: list(value) if isinstance(value, tuple) else [value] for key, value in cell.items()}
            swept = sweep(LONGER_TRIPLES, grid, store=kept, seeds=list(seeds), workers=1, progress=progress)
            fixed = {key for key, values in grid.items() if not isinstance(cell[key], tuple)}
            found[name] = swept.isel(dict.fromkeys(fixed, 0), drop=True)
    return found


def judged(runs: dict[str, xr.Dataset]) -> dict[str, str]:
    """Verdict on each of `CLAIMS`: "supported" if it holds in every seed, "refuted" if in none, "open" otherwise."""
    found = {}
    for name, claim in CLAIMS.items():
        holds = claim.holds(runs[claim.cell].isel(time=-1).sel(claim.at or {})).values
        found[name] = "supported" if np.all(holds) else "open" if np.any(holds) else "refuted"
    return found


# The figure

_NEAR = (
    ("near one frequency", VERMILION, "s", "one frequency, m = 4"),
    ("near frequencies", BLUE, "o", "ten frequencies, m = 31"),
    ("near frequencies, longer", PURPLE, "D", "the same, ten times the steps"),
)
_TASKS = (
    ("pairs", 32, GREEN, "--", "pairs"),
    ("three equal", 32, BLUE, "-", "three equal"),
    ("one layer, ten times", None, VERMILION, "-", "triples"),
    ("one layer, curriculum", None, ORANGE, "--", "triples, after a curriculum"),
    ("third order, curriculum", None, PURPLE, ":", "triples, third order, after a curriculum"),
)


@styled
def longer_triples(runs: dict[str, xr.Dataset]) -> Figure:
    """Triples from starts near two constructions, and three tasks in training, at N = 32.

    Left: the chance to rank a token with a triple above one without, on tokens without a match with one other token, by
    the noise on a construction's tables over their root mean square: before training (hollow) and after (filled), each
    seed. 1/2 is chance. Right: loss over that of the best constant, mean over seeds, of one layer (m = 16, H = 3) if
    nothing else is said. A token has a triple if it sums to zero mod M with two others, repeats allowed, a pair if with
    one; three equal are a token with the residue of two others.

    Parameters
    ----------
    runs : mapping
        From `learning`.
    """
    figure = canvas(figsize=(10.5, 4.2))
    left, right = figure.subplots(1, 2)
    for name, colour, marker, label in _NEAR:
        area = runs[name]["triple_area"].transpose("distance", "seed", "time")
        noise = np.repeat(area["distance"].values, area.sizes["seed"])
        for time, fill in ((0, "none"), (-1, "full")):
            if time == 0 and "longer" in name:
                continue
            left.plot(
                noise, area.isel(time=time).values.ravel(), marker, color=colour, fillstyle=fill, markersize=5.5,
                label=label if time else None,
            )  # fmt: skip
    left.axhline(0.5, color=BLACK, linewidth=0.8, linestyle=":", label="chance")
    for name, n_tokens, colour, style, label in _TASKS:
        run = runs[name] if n_tokens is None else runs[name].sel(n_tokens=n_tokens)
        mean = share(run).mean("seed")
        right.plot(mean["time"][1:], mean[1:], style, color=colour, label=label)
    left.set(xscale="log", xlabel="noise on the construction", ylabel="chance to rank a triple above none")
    right.set(xscale="log", yscale="log", xlabel="step of Adam", ylabel="loss / that of the best constant")
    log_ticks(right.yaxis)
    left.legend(loc="center", fontsize=8)
    right.legend(loc="upper right", bbox_to_anchor=(1, 0.93), fontsize=8)
    left.set_title("third-order unit, triples")
    right.set_title("three tasks")
    return figure


def _claims(runs: dict[str, xr.Dataset]) -> str:
    """The verdicts, in sentences."""
    found = judged(runs)
    return " ".join(f"{name}, {claim.says}: {found[name]}." for name, claim in CLAIMS.items())


def _runs(effort: Effort) -> dict[str, xr.Dataset]:
    if not effort.quick:
        return learning(store=effort.store, progress=effort.progress)
    few = {name: {**cell, "steps": 25, "curriculum": False} for name, cell in {**CELLS, **LATER}.items()}
    return learning(cells=few, seeds=SEEDS[:1], progress=effort.progress)


FIGURES = (Entry("longer_triples", "Sparse averaging", longer_triples, _runs, claims=_claims),)

# <!-- numbers
# typed: 32 16 3 4 31 (written before the runs, and in the study's code; chance; a formula)
# -->
