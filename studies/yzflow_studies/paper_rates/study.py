"""Figures 7 and 10 of Scan and Snap nearer to their size: rates of 1 to 5, two million tokens, one and three layers.

Setting: Tian, Wang, Chen, Du (2023), arXiv 2305.16380, Section 6 and Appendix G: "regular parameterization", SGD with
one learning rate of 1 to 5, WikiText. The text says no more of how such rates train. A language model of PyTorch's own
examples (word_language_model) has a transformer on WikiText-2 with SGD at rate 5, and cuts the norm of its gradient to
0.25; that is what is tried here. yzflow-deep is needed to train.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from dynamics import Optimizer
from dynamics.support import checks
from yzflow import intervals
from yzflow.figures.registry import Effort, Entry
from yzflow.figures.style import BLACK, canvas, ordered_colours, styled
from yzflow_studies.ordinary_transformers import study as deep_text

PAPER = "Scan and Snap"
RATES = (1.0, 2.0, 3.0, 4.0, 5.0)
SEEDS = tuple(range(5600, 5605))  # used by no other study of this project; the pilot had 100
LAYERS = (1, 3)
CLIP = 0.25  # of the norm of the gradient, that of PyTorch's word_language_model
VOCAB_SIZE, LENGTH, WIDTH, BATCH, STEPS = 2000, 35, 32, 20, 4000
RECORDS, PROBE = 40, 4
END = 5  # records whose mean is "at the end"
REBOUND = 0.05  # H5: of the entropy of uniform attention
FROZEN = 0.1  # H4: of the fastest movement


def runs_of(
    tokens: npt.ArrayLike,
    layers: int,
    *,
    rates: Sequence[float] = RATES,
    seeds: Sequence[int] = SEEDS,
    clip: float | None = CLIP,
    steps: int = STEPS,
    records: int = RECORDS,
    store: str | os.PathLike | None = None,
    progress: bool = False,
    **sizes: Any,
) -> xr.Dataset:
    """`ordinary_transformers.study.trained` at the paper's rates, with the norm of the gradient cut, or not.

    Parameters
    ----------
    tokens : (n,) int
    layers : int
    rates, seeds, steps, records, progress
        As there.
    clip : float or None
        Largest norm of the gradient.
    store : path, optional
        Folder for the state of the run, from which it goes on. Default: nothing is kept.
    **sizes
        More of what `trained` takes; defaults are those of this study.
    """
    sizes = {"length": LENGTH, "width": WIDTH, "batch_size": BATCH, "probe": PROBE} | sizes
    name = f"layers{layers}_clip{clip}.npz"
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary if store is None else store)
        folder.mkdir(parents=True, exist_ok=True)
        return deep_text.trained(
            tokens,
            rates=rates,
            seeds=seeds,
            n_layers=layers,
            steps=steps,
            records=records,
            optimizer=Optimizer(momentum=0.0, clip=clip),
            checkpoint=folder / name,
            progress=progress,
            **sizes,
        )


def unigram_loss(tokens: npt.ArrayLike, *, length: int = LENGTH) -> float:
    """Cross-entropy, on the held-out windows, of the frequencies of tokens in the others: what needs no attention."""
    train, validation = deep_text.split(tokens, length=length)
    count = np.bincount(train.targets.ravel(), minlength=int(np.max(tokens)) + 1) + 1.0
    return float(-np.log(count / count.sum())[validation.targets].mean())


def entropy(runs: xr.Dataset) -> xr.DataArray:
    """Entropy of attention of each layer over training, mean over heads; NaN where a run has diverged."""
    return runs["entropy"].mean("head").where(runs["diverged"] < 0)


def at_the_end(runs: xr.Dataset) -> xr.DataArray:
    """Mean entropy over the last `END` records: (learning_rate, seed, layer)."""
    return entropy(runs).isel(time=slice(-END, None)).mean("time")


def slopes(runs: xr.Dataset) -> xr.DataArray:
    """Slope of the entropy at the end in the learning rate, least squares, of each seed: (seed, layer)."""
    end = at_the_end(runs)
    x = runs["learning_rate"] - runs["learning_rate"].mean()
    return (end * x).sum("learning_rate", skipna=False) / (x**2).sum()


def rebounds(runs: xr.Dataset) -> xr.DataArray:
    """How far entropy is, at the end, above its lowest since the start, in parts of that of uniform attention."""
    lowest = entropy(runs).min("time")
    return (at_the_end(runs) - lowest) / float(runs["uniform_entropy"])


def drops(runs: xr.Dataset) -> xr.DataArray:
    """How far entropy falls from its highest to its lowest after that, in parts of that of uniform attention."""
    found = entropy(runs).transpose(..., "time")
    highest = np.maximum.accumulate(found.values, axis=-1)
    fall = (highest - found.values).max(axis=-1)
    return found.isel(time=0, drop=True).copy(data=fall / float(runs["uniform_entropy"]))


def last_movement(runs: xr.Dataset) -> xr.DataArray:
    """How fast maps move at the end (mean of the last `END` records), as a share of the fastest."""
    moved = deep_text.movement(runs).where(runs["diverged"] < 0)
    return moved.isel(time=slice(-END, None)).mean("time") / moved.max("time")


def same_path(runs: xr.Dataset) -> xr.DataArray:
    """Entropy at equal learning rate x steps, that of the smallest rate at its end, less that of the smallest rate."""
    rates, time = runs["learning_rate"].values, runs["time"].values
    found, last = entropy(runs), time[-1]
    rows = []
    for rate in rates:
        at = last * rates[0] / rate
        rows.append(found.sel(learning_rate=rate).sel(time=at, method="nearest", drop=True))
    cell = xr.concat(rows, "learning_rate").assign_coords(learning_rate=rates)
    return cell - cell.sel(learning_rate=rates[0])


def trains(runs: xr.Dataset, unigram: float, *, gain: float = 0.1) -> xr.DataArray:
    """Which runs did not diverge and end, in the mean of the last `END` records, below ``unigram`` by ``gain`` nats."""
    end = runs["loss"].isel(time=slice(-END, None)).mean("time")
    return (runs["diverged"] < 0) & (end <= unigram - checks.positive("gain", gain))


# The figure


@styled
def paper_rates(runs: Sequence[xr.Dataset]) -> Figure:
    """Entropy of attention of the first layer at the paper's rates, and how fast it moves, with one and three layers.

    Ordinary transformers without positions on text, SGD at one rate, the norm of the gradient cut. Left:
    entropy over the held-out windows, mean over seeds, and seed by seed (thin). Middle: the entropy at the end of each
    seed, with the 95% interval of the mean (Student's t). Right: total variation of the first layer's maps per 100
    steps, mean over seeds.

    Parameters
    ----------
    runs : sequence of xarray.Dataset
        From `runs_of`, one for each number of layers.
    """
    figure = canvas(figsize=(11.5, 3.3 * len(runs)))
    panels = figure.subplots(len(runs), 3, squeeze=False)
    for row, run in zip(panels, runs, strict=True):
        rates, layers = run["learning_rate"].values, run.sizes["layer"]
        found, moved = entropy(run).isel(layer=0), deep_text.movement(run).isel(layer=0)
        end = at_the_end(run).isel(layer=0)
        for rate, colour in zip(rates, ordered_colours(len(rates)), strict=True):
            one = found.sel(learning_rate=rate).transpose("time", "seed")
            row[0].plot(run["time"], one, color=colour, linewidth=0.6, alpha=0.5)
            row[0].plot(run["time"], one.mean("seed"), color=colour, linewidth=2, label=rf"$\eta$ = {rate:g}")
            row[1].plot(np.full(run.sizes["seed"], rate), end.sel(learning_rate=rate), "o", color=colour, alpha=0.7)
            row[2].plot(moved["time"], moved.sel(learning_rate=rate).mean("seed"), color=colour)
        row[1].errorbar(rates + 0.2, end.mean("seed"), intervals.of_mean(end), fmt="_", color=BLACK, capsize=3)
        for axes in row[:2]:
            label = "uniform attention" if axes is row[0] else None
            axes.axhline(float(run["uniform_entropy"]), color=BLACK, linewidth=0.8, linestyle=":", label=label)
            axes.set_ylim(0, None)
        count = f"{layers} layer{'s' * (layers > 1)}"
        row[0].set(xlabel="SGD steps", ylabel=f"{count}\nentropy (nats)", title="entropy of attention")
        row[1].set(xlabel=r"learning rate $\eta$ (1 / step)", ylabel="entropy (nats)", title="at the end", xticks=rates)
        row[2].set(xlabel="SGD steps", ylabel="total variation\nper 100 steps", title="movement", yscale="log")
        row[2].set_yticks((0.03, 0.1, 0.3), ("0.03", "0.1", "0.3"))
        row[2].yaxis.set_minor_formatter(NullFormatter())
    figure.legend(*panels[0][0].get_legend_handles_labels(), loc="outside right center")
    figure.suptitle(f"First layer of ordinary transformers on text, {runs[0].sizes['seed']} seeds")
    return figure


def _claims(runs: Sequence[xr.Dataset]) -> str:
    said = []
    for run in runs:
        layers, good = run.sizes["layer"], int((run["diverged"] < 0).sum())
        total = run["diverged"].size
        slope, back = slopes(run).isel(layer=0), rebounds(run).isel(layer=0)
        sentence = (
            f"With {layers} layer{'s' * (layers > 1)} {good} of {total} runs do not diverge in {run.sizes['step']} "
            f"steps; entropy at the end changes by {float(slope.mean()):+.3f} nats"
        )
        if slope.sizes["seed"] > 1:
            sentence += f" +- {float(intervals.of_mean(slope)):.3f}"
        sentence += (
            f" per unit of the rate; it ends more than {REBOUND:.0%} of the uniform entropy above its lowest in "
        )
        said.append(sentence + f"{int((back > REBOUND).sum())} runs.")
    return " ".join(said)


def _runs(effort: Effort) -> list[xr.Dataset]:
    """On a synthetic text."""
    tokens = deep_text.synthetic_text(40_000 if effort.quick else 2_200_000, vocab_size=VOCAB_SIZE)
    few: dict[str, Any] = {"rates": (1.0, 5.0), "seeds": (1, 2), "steps": 60, "records": 12} if effort.quick else {}
    return [runs_of(tokens, layers, progress=effort.progress, **few) for layers in LAYERS]


FIGURES = (Entry("paper_rates", PAPER, paper_rates, _runs, claims=_claims),)

# <!-- numbers
# typed: 95% (level of intervals and quantiles)
# typed: 100 (written before the runs, and in the study's code; rates of the paper)
# -->
