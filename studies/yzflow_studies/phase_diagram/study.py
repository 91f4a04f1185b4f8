"""The transition over K, M, overlap and learning rates, by ensembles of flows, with time in units of t*.

A flow depends on eta_Y t and eta_Z t alone, and eta_Y t* on K and M. So with the rates eta_Y t* and eta_Z t* a flow
runs in units of t*, and K, M, rho and eta_Z / eta_Y are all that a phase diagram can depend on: eta_Y sets t* and
nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import CenteredNorm, LogNorm, Normalize
from matplotlib.contour import ContourSet
from matplotlib.figure import Figure

from dynamics import gradient_flow_ensemble
from dynamics.support import checks
from dynamics.support.progress import Progress
from theory import attention, decoder
from yzflow.figures.registry import Effort, Entry
from yzflow.figures.style import BLACK, CATEGORIES, VERMILION, canvas, log_ticks, ordered_colours, styled

LEVELS = ("theory", "modified", "full")
AXES = ("n_classes", "vocab_size", "overlap", "ratio")
# How long the flows are, in t*: attention moves on like ln t, so that the share done depends on where one stops.
SPAN = 1000.0
_DISTINCT = np.array([1.0, 0.8, 0.6, 0.4, 0.2])
# Where attention is slow and overlaps are small, logits stay below 1e-6.
_TOLERANCES: dict[str, Any] = {"rtol": 1e-8, "atol": 1e-14}


def in_transition_times(sizes: Mapping[str, Any]) -> dict[str, xr.DataArray]:
    """Settings of `gradient_flow_ensemble` whose unit of time is t*.

    Parameters
    ----------
    sizes : mapping
        ``n_classes`` (K), ``vocab_size`` (M), ``overlap`` (rho) and ``ratio`` (eta_Z / eta_Y): numbers or data arrays.
    """
    for name in AXES:
        if name not in sizes:
            raise checks.reject("sizes", f"have the keys {', '.join(AXES)}", f"none called {name!r}")
    given = {name: xr.DataArray(sizes[name]) for name in AXES}
    outside = (given["overlap"] <= 0) | (given["overlap"] >= 1)
    if outside.any():
        raise checks.reject("sizes['overlap']", "lie between 0 and 1", float(given["overlap"].where(outside).max()))
    both = xr.broadcast(given["n_classes"], given["vocab_size"])
    pairs, which = np.unique(np.stack([part.values.ravel() for part in both]), axis=1, return_inverse=True)
    scaled = [decoder.transition_time(n_classes=int(k), vocab_size=int(m), eta_y=1.0) for k, m in pairs.T]
    unit = both[0].copy(data=np.array(scaled)[which].reshape(both[0].shape))
    return {
        "n_classes": given["n_classes"],
        "vocab_size": given["vocab_size"],
        "common": np.sqrt(given["overlap"] / (1 - given["overlap"]) * (_DISTINCT**2).sum()),
        "distinct": xr.DataArray(_DISTINCT, dims="distinct_token"),
        "eta_y": unit,
        "eta_z": unit * given["ratio"],
    }


def diagram(
    sizes: Mapping[str, Any],
    *,
    levels: Sequence[str] = LEVELS,
    span: float = SPAN,
    path: str | os.PathLike | None = None,
    progress: bool = False,
) -> xr.Dataset:
    """When attention moves fastest, and how much of its change is done at t*, at every setting.

    Parameters
    ----------
    sizes : mapping
        As in `in_transition_times`.
    levels : sequence of str
        Some of "theory", "modified" and "full".
    span : float
        How long the flows are, in t*.
    path : path-like, optional
        A folder for the ensembles, to be taken up again.
    progress : bool
        Show progress on standard error.

    Returns
    -------
    xarray.Dataset
        Over ``level`` and the dimensions of the sizes: ``fastest_common`` and ``fastest_distinct`` (the most frequent
        one), when their logits move fastest, in t*, nan where that is after ``span``; ``done``, the share of the change
        of attention up to ``span`` that is done at t*; and ``change``, that change as total variation.
    """
    span = checks.positive("span", span)
    if span <= 1:
        raise checks.reject("span", "be above 1, in t*", span)
    levels = [checks.one_of("levels", level, LEVELS) for level in checks.listed("levels", levels, "be a list of words")]
    settings = in_transition_times(sizes)
    shares = xr.concat([settings["common"].expand_dims("kind"), _kinds(settings["distinct"])], "kind")
    start = shares / shares.sum("kind")
    parts = []
    for level in levels:
        flows = gradient_flow_ensemble(
            settings,
            t_end=span,
            times=[1.0, span],
            decoder=level,
            record=["attention"],
            **_TOLERANCES,
            path=None if path is None else Path(path) / level,
            progress=progress,
        )
        moved = np.abs(flows["attention"].drop_vars("kind") - start).sum("kind", skipna=False)
        parts.append(
            xr.Dataset(
                {
                    "fastest_common": flows["fastest_time"].isel(kind=0, drop=True),
                    "fastest_distinct": flows["fastest_time"].isel(kind=1, drop=True),
                    "done": moved.isel(time=0, drop=True) / moved.isel(time=1, drop=True),
                    "change": moved.isel(time=1, drop=True) / 2,
                    "failed": flows["failed"],
                }
            ).reset_coords(drop=True)
        )
    found = xr.concat(parts, xr.DataArray(list(levels), dims="level", name="level"))
    return found.assign_coords({name: xr.DataArray(sizes[name]) for name in AXES}).assign_attrs(span=span)


def _kinds(distinct: xr.DataArray) -> xr.DataArray:
    return distinct.rename(distinct_token="kind")


def gamma_curves(vocab_sizes: Sequence[int], times: np.ndarray) -> xr.Dataset:
    """gamma(t) / gamma(t*) over t / t*, which neither K nor eta_Y changes, and where it has fallen by half.

    Parameters
    ----------
    vocab_sizes : sequence of int
    times : array
        In t*.
    """
    curves, halves = [], []
    for vocab_size in vocab_sizes:
        own = decoder.Decoder(vocab_size, 1, 1.0)
        curves.append(own.gamma(times * own.transition_time) / own.peak_gamma)
        late = np.geomspace(1, 100, 20_001)
        fallen = own.gamma(late * own.transition_time) / own.peak_gamma
        halves.append(float(np.interp(-0.5, -fallen, late)))
    return xr.Dataset(
        {"gamma": (("vocab_size", "time"), np.array(curves)), "half": ("vocab_size", halves)},
        {"vocab_size": list(vocab_sizes), "time": times},
    )


def start_constant(level: str, *, n_classes: int, vocab_size: int, overlap: float) -> float:
    """C_0 with which B of Theorem 4 is exact at the start, for every K, M and rho.

    That of `theory.attention.speed_constant` with M; the full flow begins s times as fast
    (`theory.attention.full_flow_slowdown`).

    Parameters
    ----------
    level : "theory", "modified" or "full"
    n_classes, vocab_size, overlap : float
        K, M, rho.
    """
    checks.one_of("level", level, LEVELS)
    sizes: dict[str, Any] = {"n_classes": n_classes, "vocab_size": vocab_size, "overlap": overlap}
    return attention.speed_constant(**sizes) / (attention.full_flow_slowdown(**sizes) if level == "full" else 1)


def falls(
    n_settings: int,
    *,
    seed: int = 0,
    levels: Sequence[str] = LEVELS,
    times: np.ndarray | None = None,
    progress: bool = False,
) -> xr.Dataset:
    """The fall of the common token's logit beside Theorem 4's B(t), at settings drawn at random.

    In units of t*, B = 1/4 ln(1 + 2 kappa ((M - 1)/M)^2 x^2) with kappa = (eta_Z / eta_Y) K / C_0 and the margin
    x = M h, which as a function of t / t* depends on M alone: where the law holds, K, rho and the ratio enter as one
    number.

    Parameters
    ----------
    n_settings : int
        K from 2 to 50, M from max(K, 10) to 1e5, rho from 1e-3 to 0.5, eta_Z / eta_Y from 1e-4 to 1, log-uniform.
    seed : int
    levels : sequence of str
    times : array, optional
        In t*. Default: 25 from 0.03 to 1000.
    progress : bool

    Returns
    -------
    xarray.Dataset
        ``fall(level, setting, time)``, -z of the common token; ``exponent(setting, time)``, B of Theorem 4; and
        ``from_start(level, setting, time)``, the same with the constant of `start_constant`.
    """
    n_settings, seed = checks.integer("n_settings", n_settings, minimum=1), checks.integer("seed", seed, minimum=0)
    times = np.geomspace(0.03, SPAN, 25) if times is None else times
    rng = np.random.default_rng(seed)

    def drawn(lowest: Any, highest: float) -> np.ndarray:
        return np.exp(rng.uniform(np.log(lowest), np.log(highest), n_settings))

    n_classes = np.round(drawn(2, 50)).astype(int)
    vocab_size = np.round(drawn(np.maximum(n_classes, 10), 1e5)).astype(int)
    values = {"n_classes": n_classes, "vocab_size": vocab_size, "overlap": drawn(1e-3, 0.5), "ratio": drawn(1e-4, 1)}
    sizes = {name: xr.DataArray(value, dims="setting") for name, value in values.items()}
    settings = in_transition_times(sizes)
    exponent, exact = np.empty((n_settings, times.size)), np.empty((len(levels), n_settings, times.size))
    for i in range(n_settings):
        own: dict[str, Any] = {"vocab_size": int(vocab_size[i]), "n_classes": int(n_classes[i])}
        rho = float(values["overlap"][i])
        given = own | {name: float(settings[name][i]) for name in ("eta_y", "eta_z")}
        paper = attention.speed_constant(n_classes=own["n_classes"], overlap=rho)
        exponent[i] = attention.growth_exponent(times, **given, c0=paper)
        for j, level in enumerate(levels):
            exact[j, i] = attention.growth_exponent(times, **given, c0=start_constant(level, **own, overlap=rho))
    found = [
        -gradient_flow_ensemble(
            settings, t_end=float(times[-1]), times=times, decoder=level, record=["z"], progress=progress, **_TOLERANCES
        )["z"].isel(kind=0, drop=True)
        for level in levels
    ]
    fall = np.stack([part.transpose("setting", "time").values for part in found])
    return xr.Dataset(
        {
            "fall": (("level", "setting", "time"), fall),
            "exponent": (("setting", "time"), exponent),
            "from_start": (("level", "setting", "time"), exact),
        },
        {
            "level": list(levels),
            "time": times,
            **{name: ("setting", value) for name, value in values.items()},
        },
    )


# The figures


_NAMES = {
    "n_classes": "next tokens K",
    "vocab_size": "vocabulary M",
    "overlap": r"overlap $\rho$",
    "ratio": r"$\eta_Z / \eta_Y$",
}
_SYMBOLS = {"n_classes": "K", "vocab_size": "M", "overlap": r"$\rho$", "ratio": r"$\eta_Z / \eta_Y$"}
# Values of the parameters that the maps do not span.
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
    return diagram(first, progress=effort.progress), diagram(second, progress=effort.progress)


@styled
def phase_diagram(maps: tuple[xr.Dataset, xr.Dataset]) -> Figure:
    """When the most frequent distinct token gains fastest, in t*, and the share of attention's change done at t*.

    Over vocabulary and overlap, and over classes and the ratio of the learning rates; one row for each level. eta_Y is
    no axis, since in units of t* a flow does not depend on it. White is t* itself, lines have its multiples; grey is a
    speed that still grows at the end.

    Parameters
    ----------
    maps : pair of xarray.Dataset
        From `diagram`, each over two parameters.
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
    return {name: own[name].item() for name in AXES if own[name].ndim == 0}


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
        curves = gamma_curves(VOCABULARIES, np.geomspace(0.02, 50, 100 if effort.quick else 600))
    return curves, falls(60 if effort.quick else 1000, progress=effort.progress)


@styled
def phase_collapse(data: tuple[xr.Dataset, xr.Dataset]) -> Figure:
    """Does one curve describe all settings when time is measured in t*?

    Left, gamma over its peak at t* (dashed), in closed form: K and eta_Y drop out, M does not. Right, for each level
    the fall of the common token's logit against Theorem 4's B at the same time, with the constant that is exact at the
    start, at settings drawn at random; colours are the overlap.

    Parameters
    ----------
    data : pair of xarray.Dataset
        From `gamma_curves` and `falls`.
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
    Entry("phase_collapse", "Scan and Snap", phase_collapse, _collapse, claims=collapse_claims),
    Entry("phase_diagram", "Scan and Snap", phase_diagram, _maps, claims=diagram_claims),
)
