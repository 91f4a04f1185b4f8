"""Figures of sparse averaging (Sanford, Hsu, Telgarsky 2023, arXiv 2306.02896): what is learnt of Match2 and Match3."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from yzflow.figures.registry import Effort, Entry
from yzflow.figures.style import BLACK, BLUE, GREEN, ORANGE, PURPLE, VERMILION, canvas, styled
from yzflow.intervals import standard_error
from yzflow_studies.learning_match import cells
from yzflow_studies.learning_match import small_units as small

_COLOURS = {"one layer": BLUE, "two layers": ORANGE, "third order": VERMILION}
_QUICK = ("Match2, one layer", "Match3, one layer", "Match3, third order", "Match3, from the construction")
_LEARNT = 0.05  # of the best constant's loss
_SINGLE_BITS = 24  # of a number in single precision


def share_of_constant(data: xr.Dataset) -> xr.DataArray:
    """Loss at the end over that of the best constant, (cell, n_tokens, seed)."""
    last = data.isel(time=-1)
    return last["loss"] / last["constant_loss"]


@styled
def match_learning(data: xr.Dataset) -> Figure:
    """Units that learn Match2 and Match3: their loss, and how well tokens with and without a triple are told apart.

    Left: loss on inputs that training does not see, over that of the best constant; dotted, the best guess that knows
    which tokens of Match3 have a match with one other token (repeats are allowed), and nothing else. Right: tokens
    without such a match: the chance that one with a triple gets a larger logit than one without; 1/2 is chance. Bars
    are standard errors over seeds. Crosses: Adam started at a construction. M grows with N, as N for Match2 and N^2
    for Match3, so that half of the tokens have a match: what N does and what M does is not told apart.

    Parameters
    ----------
    data : xarray.Dataset
        From `cells.learning`.
    """
    figure = canvas(figsize=(12.5, 4.4))
    left, right = figure.subplots(1, 2)
    share, last = share_of_constant(data), data.isel(time=-1)
    sizes = data["n_tokens"].values
    for number, name in enumerate(str(value) for value in data["cell"].values):
        cell = cells.CELLS[name]
        constructed = cell.init == "construction"
        hollow = "size of the" in name or (cell.kind == "two layers" and not cell.positions)
        look: dict[str, Any] = {
            "color": GREEN if constructed else _COLOURS[cell.kind],
            "marker": "x" if constructed else ("o" if cell.order == 3 else "s"),
            "linestyle": "none" if constructed else ("-" if cell.order == 3 else "--"),
            "fillstyle": "none" if hollow else "full",
        }
        nudge = sizes * 1.015 ** (number - data.sizes["cell"] / 2)  # so that bars do not hide each other
        for axes, values in ((left, share), (right, last["triple_area"])):
            if axes is left or cell.order == 3:
                one = values.sel(cell=name)
                axes.errorbar(
                    nudge, one.mean("seed").values, standard_error(one).values, capsize=2, markersize=5, linewidth=1.1,
                    label=_name(name), **look,
                )  # fmt: skip
    triples = [name for name in data["cell"].values if cells.CELLS[str(name)].order == 3]
    if triples:
        known = (last["pair_loss"] / last["constant_loss"]).sel(cell=triples).mean(["cell", "seed"])
        left.plot(sizes, known.values, ":", color=BLACK, label="Match3, pairs known")
    right.axhline(0.5, color=BLACK, linewidth=0.8)
    left.set(ylabel="loss / that of the best constant", ylim=(-0.04, 1.12))
    right.set(ylabel="chance to rank a triple above none", ylim=(0.45, 1.03))
    for axes in (left, right):
        axes.set(xlabel="tokens N", xscale="log")
        axes.set_xticks(sizes, [str(n) for n in sizes])
        axes.minorticks_off()
    figure.legend(*left.get_legend_handles_labels(), loc="outside right center")
    figure.suptitle(f"Trained on Match2 and Match3: {data.sizes['seed']} seeds, {data.attrs['steps']} steps of Adam")
    return figure


def _name(cell: str) -> str:
    one = cells.CELLS[cell]
    return cell if one.init == "construction" else f"{cell.split(', size')[0]}, m = {one.dimension}, H = {one.heads}"


@styled
def match_small_units(data: xr.Dataset) -> Figure:
    """Units of one layer too small for Match3 by the lower bound, and larger ones, trained on all inputs of a protocol.

    Even attention, values of few bits, any map behind: wrong answers over all 4^n inputs, for the dimension d' of the
    values. Dots: at the end of training; triangles: fewest over training. Bars: what no such unit avoids, 2^n less the
    number of messages. Dotted: wrong answers of the best constant. Enough bits are no promise that training finds them.

    Parameters
    ----------
    data : xarray.Dataset
        From `small_units.small_units`.
    """
    figure = canvas(figsize=(6.6, 4.2))
    axes = figure.subplots()
    sizes = data["value_dimension"].values
    for name, marker, colour, label in (
        ("errors", "o", BLUE, "at the end, each seed"),
        ("fewest", "v", PURPLE, "fewest over training"),
    ):
        values = data[name].transpose("value_dimension", "seed").values
        axes.plot(np.repeat(sizes, values.shape[1]), values.ravel(), marker, color=colour, markersize=4, label=label)
    axes.plot(sizes, data["bound"], "_", color=VERMILION, markersize=22, markeredgewidth=2, label="no unit has fewer")
    constant = min(data.attrs["matches"], data.attrs["inputs"] - data.attrs["matches"])
    axes.axhline(constant, color=BLACK, linestyle=":", label="best constant")
    axes.set(xlabel="dimension d' of the values", ylabel=f"wrong answers of {data.attrs['inputs']}", xscale="log")
    axes.set_yscale("symlog", linthresh=10)
    axes.set_ylim(bottom=-0.5)
    ticks = [tick for tick in (0, 2, 5, 10, 20, 50, 100, 200, 500, 1000) if tick < axes.get_ylim()[1]]
    axes.set_yticks(ticks, [str(tick) for tick in ticks])
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.minorticks_off()
    axes.legend(loc="lower left")
    axes.set_title(f"n = {data.attrs['n']}, values of {data.attrs['bits']} bit, {data.sizes['seed']} seeds")
    return figure


def _learnt(data: xr.Dataset) -> str:
    """Sentences on what is learnt at which N, how far triples are told apart, and the bounds at these sizes."""
    share = share_of_constant(data).mean("seed")
    last = data.isel(time=-1)
    area, area_error = last["triple_area"].mean("seed"), standard_error(last["triple_area"])
    learnt: list[str] = []
    failed: list[str] = []
    ranked, kept = [], []
    for name in (str(value) for value in data["cell"].values):
        cell = cells.CELLS[name]
        sizes = [int(n) for n in data["n_tokens"].values if np.isfinite(share.sel(cell=name, n_tokens=n))]
        if cell.init == "construction":
            kept += [f"{float(share.sel(cell=name, n_tokens=n)):.3f} ({name}, N = {n})" for n in sizes]
            continue
        for where, chosen in ((learnt, [n for n in sizes if share.sel(cell=name, n_tokens=n) < _LEARNT]),
                              (failed, [n for n in sizes if share.sel(cell=name, n_tokens=n) >= _LEARNT])):  # fmt: skip
            if chosen:
                where.append(f"{_name(name)} (N = {', '.join(map(str, chosen))})")
        if cell.order == 3:
            shown = [
                f"{float(area.sel(cell=name, n_tokens=n)):.3f} +- {float(area_error.sel(cell=name, n_tokens=n)):.3f}"
                for n in sizes
            ]
            ranked.append(f"{_name(name)}: {', '.join(shown)} at N = {', '.join(map(str, sizes))}")
    text = (
        f"Learnt, to {_LEARNT:.0%} of the best constant's loss in the mean over seeds: {'; '.join(learnt) or 'none'}."
    )
    text += f" Not learnt in these steps: {'; '.join(failed) or 'none'}."
    if ranked:
        text += f" Triples: {'; '.join(ranked)}."
    if kept:
        text += f" Loss over the constant's where Adam started at a construction: {', '.join(kept)}."
    return f"{text} {_excluded(data)}"


def _excluded(data: xr.Dataset) -> str:
    """Which of the layers for Match3 the lower bound excludes, at single precision."""
    layers = {str(name): cells.CELLS[str(name)] for name in data["cell"].values}
    layers = {name: cell for name, cell in layers.items() if cell.kind == "one layer" and cell.order == 3}
    if not layers:
        return "No single layer is trained on Match3."
    bits = min((cell.dimension + 1) * cell.heads * _SINGLE_BITS for cell in layers.values())
    ran = data["loss"].sel(cell=list(layers)).notnull().any(["cell", "seed", "time"])
    needed = (int(data["n_tokens"][ran].max()) - 1) // 2
    verdict = "excludes" if bits < needed else "does not exclude"
    return (
        f"The lower bound {verdict} the one layer for Match3 at these N: it can send (m + 1) H p = {bits} bits at p ="
        f" {_SINGLE_BITS}, and {needed} are needed."
    )


def _too_small(data: xr.Dataset) -> str:
    """Whether the units that the bound excludes erred, and which of the others were right."""
    sizes = data["value_dimension"].values
    excluded = [int(size) for size in sizes if int(data["bound"].sel(value_dimension=size)) > 0]
    right = [int(size) for size in sizes if int(data["fewest"].sel(value_dimension=size).min()) == 0]
    fewest = [int(data["fewest"].sel(value_dimension=size).min()) for size in excluded]
    bound = [int(data["bound"].sel(value_dimension=size)) for size in excluded]
    said = f"Excluded: d' = {_listed(excluded)}, at least {_listed(bound)} errors; the best run had {_listed(fewest)}."
    return f"{said} Some run is right on all inputs at d' = {_listed(right)}."


def _listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers)) or "none"


def _learning(effort: Effort) -> xr.Dataset:
    few: dict[str, Any] = {"sizes": (8,), "cells": _QUICK, "seeds": 2, "steps": 200} if effort.quick else {}
    return cells.learning(store=effort.store, progress=effort.progress, **few)


def _small(effort: Effort) -> xr.Dataset:
    few: dict[str, Any] = {"value_dimensions": (1, 3), "n": 3, "seeds": 2, "steps": 400} if effort.quick else {}
    return small.small_units(**few)


FIGURES = (
    Entry("match_learning", "Sparse averaging", match_learning, _learning, claims=_learnt),
    Entry("match_small_units", "Sparse averaging", match_small_units, _small, claims=_too_small),
)
