"""Layers whose attention is held uniform while the rest trains, beside those that train it: short and long prefixes.

Wen, Li, Liu, Risteski (2023), arXiv 2312.01429, Section 3.2, footnote 4, and Section 4.2. The hypotheses below were
written, with seeds, data and statistics, before any of the runs was made.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.stats
import xarray as xr
from matplotlib.figure import Figure
from yzflow_bounded_dyck import training as dyck

from dynamics.support import checks
from dynamics.support.netcdf import kept
from yzflow import intervals
from yzflow.figures.registry import Effort, Entry
from yzflow.figures.style import BLACK, CATEGORIES, canvas, styled

PAPER = "Bounded Dyck"
SEEDS = tuple(range(200, 220))  # used by no other study of this project
DATA_SEED = 2026  # of training and test prefixes, drawn for this study
SCALE = 0.1  # of the start of attention that trains
UNITS = {"linear decoder": 0, "feed-forward part": 128}
ATTENTION = ("uniform", "trained")
SHORT, LONG = "below 28", "400-500"
LEVEL = 0.99  # of each hypothesis, one-sided
_FORMAT, _WHAT = "yzflow-uniform-attention-1", "layers with attention held uniform or trained"


class Hypothesis(NamedTuple):
    """A claim about a mean over seeds, and which interval decides it.

    Attributes
    ----------
    name, says : str
    bound : float
    above : bool
        Whether the mean is claimed to be above the bound, or below.
    """

    name: str
    says: str
    bound: float
    above: bool


HYPOTHESES = (
    Hypothesis("H1", "held uniform, at least 99% of the closing brackets of short prefixes are found", 0.99, True),
    Hypothesis("H2", "held uniform, fewer than 95% are found at lengths 400-500 after a closing bracket", 0.95, False),
    Hypothesis("H3", "there, uniform attention finds more than trained attention, seed by seed", 0.0, True),
)


def verdict(values: Sequence[float], claim: Hypothesis, level: float = LEVEL) -> str:
    """Verdict on a claim about the mean of values: "supported", "refuted" or "open", by one-sided t-limits.

    Parameters
    ----------
    values : (n,) array
        One for each seed, two at least.
    claim : Hypothesis
    level : float
        Of each of the two limits.
    """
    found = checks.finite_array("values", values, ndim=1)
    if found.size < 2:
        raise checks.reject("values", "have two entries at least", found.size)
    error = found.std(ddof=1) / np.sqrt(found.size)
    half = scipy.stats.t.ppf(level, found.size - 1) * error
    low, high = (found.mean() - half - claim.bound, found.mean() + half - claim.bound)
    if not claim.above:
        low, high = -high, -low
    return "supported" if low > 0 else "refuted" if high < 0 else "open"


def trained(
    *,
    units: dict[str, int] | None = None,
    seeds: Sequence[int] = SEEDS,
    steps: int = dyck.STEPS,
    scale: float = SCALE,
    samples: dyck.Data | None = None,
    data_seed: int = DATA_SEED,
    store: str | os.PathLike | None = None,
    progress: bool = False,
) -> xr.Dataset:
    """Every decoder with attention that is held uniform, and with attention that trains, from the same seeds.

    Parameters
    ----------
    units : mapping
        Name of a decoder -> rectified linear units before it. Default: `UNITS`.
    seeds, steps, scale, samples, progress
        As in `training.trained`. Default of ``samples``: drawn with ``data_seed``.
    data_seed : int
    store : path, optional
        A folder with a file for each decoder and attention that is done, which is not trained again. Its files are told
        apart by ``data_seed``: not for ``samples`` of another make.

    Returns
    -------
    xarray.Dataset
        That of `training.trained` over (decoder, held, seed).
    """
    if samples is not None and store is not None:
        raise checks.reject("samples", "be left out where `store` is given", "some")
    samples = dyck.data(seed=data_seed) if samples is None else samples
    units = UNITS if units is None else units
    options: dict[str, Any] = {
        "seeds": seeds,
        "steps": steps,
        "scale": (scale,),
        "samples": samples,
        "progress": progress,
    }
    rest = f"data{data_seed}-{steps}-{scale:g}-{'_'.join(map(str, seeds))}"
    cells = []
    for hidden in units.values():
        row = []
        for held in ATTENTION:
            train = functools.partial(_alone, hidden=hidden, uniform=held == "uniform", **options)
            path = None if store is None else Path(store) / f"{hidden}-{held}-{rest}.nc"
            row.append(kept(path, _FORMAT, _WHAT, train))
        cells.append(xr.concat(row, "held"))
    whole = xr.concat(cells, "decoder").assign_coords(decoder=list(units), held=list(ATTENTION))
    return whole.drop_encoding()


def _alone(**options: Any) -> xr.Dataset:
    """`training.trained` at one setting."""
    return dyck.trained(**options).isel(embedding=0, scale=0, eta=0, contrast_weight=0, drop=True)


def verdicts(runs: xr.Dataset) -> dict[str, dict[str, str]]:
    """Verdict on each of `HYPOTHESES` by decoder."""
    found = {}
    for decoder in runs["decoder"].values:
        accuracy = runs["accuracy"].sel(decoder=decoder)
        uniform, free = (accuracy.sel(held=held, length=LONG, query="close").values for held in ATTENTION)
        short = accuracy.sel(held="uniform", length=SHORT, query="all").values
        values = (short, uniform, uniform - free)
        found[str(decoder)] = {one.name: verdict(some, one) for one, some in zip(HYPOTHESES, values, strict=True)}
    return found


# The figure


@styled
def uniform_attention(runs: xr.Dataset) -> Figure:
    """Accuracy on long prefixes after a closing bracket, with attention held uniform and with attention that trains.

    A line joins the two layers of one seed; bars are 95% intervals of means (Student's t).

    Parameters
    ----------
    runs : xarray.Dataset
        From `trained`.
    """
    figure = canvas(figsize=(9.0, 3.8))
    panels = figure.subplots(1, runs.sizes["decoder"], sharey=True, squeeze=False)[0]
    place = np.arange(len(ATTENTION))
    for axes, decoder in zip(panels, runs["decoder"].values, strict=True):
        for number, (length, query, label) in enumerate(
            ((SHORT, "all", "length < 28"), (LONG, "close", "400-500, after a closing bracket"))
        ):
            cell = runs["accuracy"].sel(decoder=decoder, length=length, query=query).sel(held=list(ATTENTION))
            colour, style = CATEGORIES[1 + number]
            axes.plot(place, cell.transpose("held", "seed"), color=colour, linewidth=0.6, alpha=0.4)
            axes.errorbar(
                place, cell.mean("seed"), intervals.of_mean(cell), fmt=f"o{style}", color=colour, capsize=4, label=label
            )
        axes.axhline(1 / runs.attrs["k"], color=BLACK, linewidth=0.8, linestyle=":", label="guessing a type")
        axes.set_xticks(place, ["held uniform", "trained"])
        axes.set(title=str(decoder), xlabel="attention", xlim=(-0.3, 1.3))
    panels[0].set_ylabel("closing brackets found")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    figure.suptitle(f"{runs.sizes['seed']} seeds after {runs.attrs['steps']} steps of Adam on prefixes")
    return figure


def _claims(runs: xr.Dataset) -> str:
    """The verdicts, in sentences."""
    said = []
    for decoder, own in verdicts(runs).items():
        parts = [f"{one.says}: {own[one.name]}" for one in HYPOTHESES]
        said.append(f"With {'a ' if decoder[0] in 'lf' else ''}{decoder}: {'; '.join(parts)}.")
    return " ".join(said)


def _runs(effort: Effort) -> xr.Dataset:
    few: dict = {"seeds": SEEDS[:3], "steps": 300} if effort.quick else {}
    return trained(progress=effort.progress, **few)


FIGURES = (Entry("uniform_attention", PAPER, uniform_attention, _runs, claims=_claims),)

# <!-- numbers
# typed: 95% (level of intervals and quantiles)
# typed: 28 400 500 (range of lengths of the test prefixes, LENGTHS of yzflow_bounded_dyck.training)
# typed: 99% (written before the runs, and in the study's code)
# -->
