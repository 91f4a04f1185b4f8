"""Figures of bounded Dyck languages (Wen, Li, Liu, Risteski 2023, arXiv 2312.01429): attention, balance, length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from dynamics import DyckLanguage, Layer
from theory import balance
from yzflow.figures.maps import causal_map
from yzflow.figures.registry import Effort, Entry
from yzflow.figures.style import BLACK, CATEGORIES, canvas, log_ticks, ordered_colours, styled
from yzflow.papers.bounded_dyck import training as dyck
from yzflow.papers.bounded_dyck.settings import PAPER

_NAMES = {
    "none": "Z free",
    "one-hot": "(19) one-hot",
    "type and depth": "(20) type + depth",
    "type and angle": "(21) type + angle",
}
_MARKERS = "osD^v"


def _trained(effort: Effort, **settings: Any) -> xr.Dataset:
    few: dict[str, Any] = {"seeds": 3, "steps": 500} if effort.quick else {}
    return dyck.trained(progress=effort.progress, **settings, **few)


def _ends(values: Sequence[float]) -> Sequence[float]:
    """The smallest and the largest."""
    return values[:: len(values) - 1]


def _embeddings_and_rates(effort: Effort) -> xr.Dataset:
    size: dict[str, Any] = {"seeds": 1, "steps": 500 if effort.quick else dyck.STEPS}
    return dyck.trained(embedding=dyck.EMBEDDINGS, eta=dyck.RATES, progress=effort.progress, **size)


@styled
def dyck_attention(runs: xr.Dataset) -> Figure:
    """Attention of trained layers on a word with every bracket at every depth, by embedding and learning rate (Fig. 2).

    S is START. Agrees with the paper in that the patterns differ between embeddings and, less, between learning rates.
    Not all are far from stack-like: under (20) and (19) many closing queries look at open brackets of their own depth,
    more than by chance (`training.stack_share`). Y/Z/V layer, Adam, one seed.

    Parameters
    ----------
    runs : xarray.Dataset
        From `training.trained`; its first scale, weight and seed are drawn.
    """
    runs = runs.isel(scale=0, contrast_weight=0, seed=0)
    rows, columns = runs.sizes["eta"], runs.sizes["embedding"]
    figure = canvas(figsize=(3.4 * columns + 1, 3.5 * rows + 0.5))
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    for row, eta in zip(panels, runs["eta"].values, strict=True):
        for axes, kind in zip(row, runs["embedding"].values, strict=True):
            run = runs.sel(eta=eta, embedding=kind)
            image = causal_map(axes, run["attention"].values, labels=dyck.probe_labels(_language(runs)))
            right = float(run["accuracy"].sel(length="below 28", query="all"))
            axes.set_title(rf"{_NAMES[str(kind)]}, $\eta$ = {eta:g}: accuracy {right:.3f}", fontsize=9)
        row[0].set_ylabel("query")
    for axes in panels[-1]:
        axes.set_xlabel("position")
    figure.colorbar(image, ax=panels, label="attention", shrink=0.8)
    figure.suptitle(f"Attention after {runs.attrs['steps']} steps of Adam, and accuracy on prefixes of length < 28")
    return figure


def _language(runs: xr.Dataset) -> DyckLanguage:
    return DyckLanguage(int(runs.attrs["k"]), int(runs.attrs["D"]), float(runs.attrs["q"]))


def stack_like_layer(language: DyckLanguage, *, logit: float = 4.0) -> Layer:
    """A balanced layer whose queries look at the brackets of their own depth: at the last unmatched one most of all.

    ``R[q, (i, l)] = logit`` where l is the depth after q, else 0, in the family of `theory.balance.balanced_layer`.
    """
    plain = balance.balanced_layer(language, 0, scale=0.0)
    Z = np.zeros_like(plain.Z)
    opens, closes = balance.pairs(language)
    for query, state in enumerate(language.states[:-1]):
        if state.depth > 0:
            Z[query, opens[:, state.depth - 1]] = Z[query, closes[:, state.depth - 1]] = logit
    return Layer(Z, plain.Y, plain.V)


@styled
def dyck_balanced_layers(language: DyckLanguage) -> Figure:
    """Attention of exactly balanced layers: uniform, two random ones and a stack-like one.

    Agrees with Theorem 1 and Corollary 1: all four predict the next bracket exactly, to round-off, at lengths up to 500
    (largest error over 2000 random prefixes in the titles). Nothing in the picture tells the random ones from broken
    ones.
    """
    layers = {
        "uniform": balance.balanced_layer(language, 0, scale=0.0),
        "random R, a, b (1)": balance.balanced_layer(language, 1),
        "random R, a, b (2)": balance.balanced_layer(language, 2),
        "stack-like": stack_like_layer(language),
    }
    bags = language.sample(2000, max_length=500, rng=3)
    figure = canvas(figsize=(11, 3.5))
    panels = figure.subplots(1, len(layers), sharey=True)
    for axes, (name, layer) in zip(panels, layers.items(), strict=True):
        image = causal_map(axes, dyck.attention_map(layer, language), labels=dyck.probe_labels(language))
        error = np.abs(balance.exact_head(layer, language)(layer.features(bags)) - bags.target).max()
        axes.set_title(f"{name}\nlargest error {error:.0e}")
        axes.set_xlabel("position")
    panels[0].set_ylabel("query")
    figure.colorbar(image, ax=panels, label="attention", shrink=0.85)
    worst = max(balance.violation(layer, language) for layer in layers.values())
    figure.suptitle(f"Exactly balanced layers (violation at most {worst:.0e}): any pattern, exact predictions")
    return figure


@styled
def dyck_balance_over_training(runs: xr.Dataset) -> Figure:
    """Balance residual and violation along the gradient flow and along SGD, and their distance against the step.

    All prefixes of up to six brackets of the language k = D = 2, one random start of the Y/Z/V layer. As it should, SGD
    on the whole population approaches the flow, with order one in the learning rate where it is stable, as it is
    not to the end at the largest rate. Training lowers violation without being told to, and does not bring it to zero.

    Parameters
    ----------
    runs : xarray.Dataset
        From `training.flow_and_sgd`.
    """
    names = [str(name) for name in runs["run"].values]
    etas = np.array([float(name) for name in names[1:]])
    figure = canvas(figsize=(11.5, 3.7))
    panels = figure.subplots(1, 3)
    colours = ordered_colours(len(etas))[::-1]
    for axes, name, label in zip(panels[:2], ("residual", "violation"), ("residual (11)", "violation"), strict=True):
        for run, shade in zip(names[1:], colours, strict=True):
            axes.plot(runs["time"], runs[name].sel(run=run), "--", color=shade, label=rf"SGD, $\eta$ = {run}")
        axes.plot(runs["time"], runs[name].sel(run="flow"), color=BLACK, linewidth=1, label="flow")
        axes.set(xlabel="time (steps x learning rate)", ylabel=f"balance {label}")
        axes.set_ylim(bottom=0)
    panels[0].legend()
    for name, (colour, style), marker in zip(("residual", "violation"), CATEGORIES[1:3], _MARKERS, strict=False):
        gap = np.abs(runs[name] - runs[name].sel(run="flow")).max("time").sel(run=names[1:]).values
        panels[2].loglog(etas, gap, marker, color=colour, label=name)
        panels[2].loglog(etas, gap[-1] * etas / etas[-1], style, color=colour, linewidth=1, alpha=0.7)
    panels[2].set(xlabel=r"learning rate $\eta$", ylabel="largest distance from the flow")
    panels[2].set_xticks(etas, [f"{eta:g}" for eta in etas])
    panels[2].minorticks_off()
    log_ticks(panels[2].yaxis)
    panels[2].set_title("lines: slope one")
    panels[2].legend()
    figure.suptitle("Balance over training: gradient flow and SGD on the whole population")
    return figure


def _regularised(effort: Effort) -> xr.Dataset:
    weights = _ends(dyck.CONTRAST_WEIGHTS) if effort.quick else dyck.CONTRAST_WEIGHTS
    return _trained(effort, contrast_weight=weights, scale=(0.1, 1.0))


@styled
def dyck_length(runs: xr.Dataset) -> Figure:
    """Accuracy after a closing query at lengths 400-500 against violation, and against that at the mean prefix.

    A point is a layer trained on the last positions of prefixes, with exact targets: neither the regime of the paper's
    Fig. 3, complete words, nor that of its App. D.2, all positions of prefixes; both are in `dyck_words`. Colours are
    weights of the regulariser (22), marks are initial scales of Z. The regulariser lowers violation, as in the paper.
    Between seeds of one setting violation says little about long prefixes. Right: the accuracy of the layer's own
    decoder at the mean long prefix, whose matched pairs are replaced by their mean number. That is nearly the outcome
    itself (grey: the diagonal), and no number of the attention alone.

    Parameters
    ----------
    runs : xarray.Dataset
        From `training.trained`.
    """
    runs = runs.isel(embedding=0, eta=0)
    at = {"length": "400-500", "query": "close"}
    figure = canvas(figsize=(11, 4.4))
    left, right = figure.subplots(1, 2, sharey=True)
    weights, scales = runs["contrast_weight"].values, runs["scale"].values
    right.plot([0.4, 1.02], [0.4, 1.02], color="0.6", linewidth=1)
    for weight, colour in zip(weights, ordered_colours(len(weights)), strict=True):
        for scale, marker in zip(scales, _MARKERS, strict=False):
            some = runs.sel(contrast_weight=weight, scale=scale)
            style = {"color": colour, "marker": marker, "s": 26, "alpha": 0.8, "linewidths": 0}
            measured = some["accuracy"].sel(at)
            left.scatter(some["violation"], measured, label=f"weight {weight:g}, scale {scale:g}", **style)
            right.scatter(some["predicted"].sel(at), measured, **style)
    left.set(xscale="log", xlabel="balance violation")
    log_ticks(left.xaxis)
    left.set_ylabel("accuracy at lengths 400-500,\nclosing queries")
    right.set(xlabel="decoder's accuracy at the mean prefix", xlim=(0.38, 1.03), ylim=(0.38, 1.03))
    figure.legend(*left.get_legend_handles_labels(), loc="outside right center")
    n = runs.sizes["seed"]
    figure.suptitle(f"Length generalisation of {n} seeds per setting, trained on the last positions of prefixes")
    return figure


def _architectures(effort: Effort) -> xr.Dataset:
    return _trained(effort, embedding=dyck.ARCHITECTURES, scale=_ends(dyck.SCALES) if effort.quick else dyck.SCALES)


@styled
def dyck_variation(runs: xr.Dataset) -> Figure:
    """Attention variation between seeds against the initial scale of Z, by architecture, before and after training.

    Bars are 95% intervals (jackknife, Student's t). The dotted line is the expectation for random rows. Where Z is
    free, variation is set by the scale of its start: a small one leaves it below random. With embeddings it is above
    random from any start: training itself drives the seeds apart. The paper's lower variation under (19) does not
    show at these learning rates in layers without a feed-forward part (`dyck_architecture`).

    Parameters
    ----------
    runs : xarray.Dataset
        From `training.trained`.
    """
    runs = runs.isel(eta=0, contrast_weight=0)
    figure = canvas(figsize=(9.6, 4.2))
    panels = figure.subplots(1, 2, sharey=True)
    scales = runs["scale"].values
    names = [str(name) for name in runs["embedding"].values]
    titles = ("before training", f"after {runs.attrs['steps']} steps of Adam")
    for axes, variable, title in zip(panels, ("start_attention", "attention"), titles, strict=True):
        found = dyck.variation(runs[variable])
        for number, (kind, (colour, style), marker) in enumerate(zip(names, CATEGORIES[1:], _MARKERS, strict=False)):
            some = found.sel(embedding=kind)
            beside = 1.06 ** (number - (len(names) - 1) / 2)  # bars at one place would hide each other
            axes.errorbar(
                scales * beside, some["mean"], some["half"], color=colour, linestyle=style, marker=marker,
                markersize=5, capsize=2.5, label=_NAMES[kind],
            )  # fmt: skip
        axes.axhline(dyck.random_variation(runs.sizes["row"]), color="0.4", linestyle=":", label="random rows")
        axes.set(title=title, xlabel="initial scale of Z", xscale="log")
        axes.set_xticks(scales, [f"{scale:g}" for scale in scales])
        axes.minorticks_off()
    panels[0].set_ylim(bottom=0)  # of both, once all is drawn
    panels[0].set_ylabel(r"attention variation $\|A_1 - A_2\|_F^2$")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right center")
    figure.suptitle(f"Attention variation between {runs.sizes['seed']} seeds")
    return figure


FIGURES = (
    Entry("dyck_attention", PAPER, dyck_attention, _embeddings_and_rates),
    Entry("dyck_balanced_layers", PAPER, dyck_balanced_layers, lambda effort: dyck.LANGUAGE),
    Entry("dyck_balance_over_training", PAPER, dyck_balance_over_training, lambda effort: dyck.flow_and_sgd()),
    Entry("dyck_length", PAPER, dyck_length, _regularised),
    Entry("dyck_variation", PAPER, dyck_variation, _architectures),
)
