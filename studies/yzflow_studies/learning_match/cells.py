"""Which units are trained on which task at which N, and the runs of all: what the figure shows."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from tempfile import TemporaryDirectory

import xarray as xr

from dynamics.support import checks
from yzflow.sweeps.store import Store
from yzflow.sweeps.sweep import sweep
from yzflow_studies.learning_match import runs
from yzflow_studies.learning_match.tasks import MATCH_LEARNING


@dataclass(frozen=True)
class TrainedUnit:
    """A unit and a task: what one line of the figure is trained on.

    Attributes
    ----------
    kind, order, dimension, heads, positions, init
        See `runs.trained`.
    sizes : tuple of int
        The N that it is trained at.
    """

    kind: str
    order: int
    dimension: int
    heads: int = 1
    positions: bool = False
    init: str = "random"
    sizes: tuple[int, ...] = (8, 16, 32, 64)


CELLS = {
    "Match2, one layer, size of the construction": TrainedUnit("one layer", 2, 3),
    "Match2, one layer": TrainedUnit("one layer", 2, 16, 3),
    "Match2, two layers": TrainedUnit("two layers", 2, 16, 3, True, sizes=(8,)),
    "Match3, one layer": TrainedUnit("one layer", 3, 16, 3, sizes=(8, 16, 32)),
    "Match3, two layers": TrainedUnit("two layers", 3, 16, 3, True, sizes=(8,)),
    "Match3, third order, size of the construction": TrainedUnit("third order", 3, 4, sizes=(8,)),
    "Match3, third order": TrainedUnit("third order", 3, 32, sizes=(8, 16)),
    "Match2, from the construction": TrainedUnit("one layer", 2, 3, init="construction", sizes=(8,)),
    "Match3, from the construction": TrainedUnit("third order", 3, 4, init="construction", sizes=(8, 16)),
}


def learning(
    *,
    sizes: Sequence[int] = (8, 16, 32, 64),
    cells: Sequence[str] = tuple(CELLS),
    seeds: int = runs.SEEDS,
    steps: int = runs.STEPS,
    threads: int | None = None,
    store: str | os.PathLike | Store | None = None,
    progress: bool = False,
) -> xr.Dataset:
    """Runs of the sweep "match_learning" over (cell, n_tokens, seed, time); NaN where a cell has no run of that size.

    Parameters
    ----------
    sizes : sequence of int
        N.
    cells : sequence of str
        Of `CELLS`.
    seeds, steps : int
    threads : int, optional
        How many runs at a time. Default: the cores.
    store : path-like or Store, optional
        Where runs are kept: an interrupted call goes on there.
    progress : bool
        Show progress on standard error.

    Returns
    -------
    xarray.Dataset
        What `runs.trained` measures; ``modulus(cell, n_tokens)``.
    """
    for name in cells:
        checks.one_of("cells", name, tuple(CELLS))
    found = []
    with TemporaryDirectory(prefix="yzflow-") if store is None else nullcontext(store) as kept:
        for name in cells:
            cell = CELLS[name]
            grid = {key: [value] for key, value in asdict(cell).items() if key != "sizes"}
            grid |= {"n_tokens": [n for n in sizes if n in cell.sizes], "steps": [steps]}
            if not grid["n_tokens"]:
                continue
            swept = sweep(MATCH_LEARNING, grid, store=kept, seeds=seeds, workers=threads, progress=progress)
            kept_runs = swept.isel(dict.fromkeys(set(grid) - {"n_tokens"}, 0), drop=True)
            found.append(kept_runs.drop_vars([one for one in kept_runs if "time" not in kept_runs[one].dims]))
            found[-1] = found[-1].expand_dims(cell=[name])
    joined = xr.concat(found, "cell", join="outer", combine_attrs="drop")
    joined = joined.assign_coords(cell=joined["cell"].values.astype(str))
    order = {name: CELLS[name].order for name in cells}
    moduli = [
        [runs.balanced_modulus(order[str(name)], int(n)) for n in joined["n_tokens"].values]
        for name in joined["cell"].values
    ]
    joined["modulus"] = (("cell", "n_tokens"), moduli)
    return joined.assign_attrs(steps=steps)
