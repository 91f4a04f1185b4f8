"""How large m must be for random keys, and how long the numbers of their queries: sizes that are measured.

Paper: Sanford, Hsu, Telgarsky (2023), arXiv 2306.02896.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from yzflow_sparse_averaging import averaging
from yzflow_sparse_averaging import instances as tasks
from yzflow_sparse_averaging.attention_unit import attention_weights

from dynamics.support.progress import Progress
from yzflow.figures.registry import Effort, Entry
from yzflow.figures.style import BLACK, BLUE, GREEN, PURPLE, VERMILION, canvas, log_ticks, styled

SETS = ("random", "adversarial")
SEARCHED = ("exclusion", "minimum norm")


def smallest_dimensions(
    *,
    n_tokens: Sequence[int] = (256, 1024),
    subset_sizes: Sequence[int] = (1, 2, 4, 8),
    n_sets: int = 64,
    seed: int = 0,
    progress: bool = False,
) -> xr.Dataset:
    """Smallest m at which ``n_sets`` sets all have a certificate: ``dimension`` (n_tokens, q, sets, certificate).

    Pairs with q > N/4 are left out (NaN). With N = 1024, q to 32 and 1024 sets it takes some minutes.
    """
    coordinates: dict[str, list] = {
        "n_tokens": list(n_tokens),
        "q": list(subset_sizes),
        "sets": list(SETS),
        "certificate": list(SEARCHED),
    }
    found = xr.DataArray(np.full([len(values) for values in coordinates.values()], np.nan), coordinates)
    cells = [(n, q, sets, method) for n in n_tokens for q in subset_sizes for sets in SETS for method in SEARCHED]
    with Progress("smallest dimensions", enabled=progress) as report:
        for number, (n, q, sets, method) in enumerate(cells):
            report.update(number / len(cells), f"N = {n}, q = {q}")
            if 4 * q > n:
                continue
            m = averaging.smallest_dimension(
                n, q, rng=np.random.default_rng(seed), method=method, sets=sets, n_sets=min(n_sets, n)
            )
            found.loc[{"n_tokens": n, "q": q, "sets": sets, "certificate": method}] = m
    return xr.Dataset({"dimension": found}, attrs={"n_sets": n_sets, "seed": seed})


def rounding_errors(
    *, n_tokens: int = 1024, subset_sizes: Sequence[int] = (4, 16), bits: int = 24, error: float = 1e-3, seed: int = 0
) -> xr.Dataset:
    """Errors of attention with p-bit queries, in parts, at m = 12 q ln N and a set next to another key.

    ``error``, ``uneven`` (on y) and ``off`` (weight off y, twice) over (q, bits); ``sufficient`` over q: the p at which
    the error is proved to be at most eps; ``rule``: log2(q ln N/eps).
    """
    rng = np.random.default_rng(seed)
    numbers = np.arange(1, bits + 1)
    out = {name: np.zeros((len(subset_sizes), bits)) for name in ("error", "uneven", "off")}
    sufficient = []
    for row, q in enumerate(subset_sizes):
        keys = averaging.random_keys(n_tokens, math.ceil(12 * q * math.log(n_tokens)), rng=rng)
        subset = tasks.adversarial_subsets(keys, q)[0]
        query = averaging.certificate(keys, subset).query
        tau = averaging.temperature(n_tokens=n_tokens, q=q, error=error / 2)
        sufficient.append(averaging.sufficient_bits(query, tau=tau, error=error / 2))
        for column, p in enumerate(numbers):
            precision = averaging.rounded_query(query, tau=tau, bits=int(p))
            attention = attention_weights(np.array([query]), keys, scale=tau, precision=precision)
            out["error"][row, column] = tasks.attention_error(attention, subset[None])[0]
            out["uneven"][row, column], out["off"][row, column] = averaging.error_parts(attention[0], subset)
    return xr.Dataset(
        {name: (("q", "bits"), values) for name, values in out.items()}
        | {
            "sufficient": ("q", sufficient),
            "rule": ("q", [math.log2(q * math.log(n_tokens) / error) for q in subset_sizes]),
        },
        {"q": list(subset_sizes), "bits": numbers},
        {"n_tokens": n_tokens, "error": error},
    )


# The figures


_SETS = {"adversarial": (VERMILION, "s"), "random": (BLUE, "o")}


@styled
def qsa_smallest_dimension(data: xr.Dataset) -> Figure:
    """Smallest dimension m of random keys against q ln N, for random sets and for those closest to another key.

    As the theorem says, m of a few q ln N is enough, for all sets that were tried, if the nearest keys are pinned.

    Parameters
    ----------
    data : xarray.Dataset
        From `smallest_dimensions`.
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
        From `rounding_errors`.
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


def _dimensions(effort: Effort) -> xr.Dataset:
    few: dict[str, Any] = {"n_tokens": (64, 128), "subset_sizes": (1, 2, 4), "n_sets": 32} if effort.quick else {}
    return smallest_dimensions(progress=effort.progress, **few)


def _rounding(effort: Effort) -> xr.Dataset:
    return rounding_errors(n_tokens=256) if effort.quick else rounding_errors()


FIGURES = (
    Entry("qsa_smallest_dimension", "Sparse averaging", qsa_smallest_dimension, _dimensions, claims=_rules),
    Entry("qsa_precision", "Sparse averaging", qsa_precision, _rounding),
)

# <!-- numbers
# typed: 8 12 (factor of a formula)
# -->
