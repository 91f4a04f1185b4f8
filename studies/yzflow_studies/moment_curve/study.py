"""Bits of a query on the moment curve and of random keys.

Paper: Sanford, Hsu, Telgarsky (2023), arXiv 2306.02896.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from yzflow_sparse_averaging import averaging
from yzflow_sparse_averaging import instances as tasks

from yzflow.figures.registry import Effort, Entry
from yzflow.figures.style import BLACK, BLUE, ORANGE, VERMILION, canvas, styled


def query_bits(
    *, n_tokens: int = 256, subset_sizes: Sequence[int] = (1, 2, 3, 4, 6, 8, 12, 16), error: float = 0.1, seed: int = 0
) -> xr.Dataset:
    """Bits of a query, m p, by construction: (q,) each.

    ``moment_curve``: m = 2q numbers of the length of the longest; ``own_lengths``: the same with each number of its own
    length, for the last q tokens; ``random_keys``: m = 12 q ln N times the smallest p for a set next to another key.
    """
    rng = np.random.default_rng(seed)
    bits: dict[str, list[int]] = {"moment_curve": [], "own_lengths": [], "random_keys": []}
    for q in subset_sizes:
        curve = averaging.moment_curve(n_tokens, q)
        bits["moment_curve"].append(curve.dimension * curve.number_bits())
        bits["own_lengths"].append(curve.query_bits(np.arange(n_tokens - q, n_tokens)))
        keys = averaging.random_keys(n_tokens, math.ceil(12 * q * math.log(n_tokens)), rng=rng)
        subset = tasks.adversarial_subsets(keys, q)[0]
        query = averaging.certificate(keys, subset).query
        tau = averaging.temperature(n_tokens=n_tokens, q=q, error=error / 2)
        needed = averaging.smallest_bits(keys, query, subset, tau=tau, error=error)
        bits["random_keys"].append(keys.shape[1] * needed)
    return xr.Dataset(
        {name: ("q", values) for name, values in bits.items()},
        {"q": list(subset_sizes)},
        {"n_tokens": n_tokens, "error": error},
    )


# The figure


@styled
def qsa_query_bits(data: xr.Dataset) -> Figure:
    """Bits m p of a query for q-sparse averaging: moment curve (m = 2q) and random keys (m = 12 q ln N).

    Unbounded precision does not save bits: the moment curve's few numbers are long. The lower bound is q bits for query
    and key together.

    Parameters
    ----------
    data : xarray.Dataset
        From `query_bits`.
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


def _bits(effort: Effort) -> xr.Dataset:
    return query_bits(n_tokens=64) if effort.quick else query_bits()


FIGURES = (Entry("qsa_query_bits", "Sparse averaging", qsa_query_bits, _bits),)

# <!-- numbers
# typed: 12 (factor of a formula)
# -->
