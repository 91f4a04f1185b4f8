"""The same layers with and without LN and a feed-forward part, under the embeddings (19), (20) and (21).

Setting: Wen, Li, Liu, Risteski (2023), arXiv 2312.01429, Fig. 2. The paper's layer (6) has LN and then a feed-forward
part; the layers of its Fig. 2 have, by its Appendix D.1, no residual link, no feed-forward part and no final LN. The
runs are those of `training.trained`, on prefixes.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from yzflow_bounded_dyck import DyckLanguage, balance, gpt
from yzflow_bounded_dyck import training as dyck
from yzflow_bounded_dyck.dyck import EMBEDDINGS

from dynamics import Layer
from dynamics.support import checks
from dynamics.support.netcdf import kept
from yzflow import intervals
from yzflow.figures.registry import Effort, Entry
from yzflow.figures.style import BLACK, CATEGORIES, canvas, log_ticks, styled
from yzflow_studies.dyck_embeddings.study import random_variation, stack_share, variation

UNITS = 128  # of the feed-forward part, four times the width
SEEDS = 8  # chosen before any result was seen
VARIANTS: dict[str, dict[str, Any]] = {
    "LN": {},
    "LN, feed-forward": {"hidden": UNITS},
    "no LN": {"norm": False},
    "no LN, feed-forward": {"hidden": UNITS, "norm": False},
}
SCALES = (0.1, 1.0)
_FORMAT = "yzflow-dyck-variant-1"
_WHAT = "a variant of the layer"


def grid(
    *,
    variants: Sequence[str] = tuple(VARIANTS),
    embeddings: Sequence[str] = EMBEDDINGS,
    scales: Sequence[float] = SCALES,
    seeds: int = SEEDS,
    steps: int = dyck.STEPS,
    eta: float = dyck.ETA,
    language: DyckLanguage = dyck.LANGUAGE,
    samples: dyck.Data | None = None,
    data_seed: int = 0,
    store: str | os.PathLike | None = None,
    threads: int | None = None,
    progress: bool = False,
) -> xr.Dataset:
    """`training.trained` for each of `VARIANTS`: over (variant, embedding, scale, seed).

    Parameters
    ----------
    variants, embeddings, scales : sequences
    seeds, steps : int
    eta : float
        Learning rate of all weights.
    language, samples, data_seed, threads, progress
        As in `training.trained`.
    store : path, optional
        A folder with a file for each (variant, embedding) that is done, which is not trained again unless the file is
        damaged.
    """
    samples = dyck.data(language, seed=data_seed) if samples is None else samples
    drawn = b"".join(bags.token.tobytes() for bags in (samples.train, *samples.test.values()))
    rest = f"k{language.n_types}-D{language.max_depth}-q{language.open_probability:g}-{zlib.crc32(drawn):08x}"
    rest += f"-{'_'.join(f'{scale:g}' for scale in scales)}-{seeds}-{steps}-{eta:g}"
    settings: dict[str, Any] = {"scale": scales, "eta": [eta], "seeds": seeds, "steps": steps, "language": language}
    settings |= {"samples": samples, "threads": threads, "progress": progress}
    parts = []
    for variant in variants:
        checks.one_of("variants", variant, tuple(VARIANTS))
        row = []
        for embedding in embeddings:
            name = f"{variant}-{embedding}-{rest}".replace(" ", "_").replace(",", "")
            path = None if store is None else Path(store) / f"{name}.nc"
            train = partial(_alone, embedding=[embedding], **settings, **VARIANTS[variant])
            row.append(kept(path, _FORMAT, _WHAT, train))
        parts.append(xr.concat(row, "embedding"))
    # Attributes of a file about its own names, their length too, would cut longer ones off in the next file.
    return xr.concat(parts, "variant").assign_coords(variant=list(variants)).drop_encoding()


def _alone(**settings: Any) -> xr.Dataset:
    """`training.trained` at one learning rate, without a contrast."""
    return dyck.trained(**settings).isel(eta=0, contrast_weight=0, drop=True).assign_attrs(format=_FORMAT)


def summary(runs: xr.Dataset) -> xr.Dataset:
    """Means over seeds with standard errors of the seeds alone: start and batches, not the data, vary between them.

    Returns
    -------
    xarray.Dataset
        Over (variant, embedding, scale): ``loss``, ``short`` and ``long`` (accuracy at length < 28, all queries; at
        400-500, closing ones), ``stack_share``, each with its ``.._error``; ``variation`` with its jackknife error.
    """
    language = DyckLanguage(int(runs.attrs["k"]), int(runs.attrs["D"]), float(runs.attrs["q"]))
    found = {
        "loss": runs["loss"],
        "short": runs["accuracy"].sel(length="below 28", query="all", drop=True),
        "long": runs["accuracy"].sel(length="400-500", query="close", drop=True),
        "stack_share": stack_share(runs["attention"], language),
    }
    result = xr.Dataset()
    for name, values in found.items():
        result[name] = values.mean("seed")
        result[f"{name}_error"] = intervals.standard_error(values)
    varied = variation(runs["attention"])
    result["variation"], result["variation_error"] = varied["mean"], varied["standard_error"]
    result["start_variation"] = variation(runs["start_attention"])["mean"]
    sizes = {"seeds": runs.sizes["seed"], "random": random_variation(runs.sizes["row"])}
    return result.assign_attrs(runs.attrs | sizes)


_LINKS = {
    "no residual link": lambda rng, shape: None,
    "residual link": lambda rng, shape: rng.normal(size=shape),
    "residual link along the ones": lambda rng, shape: np.outer(rng.normal(size=shape[0]), np.ones(shape[1])),
}


def residual_link(language: DyckLanguage = dyck.LANGUAGE, *, noise: float = 0.1, seed: int = 0) -> xr.Dataset:
    """Smallest and largest of `yzflow_bounded_dyck.gpt.distances` for a balanced and an unbalanced layer.

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


# The figures


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
    return grid(progress=effort.progress, **few)


@styled
def dyck_architecture(runs: xr.Dataset) -> Figure:
    """Layers with and without LN and a feed-forward part: accuracy, stack-likeness, variation (Fig. 2, Section 4.1).

    The paper's layer (6) has LN and a feed-forward part, the layers of its Fig. 2 have neither by its Appendix D.1.
    Bars are standard errors over seeds, jackknife ones of variation; dotted: guessing, uniform attention, random rows.
    The smallest initial scale of Z.

    Parameters
    ----------
    runs : xarray.Dataset
        From `grid`.
    """
    found = summary(runs).isel(scale=0)
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
    return float(stack_share(xr.DataArray(uniform, dims=("row", "position")), language))


def _architecture_claims(runs: xr.Dataset) -> str:
    """Sentences on the feed-forward part's effect with each embedding, with standard errors."""
    found = summary(runs).isel(scale=0)
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


FIGURES = (
    Entry("dyck_architecture", "Bounded Dyck", dyck_architecture, _grid, claims=_architecture_claims),
    Entry(
        "dyck_residual_link", "Bounded Dyck", dyck_residual_link, lambda effort: residual_link(), claims=_link_claims
    ),
)

# <!-- numbers
# typed: 10 (default of the figure's argument)
# typed: 28 400 500 (range of lengths of the test prefixes, LENGTHS of yzflow_bounded_dyck.training)
# typed: 2 (number of a statement, figure, section or finding)
# -->
