"""Figures of the transition over K, M, overlap and learning rates."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import CenteredNorm, LogNorm, Normalize
from matplotlib.contour import ContourSet
from matplotlib.figure import Figure

from dynamics.support.progress import Progress
from yzflow.figures.registry import Effort, Entry
from yzflow.figures.style import BLACK, CATEGORIES, VERMILION, canvas, log_ticks, ordered_colours, styled
from yzflow.papers.scan_and_snap import phase_diagram as pd
from yzflow.papers.scan_and_snap.settings import PAPER

_NAMES = {
    "n_classes": "next tokens K",
    "vocab_size": "vocabulary M",
    "overlap": r"overlap $\rho$",
    "ratio": r"$\eta_Z / \eta_Y$",
}
_SYMBOLS = {"n_classes": "K", "vocab_size": "M", "overlap": r"$\rho$", "ratio": r"$\eta_Z / \eta_Y$"}
# What the maps are at in the parameters that they do not span.
_AT = ({"n_classes": 10, "ratio": 0.01}, {"vocab_size": 1000, "overlap": 0.01})
# Within this a time counts as t*.
_NEAR = 0.05
VOCABULARIES = (10, 100, 1000, 10_000, 1_000_000)


def grids(n: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Two maps of n x n settings: over M and rho, and over K and eta_Z / eta_Y."""

    def axis(name: str, values: np.ndarray) -> xr.DataArray:
        return xr.DataArray(values, dims=name)

    sizes = np.unique(np.geomspace(10, 1e5, n).round().astype(int))
    classes = np.arange(2, n + 2)
    return (
        {**_AT[0], "vocab_size": axis("vocab_size", sizes), "overlap": axis("overlap", np.geomspace(1e-3, 0.5, n))},
        {**_AT[1], "n_classes": axis("n_classes", classes), "ratio": axis("ratio", np.geomspace(1e-4, 1, n))},
    )


def _maps(effort: Effort) -> tuple[xr.Dataset, xr.Dataset]:
    first, second = grids(8 if effort.quick else 100)
    return pd.diagram(first, progress=effort.progress), pd.diagram(second, progress=effort.progress)


@styled
def phase_diagram(maps: tuple[xr.Dataset, xr.Dataset]) -> Figure:
    """When the most frequent distinct token gains fastest, in t*, and the share of attention's change done at t*.

    Over vocabulary and overlap, and over classes and the ratio of the learning rates; one row for each level. eta_Y is
    no axis, since in units of t* a flow does not depend on it. White is t* itself, lines have its multiples; grey is a
    speed that still grows at the end.

    Parameters
    ----------
    maps : pair of xarray.Dataset
        From `yzflow.papers.scan_and_snap.phase_diagram.diagram`, each over two parameters.
    """
    levels = maps[0]["level"].values
    figure = canvas(figsize=(11.5, 2.5 * len(levels) + 1.0))
    panels = figure.subplots(len(levels), 4, squeeze=False)
    farthest = max(float(np.abs(np.log10(own["fastest_distinct"])).max()) for own in maps)
    norms = {"fastest_distinct": CenteredNorm(0.0, farthest), "done": Normalize(0, 1)}
    images: dict[str, Any] = {}
    for side, own in enumerate(maps):
        x, y = (str(dim) for dim in own["done"].dims[1:])
        for i, level in enumerate(levels):
            for j, name in enumerate(norms):
                axes = panels[i, 2 * side + j]
                values = own[name].sel(level=level).transpose(y, x).values
                shown = np.log10(values) if name == "fastest_distinct" else values
                colours = "RdBu_r" if name == "fastest_distinct" else "cividis"
                axes.set_facecolor("0.8")
                images[name] = axes.pcolormesh(
                    own[x], own[y], np.ma.masked_invalid(shown), cmap=colours, norm=norms[name], rasterized=True
                )
                axes.set(xscale="log", yscale="log")
                axes.grid(False)
                _lines(axes, own, name, values)
                if x == "n_classes":
                    log_ticks(axes.xaxis)
                if i == len(levels) - 1:
                    axes.set_xlabel(_NAMES[x])
                else:
                    axes.set_xticklabels([])
                if i == 0:
                    rest = ", ".join(f"{_SYMBOLS[key]} = {value:g}" for key, value in _rest(own).items())
                    axes.set_title(("fastest gain" if j == 0 else "done at t*") + f"\n{rest}", fontsize=9)
            panels[i, 2 * side].set_ylabel(f"{level}\n{_NAMES[y]}" if side == 0 else _NAMES[y])
            panels[i, 2 * side + 1].set_yticklabels([])
    bar = figure.colorbar(images["fastest_distinct"], ax=panels[:, :2], location="bottom", aspect=40, shrink=0.8)
    ticks = [tick for tick in (0.01, 0.1, 0.2, 0.5, 1, 2, 5, 10, 100) if abs(np.log10(tick)) <= farthest]
    bar.set_ticks([float(np.log10(tick)) for tick in ticks], labels=[f"{tick:g}" for tick in ticks])
    bar.set_label("time of the fastest gain, in t*")
    span = maps[0].attrs["span"]
    figure.colorbar(images["done"], ax=panels[:, 2:], location="bottom", aspect=40, shrink=0.8).set_label(
        f"share of the change up to {span:g} t* that is done at t*"
    )
    return figure


# In heights of a map: above, a line has its number below it.
_TOP = 0.88
# Lines that are drawn into the maps, and labelled.
_LINES = {"fastest_distinct": (0.2, 0.3, 0.5, 0.7, 0.9, 1.1, 1.3, 1.5, 2, 3), "done": np.arange(0.1, 1, 0.1)}


def _lines(axes: Axes, own: xr.Dataset, name: str, values: np.ndarray) -> None:
    """Lines of equal values, those that a map has."""
    levels = [level for level in _LINES[name] if np.nanmin(values) < level < np.nanmax(values)]
    if levels:
        x, y = (str(dim) for dim in own["done"].dims[1:])
        colour = "0.3" if name == "fastest_distinct" else "0.9"
        lines = axes.contour(own[x], own[y], values, levels=levels, colors=colour, linewidths=0.5)
        _numbers(axes, lines, "black" if name == "fastest_distinct" else "white")


def _numbers(axes: Axes, lines: ContourSet, colour: str) -> None:
    """The level of each line beside it, away from the frame: what is left of a line with a gap reads as a minus."""
    to_axes = axes.transData + axes.transAxes.inverted()
    axes.autoscale_view()
    known = {}
    for level, segments in zip(lines.levels, lines.allsegs, strict=True):
        line = max((to_axes.transform(segment) for segment in segments if len(segment) > 2), key=len, default=None)
        if line is not None:
            known[float(level)] = line
    placed: dict[float, np.ndarray] = {}
    for above in (True, False):
        # Numbers stand one below the other where lines are parallel; below its own line, one may be near another.
        span, apart = ((0.05, _TOP), (0.13, 0.07)) if above else ((_TOP, 0.97), (0.3, 0.2))
        for level, line in known.items():
            x, y = line.T
            inner = np.flatnonzero((x > 0.06) & (x < 0.84) & (span[0] < y) & (y < span[1]))
            room = [i for i in inner if all((np.abs(line[i] - other) > apart).any() for other in placed.values())]
            if level in placed or not room:
                continue
            i = room[len(room) // 2]
            placed[level] = line[i]
            along = line[min(i + 1, len(line) - 1)] - line[max(i - 1, 0)]
            right = (along[0] * along[1] <= 0) == above
            axes.annotate(
                f"{level:g}", line[i], xycoords="axes fraction", xytext=(1.5 if right else -1.5, 1 if above else -1),
                color=colour, textcoords="offset points", ha="left" if right else "right",
                va="bottom" if above else "top", fontsize=7.5,
            )  # fmt: skip


def _rest(own: xr.Dataset) -> dict[str, float]:
    """The parameters that a map does not span."""
    return {name: own[name].item() for name in pd.AXES if own[name].ndim == 0}


def diagram_claims(maps: tuple[xr.Dataset, xr.Dataset]) -> str:
    """Where the largest speed is at t*, by level, and how much is done then."""
    sentences = []
    for own in maps:
        x, y = (str(dim) for dim in own["done"].dims[1:])
        parts = []
        for level in own["level"].values:
            cells = own.sel(level=level)
            fastest, done = cells["fastest_distinct"], cells["done"]
            near, low, high = (float(v) for v in ((np.abs(fastest - 1) < _NEAR).mean(), fastest.min(), fastest.max()))
            least, middle, most = (float(done.quantile(q)) for q in (0, 0.5, 1))
            parts.append(
                f"{level}: within {_NEAR:.0%} of t* at {near:.0%} of the settings, between {low:.2g} and {high:.3g} t*,"
                f" with {least:.0%} to {most:.0%} of the change done at t* (median {middle:.0%})"
            )
        still = int(own["fastest_distinct"].isnull().sum())
        words = f"; at {still} settings the speed still grows at the end" if still else ""
        sentences.append(
            f"Over {_NAMES[x]} and {_NAMES[y]} ({own['done'][0].size} settings), {'; '.join(parts)}{words}."
        )
    return " ".join(sentences)


def _collapse(effort: Effort) -> tuple[xr.Dataset, xr.Dataset]:
    with Progress("data collapse", enabled=effort.progress) as report:
        report.update(0.0, "gamma")
        curves = pd.gamma_curves(VOCABULARIES, np.geomspace(0.02, 50, 100 if effort.quick else 600))
    return curves, pd.falls(60 if effort.quick else 1000, progress=effort.progress)


@styled
def phase_collapse(data: tuple[xr.Dataset, xr.Dataset]) -> Figure:
    """Does one curve describe all settings when time is measured in t*?

    Left, gamma over its peak at t* (dashed), in closed form: K and eta_Y drop out, M does not. Right, for each level
    the fall of the common token's logit against Theorem 4's B at the same time, with the constant that is exact at the
    start, at settings drawn at random; colours are the overlap.

    Parameters
    ----------
    data : pair of xarray.Dataset
        From `gamma_curves` and `falls` of `yzflow.papers.scan_and_snap.phase_diagram`.
    """
    curves, falls = data
    levels = falls["level"].values
    figure = canvas(figsize=(3.3 * (1 + len(levels)), 3.5))
    panels = figure.subplots(1, 1 + len(levels))
    _gamma_panel(panels[0], curves)
    norm = LogNorm(float(falls["overlap"].min()), float(falls["overlap"].max()))
    for axes, level in zip(panels[1:], levels, strict=True):
        predicted, found = (falls[name].sel(level=level) for name in ("from_start", "fall"))
        colours = np.broadcast_to(falls["overlap"].values[:, None], found.shape)
        image = axes.scatter(predicted, found, c=colours, norm=norm, cmap="viridis", s=2, linewidths=0, rasterized=True)
        ends = [1e-5, 3.0]
        axes.plot(ends, ends, color=VERMILION, linewidth=1)
        axes.set(xscale="log", yscale="log", xlim=ends, ylim=ends, xlabel="B in closed form", title=f"{level} decoder")
    panels[1].set_ylabel(r"fall of the common token, $-z$")
    figure.colorbar(image, ax=panels[-1], label=r"overlap $\rho$")
    return figure


def _gamma_panel(axes: Axes, curves: xr.Dataset) -> None:
    for colour, size in zip(ordered_colours(curves["vocab_size"].size), curves["vocab_size"].values, strict=True):
        axes.plot(curves["time"], curves["gamma"].sel(vocab_size=size), color=colour, label=f"M = {size:,}")
    axes.axvline(1.0, color=BLACK, linestyle=CATEGORIES[2][1], linewidth=0.8)
    axes.set(xscale="log", yscale="log", xlabel="t / t*", ylabel=r"$\gamma(t)\, /\, \gamma(t^*)$", ylim=(1e-3, 1.5))
    axes.legend(loc="lower left")


def collapse_claims(data: tuple[xr.Dataset, xr.Dataset]) -> str:
    """How far gamma's curves lie apart, and how far the falls are from B."""
    curves, falls = data
    halves = curves["half"].values
    sizes = curves["vocab_size"].values
    apart = curves["gamma"].max("vocab_size") - curves["gamma"].min("vocab_size")
    early, late = (float(apart.where(side).max()) for side in (curves["time"] < 1, curves["time"] >= 1))
    parts = [
        f"From M = {sizes[0]:,} to {sizes[-1]:,}, gamma / gamma(t*) differs by up to {early:.2g} before t* and"
        f" {late:.2g} after it, where it falls to a half at {halves[0]:.3g} to {halves[-1]:.3g} t*: the larger M, the"
        " sharper the snap."
    ]
    for level in falls["level"].values:
        quotient = falls["fall"].sel(level=level) / falls["from_start"].sel(level=level)
        paper = falls["fall"].sel(level=level) / falls["exponent"]
        low, middle, high = np.nanquantile(quotient, [0.05, 0.5, 0.95])
        lowest, _, highest = np.nanquantile(paper, [0.05, 0.5, 0.95])
        parts.append(
            f"{level}: -z / B is {middle:.3g} in the median, and {low:.2g} to {high:.3g} at nine of ten settings and"
            f" times, against {lowest:.2g} to {highest:.3g} with Theorem 4's own constant."
        )
    return " ".join(parts)


FIGURES = (
    Entry("phase_collapse", PAPER, phase_collapse, _collapse, claims=collapse_claims),
    Entry("phase_diagram", PAPER, phase_diagram, _maps, claims=diagram_claims),
)
