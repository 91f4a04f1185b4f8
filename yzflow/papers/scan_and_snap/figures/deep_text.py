"""Figures of ordinary transformers: Scan and Snap's Figures 7 and 10, and those of bounded Dyck languages."""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from dynamics import DyckLanguage
from yzflow.figures.style import BLACK, CATEGORIES, ordered_colours, styled
from yzflow.papers.bounded_dyck.figures.balance import draw_map
from yzflow.papers.scan_and_snap import deep_text

__all__ = [
    "deep_attention",
    "deep_dyck_attention",
    "deep_dyck_length",
    "deep_dyck_variation",
    "deep_entropy",
    "deep_text_flattening",
]

_TRAINED_ON = {"word": "trained on words", "prefix": "trained on prefixes"}


@styled
def deep_entropy(runs: xr.Dataset | None = None, *, quick: bool = False, progress: bool = False) -> Figure:
    """Entropy of attention of an ordinary transformer over training and at its end, by learning rate (Fig. 10).

    Bars and bands are standard errors over seeds. Entropy first rises while the decoder learns frequencies, and then
    falls, both sooner at larger rates: runs of some ten steps show the rise only. Agrees with the paper in that, after
    the same number of several hundred steps of SGD, entropy is lower at larger rates; at equal learning rate x steps it
    differs less. Rates are not those of the paper, whose normalisation is another.

    Parameters
    ----------
    runs : xarray.Dataset, optional
        From `deep_text.trained`. Default: its own, on a synthetic text.
    quick : bool
        Fewer rates, seeds and steps.
    progress : bool
        Show progress on standard error.
    """
    if runs is None:
        few = {"rates": (0.1, 0.4), "seeds": 2, "steps": 300} if quick else {}
        runs = deep_text.trained(progress=progress, **few)
    rates = runs["learning_rate"].values
    figure = Figure(figsize=(9.6, 3.7))
    over_time, at_end = figure.subplots(1, 2, sharey=True)
    uniform = float(runs["uniform_entropy"])
    per_seed = runs["entropy"].where(runs["diverged"] < 0).mean("head")
    mean, error = per_seed.mean("seed"), per_seed.std("seed", ddof=1) / np.sqrt(per_seed.count("seed"))
    for rate, colour in zip(rates, ordered_colours(len(rates)), strict=True):
        line, spread = (part.sel(learning_rate=rate).isel(layer=0).values for part in (mean, error))
        time = runs["time"].values
        over_time.plot(time, line, color=colour, label=rf"$\eta$ = {rate:g}")
        over_time.fill_between(time, line - spread, line + spread, color=colour, alpha=0.25, linewidth=0)
    end = deep_text.final_entropy(runs)
    for number, layer in enumerate(runs["layer"].values):
        cell = end.sel(layer=layer)
        colour, style = CATEGORIES[number]
        values, errors = cell["mean"].values, cell["standard_error"].values
        at_end.errorbar(rates, values, errors, fmt=f"o{style}", color=colour, capsize=3, label=f"layer {layer}")
    for axes in (over_time, at_end):
        label = "uniform attention" if axes is over_time else None
        axes.axhline(uniform, color=BLACK, linewidth=0.8, linestyle=":", label=label)
    over_time.set_ylabel("entropy of attention (nats)")
    over_time.set(xlabel="SGD steps", title="first layer, over training")
    at_end.set(xlabel=r"learning rate $\eta$ (1 / step)", title=f"after {runs.sizes['step']} steps", xscale="log")
    at_end.set_xticks(rates, [f"{rate:g}" for rate in rates], minor=False)
    at_end.minorticks_off()
    handles, labels = over_time.get_legend_handles_labels()
    layers, names = at_end.get_legend_handles_labels()
    figure.legend(handles + layers, labels + names, loc="outside right center")
    figure.suptitle(f"Ordinary transformer on text, SGD, {runs.sizes['seed']} seeds")
    return figure


@styled
def deep_attention(runs: Mapping[int, xr.Dataset] | None = None, *, quick=False, progress=False) -> Figure:
    """Attention of the first layer on a window of text over training, 1 and 3 layers, and how fast it moves (Fig. 7).

    Agrees with the paper in part: attention becomes sparse and, while the learning rate stays the same, moves less
    after an early burst; within these runs it slows down and does not stop.

    Parameters
    ----------
    runs : mapping from number of layers to xarray.Dataset, optional
        From `deep_text.trained`; the first rate, seed, window and head are drawn. Default: its own, on a synthetic
        text.
    quick : bool
        Fewer steps.
    progress : bool
        Show progress on standard error.
    """
    if runs is None:
        steps = 100 if quick else 1000
        runs = {
            layers: deep_text.trained(rates=[0.2], seeds=1, n_layers=layers, steps=steps, progress=progress)
            for layers in (1, 3)
        }
    shown = 4
    figure = Figure(figsize=(12.4, 2.9 * len(runs) + 0.5))
    panels = figure.subplots(len(runs), shown + 1, squeeze=False, width_ratios=[1] * shown + [1.25])
    for row, (layers, run) in zip(panels, runs.items(), strict=True):
        run = run.isel(learning_rate=0, seed=0)
        times = np.unique(np.linspace(0, run.sizes["time"] - 1, shown).round().astype(int))
        for axes, time in zip(row, times, strict=False):
            maps = run["attention"].isel(time=time, probe=0, layer=0, head=0).values
            causal = np.where(np.tri(len(maps), dtype=bool), maps, np.nan)
            image = axes.imshow(causal, cmap="cividis", vmin=0, vmax=0.5, interpolation="nearest")
            axes.grid(False)
            axes.set_title(f"step {int(run['time'].values[time])}")
            axes.set_xlabel("key position")
        for axes in row[len(times) : shown]:
            axes.set_visible(False)
        row[0].set_ylabel(f"{layers} layer{'s' * (layers > 1)}\nquery position")
        moved = deep_text.movement(run)
        for number, layer in enumerate(moved["layer"].values):
            colour, style = CATEGORIES[number]
            line = moved.sel(layer=layer)
            row[-1].plot(line["time"], line, color=colour, linestyle=style, label=f"layer {layer}")
        row[-1].set(xlabel="SGD steps", ylabel="total variation\nper 100 steps", ylim=(0, None), title="movement")
        row[-1].legend()
    figure.colorbar(image, ax=panels[:, :shown], label="attention", shrink=0.7, extend="max", location="left")
    figure.suptitle("First layer of an ordinary transformer over training, at one learning rate")
    return figure


@styled
def deep_text_flattening(runs: xr.Dataset) -> Figure:
    """Loss and entropy of attention of an ordinary transformer on text over training, at a real vocabulary.

    The dots are where entropy stops falling: from there on it never falls by more than 5% of the entropy of uniform
    attention up to the end of the run, which is at least as long again. Agrees with the paper in that attention gets
    sparser and its entropy then stops falling. How sparse depends on the seed, which the loss hardly shows; and
    attention does not freeze: its entropy rises again, slowly.

    Parameters
    ----------
    runs : xarray.Dataset
        From `deep_text.trained`, with ``deep_text.FLATTENING``; the first layer of each rate and seed is drawn.
    """
    figure = Figure(figsize=(9.6, 3.7))
    losses, entropies = figure.subplots(1, 2)
    since = deep_text.flattened(runs).isel(layer=0)
    rates, seeds = runs["learning_rate"].values, runs["seed"].values
    by_seed = len(rates) == 1  # what colours tell apart
    colours = ordered_colours(len(seeds) if by_seed else len(rates))
    for i, rate in enumerate(rates):
        for j, seed in enumerate(seeds):
            one, flat = runs.sel(learning_rate=rate, seed=seed), float(since.sel(learning_rate=rate, seed=seed))
            colour = colours[j if by_seed else i]
            label = f"seed {seed}" if by_seed else rf"$\eta$ = {rate:g}" if j == 0 else None
            entropy = one["entropy"].isel(layer=0).mean("head")
            losses.plot(one["time"], one["loss"], color=colour)
            entropies.plot(one["time"], entropy, color=colour, label=label)
            if np.isfinite(flat):
                entropies.plot(flat, entropy.sel(time=flat), "o", color=colour, markeredgecolor=BLACK)
    entropies.plot([], [], "o", color="white", markeredgecolor=BLACK, label="falls no more\nfrom here on")
    uniform = float(runs["uniform_entropy"])
    entropies.axhline(uniform, color=BLACK, linewidth=0.8, linestyle=":", label="uniform attention")
    losses.set(xlabel="SGD steps", ylabel="validation loss (nats)", title="loss")
    entropies.set(xlabel="SGD steps", ylabel="entropy of attention (nats)", ylim=(0, None), title="first layer")
    figure.legend(*entropies.get_legend_handles_labels(), loc="outside right center")
    size = json.loads(runs.attrs["parameters"])["architecture"]["vocab_size"]
    which = rf", $\eta$ = {rates[0]:g}" if by_seed else ""
    figure.suptitle(f"Ordinary transformer on text: vocabulary of {size}, windows of {runs.sizes['position']}{which}")
    return figure


@styled
def deep_dyck_attention(runs: Mapping[str, xr.Dataset]) -> Figure:
    """Attention of trained 2-layer transformers on a word with every bracket at every depth: seeds differ (Fig. 1).

    S is START. Agrees with the paper: all are right on nearly all short prefixes, their maps differ from seed to seed.
    Maps are mostly not stack-like. Less training than the paper's: 93% to 99% of short closing brackets are right
    after 1000 steps.

    Parameters
    ----------
    runs : mapping from a name to xarray.Dataset
        From `yzflow.papers.bounded_dyck.deep.trained`; the last layer of the first three seeds is drawn.
    """
    columns = 3
    figure = Figure(figsize=(3.4 * columns + 1, 3.4 * len(runs) + 0.5))
    panels = figure.subplots(len(runs), columns, sharex="row", sharey="row", squeeze=False)
    for row, (name, run) in zip(panels, runs.items(), strict=True):
        language = DyckLanguage(int(run.attrs["k"]), int(run.attrs["D"]))
        for axes, seed in zip(row, run["seed"].values[:columns], strict=True):
            one = run.sel(seed=seed)
            image = draw_map(axes, one["attention"].isel(time=-1, probe=0, layer=-1, head=0).values, language)
            axes.set_title(f"{name}, seed {seed}: accuracy {float(one['accuracy'].sel(length='below 28')):.3f}")
            axes.set_xlabel("position")
        row[0].set_ylabel("query")
    figure.colorbar(image, ax=panels, label="attention", shrink=0.8)
    figure.suptitle("Second layer of 2-layer transformers, and accuracy on prefixes of length < 28")
    return figure


@styled
def deep_dyck_variation(table: xr.Dataset) -> Figure:
    """Attention variation between seeds by language, number of layers and layer (Table 1), beside that of random rows.

    Bars are jackknife standard errors. Agrees with the paper, with four seeds, in that layers above the first vary more
    than random rows, in all eight settings of the table; the first, mostly close to uniform, not beyond its error.

    Parameters
    ----------
    table : xarray.Dataset
        From `yzflow.papers.bounded_dyck.deep.table`.
    """
    figure = Figure(figsize=(9.6, 4.0))
    axes = figure.subplots()
    place = np.arange(table.sizes["setting"])
    for number, layer in enumerate(table["layer"].values):
        cell, (colour, _) = table.sel(layer=layer), CATEGORIES[number]
        where = place + 0.2 * (number - 1)
        axes.errorbar(
            where, cell["variation"], cell["standard_error"], fmt="osD"[number], color=colour, capsize=3,
            label=f"layer {layer}",
        )  # fmt: skip
        axes.plot(
            where, cell["start"], "_", color=colour, markersize=9, label="before training" if number == 0 else None
        )
    for here, value in zip(place, table["random"].values, strict=True):
        axes.hlines(
            value, here - 0.4, here + 0.4, color=BLACK, linestyle=":", label="random rows" if here == 0 else None
        )
    labels = [str(name).replace(", ", "\n") for name in table["setting"].values]
    axes.set_xticks(place, labels)
    axes.set(ylabel=r"attention variation $||A_1 - A_2||_F^2$", ylim=(0, None))
    figure.legend(loc="outside right center")
    figure.suptitle("Attention of ordinary transformers on Dyck varies between seeds")
    return figure


@styled
def deep_dyck_length(runs: xr.Dataset) -> Figure:
    """Accuracy of 2-layer transformers on long prefixes by the weight of the contrastive regulariser (Figs. 3 and 10).

    Small dots are seeds, bars standard errors of their mean. The paper finds that the regulariser helps on long
    prefixes; four seeds after 1000 steps show no effect, with errors of 0.01 to 0.03. After an open
    bracket its own type is right, which makes 0.79 for a model that guesses elsewhere: prefixes whose last bracket
    closes are shown apart. In the layer Y/Z/V the regulariser helps from small starts only (`dyck_length`).

    Parameters
    ----------
    runs : xarray.Dataset
        From `yzflow.papers.bounded_dyck.deep.lengths`.
    """
    figure = Figure(figsize=(9.6, 3.7))
    panels = figure.subplots(1, runs.sizes["kind"], sharey=True, squeeze=False)[0]
    weights = [f"{weight:g}" for weight in runs["contrast_weight"].values]
    place = np.arange(len(weights))
    lines = [("accuracy", length, f"length {length}") for length in runs["length"].values]
    lines.append(("accuracy_after_closing", lines[-1][1], f"{lines[-1][2]},\nlast bracket closes"))
    for axes, kind in zip(panels, runs["kind"].values, strict=True):
        for number, (name, length, label) in enumerate(lines):
            cell, (colour, style) = runs[name].sel(kind=kind, length=length), CATEGORIES[1 + number]
            shift = 0.05 * (number - 1)
            for seed in cell["seed"].values:
                axes.plot(place + shift, cell.sel(seed=seed), ".", color=colour, markersize=4, alpha=0.6)
            error = cell.std("seed", ddof=1) / np.sqrt(cell.sizes["seed"])
            axes.errorbar(
                place + shift, cell.mean("seed"), error, fmt=f"o{style}", color=colour, capsize=3, label=label
            )
        axes.axhline(1 / runs.attrs["k"], color=BLACK, linewidth=0.8, linestyle=":", label="guessing a type")
        axes.set_xticks(place, weights)
        axes.set(xlabel="weight of the regulariser", title=_TRAINED_ON[str(kind)])
    panels[0].set_ylabel("closing brackets found")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right center")
    figure.suptitle("2-layer transformers on Dyck: short and long prefixes")
    return figure
