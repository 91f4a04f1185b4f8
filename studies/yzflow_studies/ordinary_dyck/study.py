"""Ordinary 2- and 3-layer transformers on Dyck: attention between seeds, the regulariser, long prefixes.

Setting: Wen, Li, Liu, Risteski (2023), arXiv 2312.01429, Figures 1, 3 and 10 and Table 1. The runs are those of
`yzflow_studies.ordinary_dyck.deep`; yzflow-deep is needed to train, not to look at results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from yzflow_bounded_dyck import DyckLanguage

from yzflow import intervals
from yzflow.figures.registry import Entry
from yzflow.figures.style import BLACK, CATEGORIES, canvas, styled
from yzflow_studies.dyck_embeddings.study import probe_labels, random_variation, variation
from yzflow_studies.maps import causal_map
from yzflow_studies.ordinary_dyck.deep import trained

TABLE = tuple((k, D, layers) for k in (2, 3) for D in (4, 8) for layers in (2, 3))  # rows of Table 1
CONTRAST_WEIGHTS = (0.0, 0.1, 1.0)


def table(*, rows: Sequence[tuple[int, int, int]] = TABLE, progress: bool = False, **arguments: Any) -> xr.Dataset:
    """Attention variation between seeds (Table 1): over (setting, layer), with what random rows would give.

    Parameters
    ----------
    rows : sequence of (k, D, layers)
    **arguments
        Of `trained`; three seeds at least.
    """
    found = []
    for k, D, n_layers in rows:
        runs = trained(DyckLanguage(k, D), n_layers=n_layers, progress=progress, **arguments)
        maps = runs["attention"].isel(probe=0, head=0)
        start, end = (variation(maps.isel(time=time, drop=True)) for time in (0, -1))
        found.append(
            xr.Dataset(
                {
                    "variation": end["mean"],
                    "standard_error": end["standard_error"],
                    "half": end["half"],
                    "start": start["mean"],
                    "random": random_variation(maps.sizes["row"]),
                    "accuracy": runs["accuracy"].mean("seed"),
                }
            ).reindex(layer=[1, 2, 3])
        )
    names = [f"k = {k}, D = {D}, {layers} layers" for k, D, layers in rows]
    return xr.concat(found, "setting").assign_coords(setting=names)


def lengths(
    *,
    weights: Sequence[float] = CONTRAST_WEIGHTS,
    kinds: Sequence[str] = ("word", "prefix"),
    progress: bool = False,
    **arguments: Any,
) -> xr.Dataset:
    """Both accuracies of `trained` by the weight of the regulariser and what was trained on (Figs. 3 and 10)."""
    names = ["accuracy", "accuracy_after_closing"]
    cells = [
        xr.concat(
            [trained(kind=kind, contrast_weight=w, progress=progress, **arguments)[names] for w in weights],
            "contrast_weight",
        )
        for kind in kinds
    ]
    return xr.concat(cells, "kind").assign_coords(kind=list(kinds), contrast_weight=list(weights))


# The figures


_TRAINED_ON = {"word": "trained on words", "prefix": "trained on prefixes"}


@styled
def deep_dyck_attention(runs: Mapping[str, xr.Dataset]) -> Figure:
    """Attention of trained transformers on a word with every bracket at every depth: seeds differ (Fig. 1).

    S is START. As in the paper, maps differ from seed to seed, and are mostly not stack-like. It is less training than
    the paper's.

    Parameters
    ----------
    runs : mapping from a name to xarray.Dataset
        From `trained`; the last layer of the first three seeds is drawn.
    """
    columns = 3
    figure = canvas(figsize=(3.4 * columns + 1, 3.4 * len(runs) + 0.5))
    panels = figure.subplots(len(runs), columns, sharex="row", sharey="row", squeeze=False)
    for row, (name, run) in zip(panels, runs.items(), strict=True):
        language = DyckLanguage(int(run.attrs["k"]), int(run.attrs["D"]))
        for axes, seed in zip(row, run["seed"].values[:columns], strict=True):
            one = run.sel(seed=seed)
            shown = one["attention"].isel(time=-1, probe=0, layer=-1, head=0).values
            image = causal_map(axes, shown, labels=probe_labels(language))
            axes.set_title(f"{name}, seed {seed}: accuracy {float(one['accuracy'].sel(length='below 28')):.3f}")
            axes.set_xlabel("position")
        row[0].set_ylabel("query")
    figure.colorbar(image, ax=panels, label="attention", shrink=0.8)
    layers = " and ".join(f"{n}-layer" for n in sorted({run.sizes["layer"] for run in runs.values()}))
    figure.suptitle(f"Last layer of {layers} transformers, and accuracy on prefixes of length < 28")
    return figure


@styled
def deep_dyck_variation(table: xr.Dataset) -> Figure:
    """Attention variation between seeds by language, number of layers and layer (Table 1), beside that of random rows.

    Bars are jackknife standard errors, one to each side. The paper's Section 4.1 finds two layers close to random rows.

    Parameters
    ----------
    table : xarray.Dataset
        From `table`.
    """
    figure = canvas(figsize=(9.6, 4.0))
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


def _variation_claims(table: xr.Dataset) -> str:
    """How many layers above the first vary more than random rows."""
    higher = table.sel(layer=table["layer"] > 1)
    excess = higher["variation"] - higher["random"]
    return (
        f"Of {int(excess.notnull().sum())} layers above the first {int((excess > 0).sum())} vary more than random "
        f"rows, {int((excess > higher['half']).sum())} throughout a 95% interval (jackknife, Student's t)."
    )


def _accuracies(runs: Mapping[str, xr.Dataset]) -> str:
    """How many of the short closing brackets the least and the most accurate layer answer."""
    short = np.concatenate([run["accuracy"].sel(length="below 28").values.ravel() for run in runs.values()])
    steps = max(int(run["time"][-1]) for run in runs.values())
    return f"{short.min():.0%} to {short.max():.0%} of short closing brackets are right after {steps} steps."


def _effects(runs: xr.Dataset) -> str:
    """Changes by the regulariser on the longest prefixes, over seeds that it shares with runs without it."""
    longest = runs["accuracy"].isel(length=-1)
    if not (runs["contrast_weight"] == 0).any():
        return "There are no runs without the regulariser."
    without = longest.sel(contrast_weight=0.0)
    parts = []
    for kind in runs["kind"].values:
        for weight in runs["contrast_weight"].values[runs["contrast_weight"].values > 0]:
            change = (longest.sel(contrast_weight=weight) - without).sel(kind=kind)
            mean, half = float(change.mean()), float(intervals.of_mean(change))
            parts.append(f"{mean:+.3f} +- {half:.3f} ({kind}, weight {weight:g})")
    length = str(runs["length"].values[-1])
    return f"On prefixes of {length} brackets it changes accuracy by {', '.join(parts)}, 95% over seeds."


@styled
def deep_dyck_length(runs: xr.Dataset) -> Figure:
    """Accuracy of transformers on long prefixes by the weight of the contrastive regulariser (Figs. 3 and 10).

    Small dots are seeds, bars 95% intervals of their mean (Student's t). The paper finds that the regulariser helps on
    long prefixes. After an open bracket its own type is right, which a model may know that guesses elsewhere: prefixes
    whose last bracket closes are shown apart. In the layer Y/Z/V the regulariser helps from small starts only
    (`dyck_length`).

    Parameters
    ----------
    runs : xarray.Dataset
        From `lengths`.
    """
    figure = canvas(figsize=(9.6, 3.7))
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
            error = intervals.of_mean(cell)
            axes.errorbar(
                place + shift, cell.mean("seed"), error, fmt=f"o{style}", color=colour, capsize=3, label=label
            )
        axes.axhline(1 / runs.attrs["k"], color=BLACK, linewidth=0.8, linestyle=":", label="guessing a type")
        axes.set_xticks(place, weights)
        axes.set(xlabel="weight of the regulariser", title=_TRAINED_ON[str(kind)])
    panels[0].set_ylabel("closing brackets found")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right center")
    figure.suptitle(f"{runs.attrs['n_layers']}-layer transformers on Dyck: short and long prefixes")
    return figure


_SCRIPT = "yzflow example deep_dyck"
FIGURES = (
    Entry("deep_dyck_attention", "Bounded Dyck", deep_dyck_attention, None, 1, _accuracies, _SCRIPT),
    Entry("deep_dyck_length", "Bounded Dyck", deep_dyck_length, None, None, _effects, _SCRIPT),
    Entry("deep_dyck_variation", "Bounded Dyck", deep_dyck_variation, None, None, _variation_claims, _SCRIPT),
)

# <!-- numbers
# typed: 10 (number of a statement, figure, section or finding)
# typed: 95% (level of intervals and quantiles)
# typed: 28 (range of lengths of the test prefixes, LENGTHS of yzflow_bounded_dyck.training)
# -->
