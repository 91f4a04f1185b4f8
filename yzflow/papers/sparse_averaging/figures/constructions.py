"""Figures of the constructions for sparse averaging and pairs (Sanford, Hsu, Telgarsky 2023, arXiv 2306.02896)."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from yzflow.figures.registry import Effort, Entry
from yzflow.figures.style import (
    BLACK,
    BLUE,
    GREEN,
    ORANGE,
    PURPLE,
    VERMILION,
    canvas,
    log_ticks,
    ordered_colours,
    styled,
)
from yzflow.papers.sparse_averaging import constructions as measured
from yzflow.papers.sparse_averaging.settings import PAPER

_SETS = {"adversarial": (VERMILION, "s"), "random": (BLUE, "o")}


@styled
def qsa_smallest_dimension(data: xr.Dataset) -> Figure:
    """Smallest dimension m of random keys against q ln N, for random sets and for those closest to another key.

    As the theorem says, m of a few q ln N is enough, for all sets that were tried, if the nearest keys are pinned.

    Parameters
    ----------
    data : xarray.Dataset
        From `sparse_averaging.constructions.smallest_dimensions`.
    """
    figure = canvas(figsize=(9.6, 4.2))
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    sizes = data["n_tokens"].values
    q = data["q"].values
    titles = {"exclusion": "nearest keys pinned (exclusion)", "minimum norm": "minimum norm"}
    for axes, method in zip(panels, titles, strict=True):
        for sets, (colour, marker) in _SETS.items():
            for number, n in enumerate(sizes):
                m = data["dimension"].sel(n_tokens=n, sets=sets, certificate=method)
                fill = {"markerfacecolor": colour if number else "white"}
                axes.plot(q * np.log(n), m, marker, color=colour, **fill, label=f"{sets} sets, N = {n}")
        n = sizes[-1]
        x = np.array([np.log(sizes[0]), q[-1] * np.log(n)])
        if method == "exclusion":
            axes.plot(x, 4 * x, "-", color=BLACK, linewidth=1, label=r"$4\, q \ln N$")
        else:
            axes.plot(x, 12 * x, "--", color=BLACK, linewidth=1, label=r"$12\, q \ln N$")
            curve = np.linspace(q[0], q[-1], 100)
            # Of the adversarial sets, whose colour it has, for each N: light where their marks are open.
            for number, n in enumerate(sizes):
                rule, light = 8 * curve**2 * np.log(n / curve), 1 if number else 0.5
                name = rf"$8\, q^2 \ln(N/q)$, N = {n}"
                axes.plot(curve * np.log(n), rule, ":", color=_SETS["adversarial"][0], alpha=light, label=name)
        axes.set(title=titles[method], xlabel=r"$q \ln N$", xscale="log", yscale="log")
        log_ticks(axes.xaxis)
        axes.legend(loc="upper left" if method == "exclusion" else "lower right")
    panels[0].set_ylabel("smallest embedding dimension m")
    figure.suptitle(f"Random keys: where {data.attrs['n_sets']} sets of q of N tokens all have a certificate")
    return figure


def _rules(data: xr.Dataset) -> str:
    """The smallest m over the curves that are drawn."""
    m, q, n = data["dimension"], data["q"], data["n_tokens"]
    pinned = float((m.sel(certificate="exclusion") / (q * np.log(n))).max())
    ratio = m.sel(certificate="minimum norm", sets="adversarial") / (8 * q**2 * np.log(n / q))
    return (
        f"Pinned, it is at most {pinned:.1f} q ln N. The shortest certificate needs {float(ratio.min()):.2f} to"
        f" {float(ratio.max()):.2f} times 8 q^2 ln(N/q) for the adversarial sets, {_at(ratio, -1)} at the largest q"
        f" and {_at(ratio, 0)} at the smallest."
    )


def _at(ratio: xr.DataArray, place: int) -> str:
    found = ratio.isel(q=place).values
    low, high = (f"{value:.2f}" for value in (np.nanmin(found), np.nanmax(found)))
    return low if low == high else f"{low} to {high}"


@styled
def qsa_precision(data: xr.Dataset) -> Figure:
    """Error of attention against the bits p of the scaled query's numbers, in two parts.

    Found: with too few bits attention becomes uneven on the set, while the weight off it stays small. From a few bits
    on the error falls by about half with each bit.

    Parameters
    ----------
    data : xarray.Dataset
        From `sparse_averaging.constructions.rounding_errors`.
    """
    figure = canvas(figsize=(4.2 * data.sizes["q"] + 2.2, 4))
    panels = figure.subplots(1, data.sizes["q"], sharey=True, squeeze=False)[0]
    lines = (
        ("error", BLACK, "-", "o", r"error $\|a - 1_y/q\|_1$"),
        ("uneven", VERMILION, "--", "s", "uneven on y"),
        ("off", BLUE, ":", "^", "weight off y, twice"),
    )
    for axes, q in zip(panels, data["q"].values, strict=True):
        at = data.sel(q=q)
        for name, colour, style, marker, label in lines:
            axes.plot(
                data["bits"],
                at[name].where(at[name] > 0),
                style,
                color=colour,
                marker=marker,
                markersize=3.5,
                label=label,
            )
        axes.axhline(data.attrs["error"], color=GREEN, linewidth=1, label=r"$\varepsilon$")
        axes.axvline(
            float(at["rule"]), color="0.4", linestyle="-.", linewidth=1, label=r"$\log_2(q \ln N/\varepsilon)$"
        )
        axes.axvline(int(at["sufficient"]), color=PURPLE, linestyle="--", linewidth=1, label="proved to be enough")
        axes.set(title=f"q = {q}", xlabel="bits p of a number of the query", yscale="log")
    panels[0].set_ylabel("part of the error")
    figure.legend(*panels[-1].get_legend_handles_labels(), loc="outside right center")
    figure.suptitle(f"Rounded queries, N = {data.attrs['n_tokens']}, m = 12 q ln N, a set next to another key")
    return figure


@styled
def match2_margins(data: xr.Dataset) -> Figure:
    """Margin of Match2 at one temperature against the modulus M, for several N: measured marks on the formula's lines.

    The margin L is the least log-odds of a right answer. It falls like 1/M^2 and by half of ln N; where it is below
    zero no blank score helps.

    Parameters
    ----------
    data : xarray.Dataset
        From `sparse_averaging.constructions.match2_margins`.
    """
    figure = canvas(figsize=(9.6, 4))
    by_modulus, by_tokens = figure.subplots(1, 2)
    scale = data.attrs["scale"]
    modulus = np.geomspace(float(data["modulus"].min()), float(data["modulus"].max()), 200)
    for n, colour in zip(data["n_tokens"].values, ordered_colours(data.sizes["n_tokens"]), strict=True):
        by_modulus.plot(modulus, (scale * 2 * np.sin(np.pi / modulus) ** 2 - np.log(n)) / 2, "-", color=colour)
        by_modulus.plot(data["modulus"], data["measured"].sel(n_tokens=n), "o", color=colour, label=f"N = {n}")
    by_modulus.axhline(0, color=BLACK, linewidth=0.8)
    by_modulus.set(xlabel="modulus M", ylabel="margin L (nats)", xscale="log")
    by_modulus.set_xticks(data["modulus"].values, [str(value) for value in data["modulus"].values])
    by_modulus.minorticks_off()
    by_modulus.legend(title=f"c = {scale:g}")
    tokens = np.geomspace(float(data["n_tokens"].min()), float(data["n_tokens"].max()), 200)
    shown = data["modulus"].values[-3:]
    for m, colour in zip(shown, ordered_colours(len(shown)), strict=True):
        by_tokens.plot(tokens, (scale * 2 * np.sin(np.pi / m) ** 2 - np.log(tokens)) / 2, "-", color=colour)
        by_tokens.plot(data["n_tokens"], data["measured"].sel(modulus=m), "o", color=colour, label=f"M = {m}")
    by_tokens.axhline(0, color=BLACK, linewidth=0.8)
    by_tokens.set(xlabel="tokens N", ylabel="margin L (nats)", xscale="log")
    by_tokens.legend(title=f"c = {scale:g}")
    figure.suptitle(
        r"Match2 by one unit of 3 dimensions: $L = (c\,(1 - \cos(2\pi/M)) - \ln N)/2$ (lines), measured (marks)"
    )
    return figure


@styled
def qsa_query_bits(data: xr.Dataset) -> Figure:
    """Bits m p of a query for q-sparse averaging: moment curve (m = 2q) and random keys (m = 12 q ln N).

    Unbounded precision does not save bits: the moment curve's few numbers are long. The lower bound is q bits for query
    and key together.

    Parameters
    ----------
    data : xarray.Dataset
        From `sparse_averaging.constructions.query_bits`.
    """
    n, q = data.attrs["n_tokens"], data["q"].values
    figure = canvas(figsize=(8.6, 4.2))
    axes = figure.subplots()
    for name, colour, marker, label in (
        ("moment_curve", VERMILION, "s", "moment curve, numbers of equal length"),
        ("own_lengths", ORANGE, "D", "moment curve, each its own length"),
        ("random_keys", BLUE, "o", rf"random keys, error {data.attrs['error']:g}"),
    ):
        axes.plot(q, data[name], marker, color=colour, markersize=5, label=label)
    axes.plot(q, 4 * q**2 * np.log2(n), "-", color=VERMILION, linewidth=1, label=r"$4\, q^2 \log_2 N$")
    axes.plot(q, q, ":", color=BLACK, label="q (lower bound)")
    axes.set(xlabel="q", ylabel="bits of a query", xscale="log", yscale="log")
    axes.set_xticks(q, [str(value) for value in q])
    axes.minorticks_off()
    figure.legend(loc="outside right center")
    axes.set_title(f"Query bits of both constructions, N = {n}")
    return figure


@styled
def match3_sizes(data: xr.Dataset) -> Figure:
    """Size m H D of three constructions for Match3 against N, and the bound N / log2 N that the slides conjecture.

    Lines are the sizes that are proved to be enough; marks those that were counted while the construction ran. The
    conjecture has a constant that is not given: what counts is that each line falls below any multiple of the bound.

    Parameters
    ----------
    data : xarray.Dataset
        From `sparse_averaging.constructions.triple_sizes`.
    """
    figure = canvas(figsize=(8.6, 4.4))
    axes = figure.subplots()
    exponent = f"{data.attrs['exponent']:g}"
    labels = {
        "groups": (VERMILION, "s", "two layers of groups, any M"),
        "sorted": (ORANGE, "D", rf"sorted groups, $M = N^{{{exponent}}}$"),
        "transform": (BLUE, "o", "transform, M = N"),
    }
    for name, (colour, marker, label) in labels.items():
        one = data.sel(construction=name)
        axes.plot(data["promised"], one["product"], "-", color=colour, linewidth=1.2, label=label)
        counted = one["dimension"] * one["heads"] * one["depth"]
        axes.plot(data["n_tokens"], counted, marker, color=colour, markersize=5)
    axes.plot(data["promised"], data["bound"], "--", color=BLACK, label=r"$N / \log_2 N$")
    axes.set(xlabel="tokens N", ylabel="m H D", xscale="log", yscale="log")
    figure.legend(loc="outside right center")
    axes.set_title("Match3: promised sizes (lines), counted ones (marks)")
    return figure


def _crossings(data: xr.Dataset) -> str:
    """What was run, and from which of the sizes drawn on each line is below the bound."""
    n = data["promised"].values
    below = []
    for name in data["construction"].values:
        above = np.flatnonzero(data["product"].sel(construction=name).values >= data["bound"].values)
        first = above.max() + 1 if above.size else 0
        below.append(f"{name} from N = {n[first]:.3g}" if first < n.size else f"{name} at none")
    wrong, outputs = int(data["wrong"].sum()), int(data["outputs"].sum())
    return (
        f"Run on random and adversarial inputs to N = {int(data['n_tokens'].max())}: {wrong} of {outputs} outputs"
        f" wrong. Of the sizes drawn, below the bound with the constant 1: {'; '.join(below)}."
    )


def _dimensions(effort: Effort) -> xr.Dataset:
    few: dict[str, Any] = {"n_tokens": (64, 128), "subset_sizes": (1, 2, 4), "n_sets": 32} if effort.quick else {}
    return measured.smallest_dimensions(progress=effort.progress, **few)


def _rounding(effort: Effort) -> xr.Dataset:
    return measured.rounding_errors(n_tokens=256) if effort.quick else measured.rounding_errors()


def _triples(effort: Effort) -> xr.Dataset:
    few: dict[str, Any] = {"n_tokens": (8, 27, 64)} if effort.quick else {}
    return measured.triple_sizes(progress=effort.progress, **few)


def _bits(effort: Effort) -> xr.Dataset:
    return measured.query_bits(n_tokens=64) if effort.quick else measured.query_bits()


FIGURES = (
    Entry("qsa_smallest_dimension", PAPER, qsa_smallest_dimension, _dimensions, claims=_rules),
    Entry("qsa_precision", PAPER, qsa_precision, _rounding),
    Entry("qsa_query_bits", PAPER, qsa_query_bits, _bits),
    Entry("match2_margins", PAPER, match2_margins, lambda effort: measured.match2_margins()),
    Entry("match3_sizes", PAPER, match3_sizes, _triples, claims=_crossings),
)
