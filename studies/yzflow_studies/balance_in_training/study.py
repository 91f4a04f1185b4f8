"""Theorems 1 and 2 and Corollary 1 of bounded Dyck on a layer while it trains, beside what the layer does.

Wen, Li, Liu, Risteski (2023), arXiv 2312.01429. The hypotheses below were written, with seeds, data and statistics,
before any of the runs was made.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from yzflow_bounded_dyck import approximate, balance
from yzflow_bounded_dyck import training as dyck

from dynamics import Bags, Layer, Solver, Trajectory, gradient_flow, sgd
from dynamics.layer import moved
from dynamics.support import checks
from dynamics.support.netcdf import kept
from yzflow import intervals
from yzflow.figures.registry import Effort, Entry
from yzflow.figures.style import CATEGORIES, canvas, log_ticks, styled
from yzflow.sweeps.store import Store
from yzflow_studies.uniform_attention.study import Hypothesis, verdict

SEEDS = tuple(range(400, 410))  # used by no other study of this project
DATA_SEED = 2027  # of training and test prefixes, drawn for this study
FLOW_SEED = 2028  # of the prefixes that the flow is integrated on
FLOW_PREFIXES = 1000
SCALE = 0.1
ETA = 1.0  # plain SGD, of all weights
LEVELS = ("flow", "SGD")
TIMES = (0, 25, 50, 100, 200, 500, 1000, 2000, 4000)  # recorded steps
LONG, LONGEST = "400-500", "4000-5000"
LENGTH = 450  # at which Theorem 2's verdict is asked
TESTS = 2000  # prefixes of each range of lengths
PREFIXES = 8  # longest brackets of the prefixes on which the loss is exact
_FORMAT = "yzflow-balance-in-training-1"


class LayerKind(NamedTuple):
    """A kind of layer.

    Attributes
    ----------
    options : dict
        Of `training.start`.
    uniform : bool
        Whether attention is held uniform.
    flow_until : float
        How long its flow is followed; 0 leaves it out.
    """

    options: dict[str, Any]
    uniform: bool = False
    flow_until: float = 0.0


CELLS = {
    "free": LayerKind({}, flow_until=200.0),
    "uniform": LayerKind({}, uniform=True, flow_until=50.0),
    "one-hot (19)": LayerKind({"embedding": "one-hot"}, flow_until=200.0),
    "type and depth (20)": LayerKind({"embedding": "type and depth"}, flow_until=50.0),
    "type and angle (21)": LayerKind({"embedding": "type and angle"}, flow_until=50.0),
    "feed-forward": LayerKind({"hidden": 128}),
}

HYPOTHESES = (
    Hypothesis("H1", "SGD ends at layers whose pairs leave more than a tenth of themselves, against (14)", 0.1, True),
    Hypothesis("H2", "what pairs leave falls while SGD trains", 0.0, False),
    Hypothesis("H3", "the residual of (11) falls while SGD trains", 0.0, False),
    Hypothesis("H4", "held uniform, pairs leave more in the end than with trained attention, seed by seed", 0.0, True),
    Hypothesis(
        "H5", "in the end Theorem 2 allows more than twice the pairs that outputs bear (log 2, means)", 0.69, True
    ),
)


def measured(layer: Layer, test: Mapping[str, Bags]) -> dict[str, float]:
    """Measures of what the theorems say of a layer, and of what it does.

    Returns
    -------
    dict
        ``residual`` (11), ``miss`` (14), ``violation`` S / P, ``excess`` of the cross-entropy on short prefixes (nats);
        ``allowed`` and ``borne``, the geometric means over queries and pairs of the numbers of pairs after which
        outputs are half as far apart as the exact ones, by Theorem 2 and in fact, one added to each; ``broken``, how
        often more were borne than allowed; ``ruled_out``, the share of queries and pairs that Theorem 2 rules out at
        `LENGTH`; ``short``, accuracy on short prefixes; ``long`` and ``longest``, of closing queries; ``exposed``, of
        those at `LONG` with attention made uniform.
    """
    layer, language = moved(layer, [array.astype(np.float64) for array in layer.weights]), dyck.LANGUAGE
    found = approximate.reach(layer, language)
    longest = LENGTH // 2 - language.max_depth
    plain = Layer(np.zeros_like(layer.Z), layer.Y, layer.V, hidden=layer.hidden)
    short = balance.closing_accuracy(layer, language, test["below 28"])
    return {
        "residual": float(balance.residual(layer.Z, language)),
        "miss": approximate.miss(layer, language),
        "violation": balance.violation(layer, language),
        "excess": approximate.excess(layer, test["below 28"])[0],
        "allowed": float(np.exp(np.log1p(found.bound).mean())),
        "borne": float(np.exp(np.log1p(np.maximum(found.found, 0)).mean())),
        "broken": int((found.found > found.bound * (1 + 1e-9)).sum()),
        "ruled_out": float((found.bound < longest).mean()),
        "short": short["all"],
        "long": balance.closing_accuracy(layer, language, test[LONG])["close"],
        "longest": balance.closing_accuracy(layer, language, test[LONGEST])["close"],
        "exposed": balance.closing_accuracy(plain, language, test[LONG])["close"],
    }


def layers(run: Trajectory, times: Sequence[float]) -> list[Layer]:
    """The layers that a run recorded at some of its times."""
    recorded = run.dataset["time"].values
    return [Trajectory(run.dataset.isel(time=[int(np.flatnonzero(recorded == time)[0])])).final for time in times]


def train(
    cell: LayerKind, level: str, seed: int, *, times: Sequence[int] = TIMES, samples: dyck.Data, flow_prefixes: Bags
) -> dict[float, Layer]:
    """One run: the layers by time, from the start that the seed decides, the same at both levels.

    SGD takes batches of 128 of the training prefixes; the flow has the expected loss on fewer of them.
    """
    checks.one_of("level", level, LEVELS)
    init = dyck.start(dyck.LANGUAGE, seed, scale=SCALE, **cell.options)
    if cell.uniform:
        init = replace(init, Z=np.zeros_like(init.Z))
    rates: dict[str, Any] = {"eta_y": ETA, "eta_z": 0.0 if cell.uniform else ETA, "eta_v": ETA, "init": init}
    if level == "SGD":
        every = int(np.gcd.reduce(times))
        run = sgd(
            samples.train, **rates, steps=max(times), batch_size=128, momentum=0.0, seed=seed, record_every=every,
            evaluate=flow_prefixes,
        )  # fmt: skip
    else:
        times = [time for time in times if time <= cell.flow_until]
        solver = Solver(method="RK45")  # the stiff ones ask for the Jacobian by differences, in 900 variables
        run = gradient_flow(
            flow_prefixes, **rates, t_end=max(times), times=np.array(times, dtype=float), rtol=1e-3, atol=1e-5,
            solver=solver,
        )  # fmt: skip
    return dict(zip(map(float, times), layers(run, times), strict=True))


def followed(
    *,
    cells: Mapping[str, LayerKind] | None = None,
    seeds: Sequence[int] = SEEDS,
    times: Sequence[int] = TIMES,
    samples: dyck.Data | None = None,
    flow_prefixes: Bags | None = None,
    store: str | os.PathLike | None = None,
    progress: bool = False,
) -> xr.Dataset:
    """`measured` along every run: over (cell, level, seed, time), nan behind the end of a flow.

    Parameters
    ----------
    cells : mapping
        Default: `CELLS`.
    seeds, times : sequences
    samples : training.Data, optional
        Default: drawn with `DATA_SEED`.
    flow_prefixes : Bags, optional
        Default: `FLOW_PREFIXES` of them, drawn with `FLOW_SEED`.
    store : path, optional
        A folder with a file for each run that is done, which is not made again unless the file is damaged. One folder
        is for one set of prefixes and times.
    progress : bool
        Print a line for each run.
    """
    cells = CELLS if cells is None else cells
    lengths = ("below 28", LONG, LONGEST)
    samples = dyck.data(n_test=TESTS, lengths=lengths, seed=DATA_SEED) if samples is None else samples
    if flow_prefixes is None:
        flow_prefixes = dyck.LANGUAGE.sample(FLOW_PREFIXES, max_length=27, rng=FLOW_SEED).merge()

    def one(name: str, level: str, seed: int) -> xr.Dataset:
        trained = train(cells[name], level, seed, times=times, samples=samples, flow_prefixes=flow_prefixes)
        rows = [measured(layer, samples.test) for layer in trained.values()]
        last = [*trained.values()][-1]
        found = xr.Dataset({key: ("time", [row[key] for row in rows]) for key in rows[0]}, {"time": [*trained]})
        return found.assign(_from_loss(last))

    parts = []
    for name, cell in cells.items():
        checks.instance("cells", cell, LayerKind)
        row = []
        for level in LEVELS if cell.flow_until else ("SGD",):
            runs = []
            for seed in seeds:
                path = (
                    None if store is None else Path(store) / f"{name.replace(' ', '_')}-{level}-{seed}-{max(times)}.nc"
                )
                runs.append(kept(path, _FORMAT, "a run of a layer", partial(one, name, level, seed)).drop_encoding())
                if progress:
                    print(name, level, seed, flush=True)
            row.append(xr.concat(runs, "seed").reindex(time=[float(time) for time in times]))
        parts.append(xr.concat(row, "level").assign_coords(level=list(LEVELS[-len(row) :])).reindex(level=list(LEVELS)))
    found = xr.concat(parts, "cell").assign_coords(cell=list(cells), seed=list(seeds))
    return found.assign_attrs(length=LENGTH)


def _from_loss(layer: Layer) -> dict[str, float]:
    """Bounds by `approximate.from_loss` where they say most, of a run's last layer on short prefixes (exact losses)."""
    layer = moved(layer, [array.astype(np.float64) for array in layer.weights])
    rows = approximate.from_loss(layer, dyck.LANGUAGE, max_length=PREFIXES)
    losses = approximate.excess(layer, dyck.LANGUAGE.enumerate(max_length=PREFIXES))
    with np.errstate(divide="ignore"):
        slack = rows.bound / rows.ratio
    return {
        "exact_excess": losses[0],
        "squares": losses[1] / losses[0],
        "left": float(rows.least.max()),
        "nearer": int((rows.distance < rows.least - 1e-9).sum() + (slack < 1 - 1e-9).sum()),
        "slack": float(slack.min()),
        "says": float((rows.least > 0).mean()),
    }


def verdicts(runs: xr.Dataset) -> dict[str, dict[str, Any]]:
    """Means and verdict of each of `HYPOTHESES`, on the free layer in SGD."""
    free = runs.sel(cell="free", level="SGD", drop=True)
    last, first = free.isel(time=-1), free.isel(time=0)
    uniform = runs.sel(cell="uniform", level="SGD", drop=True).isel(time=-1)
    values = (
        last["miss"],
        last["miss"] - first["miss"],
        last["residual"] - first["residual"],
        uniform["miss"] - last["miss"],
        np.log(last["allowed"] / last["borne"]),
    )
    return {
        claim.name: {
            "says": claim.says,
            "mean": float(one.mean("seed")),
            "half": float(intervals.of_mean(one)),
            "verdict": verdict(one.values, claim),
        }
        for claim, one in zip(HYPOTHESES, values, strict=True)
    }


# The figure

_MARKERS = "osD^vP"
_START = 10.0  # where the axis of time has the start
_PANELS = {
    "residual": "residual of (11)",
    "miss": "share of a pair that stays, (14)",
    "borne": "pairs that outputs bear",
    "long": "closing brackets found, 400-500",
}


@styled
def balance_in_training(runs: xr.Dataset) -> Figure:
    """Theorems 1 and 2 on layers along their training, and long prefixes.

    Lines are means over seeds, SGD with 95% intervals (Student's t), dashed the gradient flow from the same starts.
    Lower left: after how many matched pairs outputs are half as far apart as the exact distributions, in fact, and
    dotted at most by Theorem 2, in SGD; above the grey line it says nothing against the length asked. Lower right,
    grey: a guess. The left end of each axis is the start.

    Parameters
    ----------
    runs : xarray.Dataset
        From `followed`.
    """
    figure = canvas(figsize=(10.5, 7.4))
    panels = figure.subplots(2, 2, sharex=True).ravel()
    time = np.where(runs["time"] > 0, runs["time"], _START)
    for (colour, _), marker, name in zip(CATEGORIES, _MARKERS, runs["cell"].values, strict=False):
        for axes, key in zip(panels, _PANELS, strict=True):
            values = runs[key].sel(cell=name, level="SGD")
            mean, half = values.mean("seed"), intervals.of_mean(values)
            axes.plot(time, mean, f"{marker}-", color=colour, markersize=4, label=str(name))
            axes.fill_between(time, mean - half, mean + half, color=colour, alpha=0.12, linewidth=0)
            flow = runs[key].sel(cell=name, level="flow").mean("seed")
            if flow.notnull().any():
                axes.plot(time, flow, "--", color=colour, linewidth=1)
        allowed = runs["allowed"].sel(cell=name, level="SGD").mean("seed")
        panels[2].plot(time, allowed, ":", color=colour, linewidth=1.2)
    for axes, label in zip(panels, _PANELS.values(), strict=True):
        axes.set(xscale="log", ylabel=label)
    panels[2].set_yscale("log")
    panels[2].axhline(runs.attrs["length"] // 2 - dyck.LANGUAGE.max_depth, color="0.6", linewidth=1)
    log_ticks(panels[2].yaxis)
    panels[0].set_ylim(bottom=0)
    panels[1].set_ylim(0, 1)
    panels[3].axhline(1 / dyck.LANGUAGE.n_types, color="0.6", linewidth=1)
    powers = [power for power in (100, 1000, 10_000, 100_000) if power <= time.max()]
    for axes in panels:
        axes.set_xlabel("SGD steps")
        axes.set_xticks([_START, *powers], ["0", *map(str, powers)])
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=6)
    return figure


def _claims(runs: xr.Dataset) -> str:
    """The verdicts, in sentences."""
    said = [f"{one['says']}: {one['verdict']}." for one in verdicts(runs).values()]
    return " ".join([*said, f"The length asked is {runs.attrs['length']}."])


def _runs(effort: Effort) -> xr.Dataset:
    few: dict[str, Any] = {"seeds": SEEDS[:2], "times": (0, 25, 50)} if effort.quick else {}
    store = effort.store.path if isinstance(effort.store, Store) else effort.store
    return followed(store=store, progress=effort.progress, **few)


FIGURES = (Entry("balance_in_training", "Bounded Dyck", balance_in_training, _runs, claims=_claims),)

# <!-- numbers
# typed: 95% (level of intervals and quantiles)
# typed: 400 500 28 (range of lengths of the test prefixes, LENGTHS of yzflow_bounded_dyck.training)
# typed: 2 (number of a statement, figure, section or finding)
# -->
