"""Figures of what LN, a feed-forward part and a residual link do (Wen, Li, Liu, Risteski 2023, arXiv 2312.01429)."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from dynamics import DyckLanguage, Layer
from theory.bounded_dyck import balance, gpt
from yzflow.figures.registry import Effort, Entry
from yzflow.figures.style import BLACK, CATEGORIES, canvas, log_ticks, styled
from yzflow.papers.bounded_dyck import architecture, interventions
from yzflow.papers.bounded_dyck import training as dyck
from yzflow.papers.bounded_dyck.settings import PAPER

_NAMES = {"one-hot": "(19)", "type and depth": "(20)", "type and angle": "(21)"}
_MARKERS = "osD^v"
_QUANTITIES = {
    "short": "accuracy, length < 28",
    "long": "accuracy, 400-500,\nclosing queries",
    "stack_share": "attention on the stack's depth",
    "variation": r"variation $\|A_1 - A_2\|_F^2$",
}


def _grid(effort: Effort) -> xr.Dataset:
    few: dict[str, Any] = {"seeds": 3, "steps": 100, "scales": (1.0,)} if effort.quick else {}
    return architecture.grid(progress=effort.progress, **few)


@styled
def dyck_architecture(runs: xr.Dataset) -> Figure:
    """Layers with and without LN and a feed-forward part: accuracy, stack-likeness, variation (Fig. 2, Section 4.1).

    The paper's layer (6) has LN and a feed-forward part, the layers of its Fig. 2 have neither by its Appendix D.1.
    Bars are standard errors over seeds, jackknife ones of variation; dotted: guessing, uniform attention, random rows.
    The smallest initial scale of Z.

    Parameters
    ----------
    runs : xarray.Dataset
        From `architecture.grid`.
    """
    found = architecture.summary(runs).isel(scale=0)
    figure = canvas(figsize=(13.5, 3.7))
    panels = figure.subplots(1, len(_QUANTITIES))
    place = np.arange(found.sizes["embedding"])
    variants = [str(name) for name in found["variant"].values]
    lines = {"long": 1 / runs.attrs["k"], "stack_share": _uniform_share(runs), "variation": found.attrs["random"]}
    for axes, (name, label) in zip(panels, _QUANTITIES.items(), strict=True):
        for number, variant in enumerate(variants):
            cell, (colour, _) = found.sel(variant=variant), CATEGORIES[1 + number]
            axes.errorbar(
                place + 0.15 * (number - (len(variants) - 1) / 2), cell[name], cell[f"{name}_error"],
                fmt=_MARKERS[number], color=colour, capsize=2.5, markersize=5, label=variant,
            )  # fmt: skip
        if name in lines:
            axes.axhline(lines[name], color=BLACK, linewidth=0.8, linestyle=":")
        axes.set_xticks(place, [_NAMES[str(kind)] for kind in found["embedding"].values])
        axes.set(ylabel=label, xlabel="embedding")
    panels[-1].set_ylim(bottom=0)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(variants))
    scale, steps = float(found["scale"]), runs.attrs["steps"]
    figure.suptitle(f"{runs.sizes['seed']} seeds, {steps} steps of Adam on prefixes, initial scale {scale:g}")
    return figure


def _uniform_share(runs: xr.Dataset) -> float:
    language = DyckLanguage(int(runs.attrs["k"]), int(runs.attrs["D"]))
    rows = runs.sizes["row"]
    uniform = np.tril(np.ones((rows, rows))) / np.arange(1, rows + 1)[:, None]
    return float(dyck.stack_share(xr.DataArray(uniform, dims=("row", "position")), language))


def _architecture_claims(runs: xr.Dataset) -> str:
    """What the feed-forward part does to each embedding, with errors."""
    found = architecture.summary(runs).isel(scale=0)
    sentences = []
    for kind in found["embedding"].values:
        one = found.sel(embedding=kind)
        cells = [
            f"{variant}: {float(row['short']):.3f} +- {float(row['short_error']):.3f}, on the stack "
            f"{float(row['stack_share']):.2f}, variation {float(row['variation']):.1f} +- "
            f"{float(row['variation_error']):.1f}"
            for variant, row in ((str(name), one.sel(variant=name)) for name in one["variant"].values)
        ]
        sentences.append(f"{_NAMES[str(kind)]}, accuracy on short prefixes: {'; '.join(cells)}.")
    return " ".join(sentences)


_LINKS = {
    "no residual link": lambda rng, shape: None,
    "residual link": lambda rng, shape: rng.normal(size=shape),
    "residual link along the ones": lambda rng, shape: np.outer(rng.normal(size=shape[0]), np.ones(shape[1])),
}


def residual_link(language: DyckLanguage = dyck.LANGUAGE, *, noise: float = 0.1, seed: int = 0) -> xr.Dataset:
    """Smallest and largest of `theory.bounded_dyck.gpt.distances` for a balanced and an unbalanced layer.

    Parameters
    ----------
    language : DyckLanguage
    noise : float
        Standard deviation of what is added to the logits of the balanced layer to unbalance it.
    seed : int

    Returns
    -------
    xarray.Dataset
        ``smallest`` and ``largest`` over (layer, link, n).
    """
    rng = np.random.default_rng(seed)
    plain = balance.balanced_layer(language, rng)
    moved = plain.Z + noise * rng.normal(size=plain.Z.shape)
    logits = {"balanced": plain.Z, "not balanced": moved}
    layers = {name: Layer(Z, plain.Y, plain.V, center=True) for name, Z in logits.items()}
    links = {name: draw(rng, np.shape(plain.V)) for name, draw in _LINKS.items()}
    n = np.unique(np.round(np.logspace(0, 4, 17)).astype(int))
    found = [
        [[gpt.distances(layer, language, int(m), queries=link) for m in n] for link in links.values()]
        for layer in layers.values()
    ]
    dims = ("layer", "link", "n")
    values = np.array(found)
    extremes = {"smallest": (dims, values.min(axis=-1)), "largest": (dims, values.max(axis=-1))}
    sizes = {"k": language.n_types, "D": language.max_depth}
    return xr.Dataset(extremes, {"layer": list(layers), "link": list(links), "n": n}, sizes)


@styled
def dyck_residual_link(found: xr.Dataset, *, lipschitz: float = 10.0) -> Figure:
    """Two stacks after n copies of every matched pair: how far apart a layer keeps them, with a residual link or not.

    Agrees with Appendix C.7: in a layer with a residual link, as GPTs have it, balance does not keep stacks apart,
    unless LN projects the link off; then it is as if there were none, and the lines lie on each other. Right: least
    loss of a head with Lipschitz constant 10 on the closing brackets after such pairs of stacks, where two types are to
    be told apart.

    Parameters
    ----------
    found : xarray.Dataset
        From `residual_link`.
    lipschitz : float
    """
    figure = canvas(figsize=(11, 4.0))
    left, right = figure.subplots(1, 2)
    for number, link in enumerate(found["link"].values):
        colour, _ = CATEGORIES[1 + number]
        for layer, style in zip(found["layer"].values, ("-", ":"), strict=True):
            cell = found.sel(link=link, layer=layer)
            name = f"{link}, {layer}"
            wide = 3.5 if number == 0 else 1.5  # two of them coincide
            left.loglog(cell["n"], cell["smallest"], style, color=colour, linewidth=wide, label=name)
            left.loglog(cell["n"], cell["largest"], style, color=colour, linewidth=wide / 2)
            least = gpt.least_loss(cell["largest"].values, lipschitz)
            right.semilogx(cell["n"], least, style, color=colour, linewidth=wide)
    right.axhline(np.log(2), color="0.6", linewidth=0.8)
    left.set(xlabel="copies of every matched pair, n", ylabel="distance of features\n(smallest and largest)")
    log_ticks(left.yaxis)
    right.set(xlabel="copies of every matched pair, n", ylabel="least loss per closing bracket (nats)")
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    figure.suptitle("A residual link forgets the stack, balanced or not (grey: ln 2, a guess)")
    return figure


def _link_claims(found: xr.Dataset) -> str:
    """Which slopes the distances have."""
    last = found.isel(n=[-5, -1])
    slopes = np.log(last["largest"]).diff("n").squeeze("n") / np.log(last["n"]).diff("n").item()
    parts = [
        f"{layer}, {link}: {round(float(slopes.sel(layer=layer, link=link)), 2) + 0.0:g}"
        for layer in found["layer"].values
        for link in found["link"].values
    ]
    return f"Exponents of the largest distance at the end: {'; '.join(parts)}."


@styled
def deep_dyck_interventions(found: xr.Dataset) -> Figure:
    """What replacing one map of a trained transformer costs, against how stack-like the map is (Figs. 4 to 6).

    A mark is a map of one head of one seed; from its layer's and head's query and key matrices a uniform or a random
    map was made, or its values were set to zero, with nothing trained again. Accuracy is that of closing brackets of
    short words whose previous bracket closes. Dotted: from where on a map counts as stack-like, and up to where as one
    that does not matter.

    Parameters
    ----------
    found : xarray.Dataset
        From `yzflow.papers.bounded_dyck.interventions.survey`.
    """
    figure = canvas(figsize=(12, 3.8))
    panels = figure.subplots(1, found.sizes["way"], sharey=True)
    for axes, way in zip(panels, found["way"].values, strict=True):
        for number, layer in enumerate(found["layer"].values):
            cell, (colour, _) = found.sel(layer=layer), CATEGORIES[1 + number]
            style = {"color": colour, "marker": _MARKERS[number], "s": 24, "alpha": 0.8, "linewidths": 0}
            axes.scatter(cell["stack_share"], cell["lost"].sel(way=way), label=f"layer {layer}", **style)
        axes.axvline(interventions.STACK_LIKE, color="0.6", linewidth=0.8, linestyle=":")
        axes.axhline(interventions.IRRELEVANT, color="0.6", linewidth=0.8, linestyle=":")
        axes.set(title=str(way), xlabel="attention on the stack's depth")
    panels[0].set_ylabel("accuracy lost")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right center")
    figure.suptitle("One map replaced in trained transformers")
    return figure


def _intervention_claims(found: xr.Dataset) -> str:
    """How many stack-like maps there are and how many of them do not matter."""
    like = found["stack_share"] > interventions.STACK_LIKE
    idle = interventions.misleading(found)
    return (
        f"Of {found['stack_share'].size} maps {int(like.sum())} are stack-like; {int(idle.sum())} of these can be "
        f"replaced in every way at a cost below {interventions.IRRELEVANT:g}, in models where another map costs more "
        f"than {interventions.CONTROL:g}."
    )


FIGURES = (
    Entry("dyck_architecture", PAPER, dyck_architecture, _grid, claims=_architecture_claims),
    Entry("dyck_residual_link", PAPER, dyck_residual_link, lambda effort: residual_link(), claims=_link_claims),
    Entry("deep_dyck_interventions", PAPER, deep_dyck_interventions, claims=_intervention_claims),
)
