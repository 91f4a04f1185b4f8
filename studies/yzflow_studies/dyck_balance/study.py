"""Balance of layers on Dyck: along the flow and along SGD, beside accuracy on long prefixes, and by hand.

Paper: Wen, Li, Liu, Risteski (2023), arXiv 2312.01429.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from yzflow_bounded_dyck import DyckLanguage, balance
from yzflow_bounded_dyck import training as dyck

from dynamics import Layer, Trajectory, gradient_flow, sgd
from dynamics.support import checks
from yzflow.figures.registry import Effort, Entry
from yzflow.figures.style import BLACK, CATEGORIES, canvas, log_ticks, ordered_colours, styled
from yzflow_studies.dyck_embeddings.study import probe_labels
from yzflow_studies.maps import causal_map

CONTRAST_WEIGHTS = (0.0, 0.1, 1.0, 10.0)


def balance_along(run: Trajectory, language: DyckLanguage) -> xr.Dataset:
    """Balance residual and violation at the recorded times of a run, over time x learning rate."""
    layers = [Trajectory(run.dataset.isel(time=[n])).final for n in range(run.dataset.sizes["time"])]
    time = run.dataset["time"].values * run.parameters["eta_z"]
    return xr.Dataset(
        {
            "residual": ("time", [balance.residual(layer.Z, language) for layer in layers], {"units": "1"}),
            "violation": ("time", [balance.violation(layer, language) for layer in layers], {"units": "1"}),
        },
        {"time": ("time", time, {"long_name": "steps x learning rate", "units": "1"})},
    )


def flow_and_sgd(
    *,
    etas: Sequence[float] = (1.0, 0.5, 0.25, 0.125),
    t_end: float = 200.0,
    n_times: int = 41,
    language: DyckLanguage | None = None,
    max_length: int = 6,
    batch_size: int | None = None,
    scale: float = 0.5,
    seed: int = 0,
) -> xr.Dataset:
    """Balance along the flow and along SGD from one start, on the enumerated prefixes of a small language.

    SGD has no momentum and takes the whole population at each step, or mini-batches of ``batch_size``. Times are
    steps x learning rate.

    Returns
    -------
    xarray.Dataset
        ``residual`` and ``violation`` over (run, time); run is "flow" and the learning rates of SGD, largest first.
    """
    language = DyckLanguage(2, 2) if language is None else language
    population = language.enumerate(max_length=max_length)
    init = dyck.start(language, seed, scale=scale, width=8)
    times = np.linspace(0, t_end, n_times)
    flow = gradient_flow(population, eta_y=1.0, eta_z=1.0, t_end=t_end, times=times, init=init)
    runs = {"flow": balance_along(flow, language)}
    for eta in etas:
        steps = t_end / eta
        every = steps / (n_times - 1)
        if abs(every - round(every)) > 1e-9:
            raise checks.reject("etas", f"divide the {t_end / (n_times - 1):g} between recorded times", eta)
        run = sgd(
            population, eta_y=eta, eta_z=eta, steps=round(steps), record_every=round(every), init=init, momentum=0.0,
            batch_size=batch_size, length=None, seed=seed,
        )  # fmt: skip
        runs[f"{eta:g}"] = balance_along(run, language).assign_coords(time=runs["flow"]["time"])
    return xr.concat(list(runs.values()), "run").assign_coords(run=list(runs))


def stack_like_layer(language: DyckLanguage, *, logit: float = 4.0) -> Layer:
    """A balanced layer whose queries look at the brackets of their own depth: at the last unmatched one most of all.

    ``R[q, (i, l)] = logit`` where l is the depth after q, else 0, in the family of `balance.balanced_layer`.
    """
    plain = balance.balanced_layer(language, 0, scale=0.0)
    Z = np.zeros_like(plain.Z)
    opens, closes = balance.pairs(language)
    for query, state in enumerate(language.states[:-1]):
        if state.depth > 0:
            Z[query, opens[:, state.depth - 1]] = Z[query, closes[:, state.depth - 1]] = logit
    return Layer(Z, plain.Y, plain.V)


# The figures


_MARKERS = "osD^v"


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
        image = causal_map(axes, dyck.attention_map(layer, language), labels=probe_labels(language))
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
        From `flow_and_sgd`.
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
    few: dict[str, Any] = {"seeds": 3, "steps": 500} if effort.quick else {}
    weights = CONTRAST_WEIGHTS[:: len(CONTRAST_WEIGHTS) - 1] if effort.quick else CONTRAST_WEIGHTS
    return dyck.trained(contrast_weight=weights, scale=(0.1, 1.0), progress=effort.progress, **few)


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


FIGURES = (
    Entry("dyck_balanced_layers", "Bounded Dyck", dyck_balanced_layers, lambda effort: dyck.LANGUAGE),
    Entry("dyck_balance_over_training", "Bounded Dyck", dyck_balance_over_training, lambda effort: flow_and_sgd()),
    Entry("dyck_length", "Bounded Dyck", dyck_length, _regularised),
)

# <!-- numbers
# typed: 500 (length of the prefixes that the figure draws)
# typed: 2000 (year)
# typed: 2 (sizes of training.flow_and_sgd)
# typed: 400 (range of lengths of the test prefixes, LENGTHS of yzflow_bounded_dyck.training)
# -->
