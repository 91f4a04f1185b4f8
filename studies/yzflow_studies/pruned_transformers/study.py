"""Theorem 3 of Wen et al. 2023 (arXiv 2312.01429) run: how wide a random Transformer must be for which error."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from yzflow_bounded_dyck import lottery, subset_law, transformers

from dynamics.support import checks
from dynamics.support.progress import Progress
from yzflow.figures.registry import Effort, Entry
from yzflow.figures.style import BLACK, CATEGORIES, canvas, log_ticks, styled

# Of the given Transformers: numbers a token, rows of keys and queries, hidden units; every singular value; LN's floor.
WIDTH, ATTENTION, HIDDEN, NORM, FLOOR = 4, 4, 8, 1.0, 1.0
NUMBERS = (6, 8, 10, 12, 14, 16, 18, 20, 22)
SPARE = (0, 2, 4, 8)
INPUTS, LENGTH = 500, 6


def given(n_layers: int, rng: np.random.Generator) -> transformers.Transformer:
    """A random Transformer to prune others to, at the limit of what the theorem allows: all singular values are one."""
    return transformers.random_transformer(WIDTH, ATTENTION, [HIDDEN], n_layers, rng, floor=FLOOR, norm=NORM)


def inputs(rng: np.random.Generator, n: int = INPUTS) -> np.ndarray:
    """Inputs of tokens of norm one: (n, length, width)."""
    tokens = rng.normal(size=(n, LENGTH, WIDTH))
    return tokens / np.linalg.norm(tokens, axis=-1, keepdims=True)


def width_law(
    *,
    numbers: Sequence[int] = NUMBERS,
    layers: Sequence[int] = (1, 2, 3),
    spare: Sequence[int] = SPARE,
    seeds: int = 20,
    progress: bool = False,
) -> xr.Dataset:
    """Certificates and sampled errors of pruned random Transformers by width, and by layers that are the identity.

    Parameters
    ----------
    numbers : sequence of int
        Products that each weight is a sum of; every hidden layer of the random Transformer is proportional to it.
    layers : sequence of int
        Of the given Transformer; two spare layers stand behind.
    spare : sequence of int
        Layers pruned to the identity, for given Transformers of one layer, at the middle one of ``numbers``.
    seeds : int
        Pairs of a given and a random Transformer, all drawn anew for each case.
    progress : bool
    """
    seeds = checks.integer("seeds", seeds, minimum=2)
    by_width = np.full((4, len(layers), len(numbers), seeds), np.nan)
    by_spare = np.full((2, len(spare), seeds), np.nan)
    middle = numbers[len(numbers) // 2]
    with Progress("pruning", enabled=progress) as shown:
        for seed in range(seeds):
            for (i, n_layers), (j, n) in [(a, b) for a in enumerate(layers) for b in enumerate(numbers)]:
                by_width[:, i, j, seed] = _one(n_layers, n, 2, np.random.default_rng([seed, n_layers, n]))
            for i, more in enumerate(spare):
                found = _one(1, middle, more, np.random.default_rng([seed, 1, middle, more]))
                by_spare[:, i, seed] = found[0], found[2]
            shown.update((seed + 1) / seeds)
    names = ("certificate", "certificate_on_inputs", "error", "law")
    return xr.Dataset(
        {
            **{name: (("layers", "n", "seed"), values) for name, values in zip(names, by_width, strict=True)},
            **{f"{name}_spare": (("spare", "seed"), by_spare[i]) for i, name in enumerate(("certificate", "error"))},
        },
        coords={"layers": list(layers), "n": list(numbers), "seed": np.arange(seeds), "spare": list(spare)},
        attrs={"n_spare": middle, "width": WIDTH, "hidden": HIDDEN, "norm": NORM, "floor": FLOOR, "inputs": INPUTS},
    )


def _one(n_layers: int, n: int, spare: int, rng: np.random.Generator) -> tuple[float, float, float, float]:
    target = given(n_layers, rng)
    random = lottery.room_for(target, n, rng, spare=spare)
    pruned = lottery.prune_transformer(target, random)
    tokens = inputs(rng)
    return (
        pruned.certificate(),
        pruned.certificate_on(tokens),
        pruned.error(tokens),
        subset_law.expected(pruned, rng).certificate(),
    )


# The figure


def _computed(effort: Effort) -> xr.Dataset:
    if effort.quick:
        return width_law(numbers=(10, 12), layers=(1, 2), spare=(0, 2), seeds=2, progress=effort.progress)
    return width_law(progress=effort.progress)


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
    """Sentences on the differences within these pairs."""
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
        From `width_law`.
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


FIGURES = (Entry("pruned_transformers", "Bounded Dyck", pruned_transformers, _computed, claims=claims),)

# <!-- numbers
# typed: 10 (least n of the fit)
# -->
