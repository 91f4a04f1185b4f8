"""Figure of pruned random Transformers (Theorem 3 of Wen, Li, Liu, Risteski 2023, arXiv 2312.01429)."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from yzflow.figures.registry import Effort, Entry
from yzflow.figures.style import BLACK, CATEGORIES, canvas, log_ticks, styled
from yzflow.papers.bounded_dyck import lottery
from yzflow.papers.bounded_dyck.settings import PAPER


def _computed(effort: Effort) -> xr.Dataset:
    if effort.quick:
        return lottery.width_law(numbers=(10, 12), layers=(1, 2), spare=(0, 2), seeds=2, progress=effort.progress)
    return lottery.width_law(progress=effort.progress)


def slopes(data: xr.Dataset, name: str, *, smallest: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """Mean slope of log2 against n over seeds and its standard error, by number of layers, each seed with its line."""
    some = data[name].sel(n=data["n"] >= smallest).transpose("n", "layers", "seed")
    flat = np.log2(some.values).reshape(some.sizes["n"], -1)
    fitted = np.polyfit(some["n"].values, flat, 1)[0].reshape(some.sizes["layers"], -1)
    return fitted.mean(axis=1), fitted.std(axis=1, ddof=1) / np.sqrt(fitted.shape[1])


def looseness(data: xr.Dataset, name: str) -> np.ndarray:
    """Median of certificate over sampled error, over all widths from n = 10 on and seeds, by number of layers."""
    ratio = (data[name] / data["error"]).sel(n=data["n"] >= 10)
    return ratio.median(("n", "seed")).values


def claims(data: xr.Dataset) -> str:
    """What these pairs show."""
    found, errors = slopes(data, "certificate")
    law, law_errors = slopes(data, "law")
    lines = [
        f"{layers} given {'layer' if layers == 1 else 'layers'}: {one:.2f} +- {error:.2f} per unit of n (law {line:.2f}"
        f" +- {width:.2f}), certificate over sampled error {everywhere:.3g} for all inputs, {here:.3g} on given ones"
        for layers, one, error, line, width, everywhere, here in zip(
            data["layers"].values, found, errors, law, law_errors, looseness(data, "certificate"),
            looseness(data, "certificate_on_inputs"), strict=True,
        )
    ]  # fmt: skip
    below = bool((data["error"] <= data["certificate_on_inputs"] * (1 + 1e-9)).all())
    held = (
        "No sampled error is above its certificate." if below else "Some sampled errors are above their certificates."
    )
    return (
        f"Slopes of log2 certificate (mean over {data.sizes['seed']} pairs and its error; the choice of n, from 10 on, "
        f"is not in it) and median ratios: {'; '.join(lines)}. {held}"
    )


@styled
def pruned_transformers(data: xr.Dataset) -> Figure:
    """Error of random Transformers pruned to given ones, against width and against layers that are the identity.

    n is the number of products of which each weight is a subset sum; widths are proportional to it (tokens aside).
    Points are medians over pairs of a given and a random Transformer, bars reach from quartile to quartile. Filled: the
    certificate, for all inputs of norm one and every length; open: the largest error over sampled inputs of six tokens.
    Lines: the certificate that random sums would give (2^n sums about normal, no search, nothing fitted); straight if
    width is proportional to log(1/epsilon), the paper's law. The given ones have LN with a floor, residual links
    and matrices with all singular values one.

    Parameters
    ----------
    data : xarray.Dataset
        From `yzflow.papers.bounded_dyck.lottery.width_law`.
    """
    figure = canvas(figsize=(10.5, 4.2))
    left, right = figure.subplots(1, 2, width_ratios=(1.6, 1))
    for number, layers in enumerate(data["layers"].values):
        some, (colour, style) = data.sel(layers=layers), CATEGORIES[1 + number]
        beside = 0.15 * (number - 1)
        for name, fill in (("certificate", colour), ("error", "white")):
            label = f"{layers} given {'layer' if layers == 1 else 'layers'}" if name == "certificate" else None
            _points(left, data["n"].values + beside, some[name], colour, fill, "osD"[number % 3], label)
        left.plot(data["n"], some["law"].median("seed"), style, color=colour, linewidth=1)
    left.set(xlabel="n", ylabel="error of a token", yscale="log", title="two layers to spare")
    left.set_xticks(data["n"].values)
    place = np.arange(data.sizes["spare"])
    for name, fill in (("certificate", BLACK), ("error", "white")):
        label = "certificate" if name == "certificate" else "sampled error"
        _points(right, place, data[f"{name}_spare"], BLACK, fill, "o", label)
    right.set_xticks(place, data["spare"].values)
    title = f"one given layer, n = {data.attrs['n_spare']}"
    right.set(xlabel="layers pruned to the identity", yscale="log", title=title)
    right.set_ylim(top=5 * right.get_ylim()[1])  # room for the legend
    for axes in (left, right):
        log_ticks(axes.yaxis)
        axes.legend(loc="upper right")
    figure.suptitle("A random Transformer pruned to a given one: filled certified, open sampled, lines the law")
    return figure


def _points(axes, place, values: xr.DataArray, colour: str, fill: str, marker: str, label: str | None) -> None:
    low, middle, high = values.quantile([0.25, 0.5, 0.75], "seed").values
    axes.errorbar(
        place, middle, [middle - low, high - middle], fmt=marker, color=colour, markerfacecolor=fill, markersize=5,
        capsize=2, linewidth=1, label=label,
    )  # fmt: skip


FIGURES = (Entry("pruned_transformers", PAPER, pruned_transformers, _computed, claims=claims),)
