"""Sizes of transformers for Match3, counted while they run and promised by the constructions.

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
from yzflow_sparse_averaging.constructions import TRIPLES, promised_product

from dynamics.support.progress import Progress
from yzflow.figures.registry import Effort, Entry
from yzflow.figures.style import BLACK, BLUE, ORANGE, VERMILION, canvas, styled

PROMISED = tuple(2**k for k in range(4, 41, 2))


def triple_sizes(
    *,
    n_tokens: Sequence[int] = (8, 27, 64, 125, 216, 256),
    promised: Sequence[int] = PROMISED,
    exponent: float = 2.0,
    seed: int = 0,
    progress: bool = False,
) -> xr.Dataset:
    """Sizes that Match3 needs by construction: counted while it runs, and by the code at N too large to run.

    ``depth``, ``heads``, ``dimension``, ``bits`` and ``wrong`` (outputs, of ``outputs``) over (construction, n_tokens),
    where groups need a cube; ``product`` = m H D over (construction, promised), and ``bound`` = N / log2 N. M = N for
    the transform and N^``exponent`` for the others.
    """
    counted = {
        name: xr.DataArray(
            np.full((3, len(n_tokens)), np.nan), {"construction": list(TRIPLES), "n_tokens": list(n_tokens)}
        )
        for name in ("depth", "heads", "dimension", "bits", "wrong", "outputs")
    }
    product = np.array([[promised_product(name, n, exponent) for n in promised] for name in TRIPLES])
    cells = [(name, n) for name in TRIPLES for n in n_tokens]
    with Progress("sizes of Match3", enabled=progress) as report:
        for number, (name, n) in enumerate(cells):
            report.update(number / len(cells), f"{name}, N = {n}")
            if name == "groups" and round(n ** (1 / 3)) ** 3 != n:
                continue
            model = triple_model(name, n, exponent)
            x = tasks.random_match(n, model.modulus, size=4, rng=seed, order=3, planted=0.5)
            x = np.concatenate([x, tasks.adversarial_match(n, model.modulus, order=3)[:: max(1, n // 16)]])
            size = averaging.counted_size(model, x[:2])
            wrong = int((model(x) != tasks.match3(x, model.modulus)).sum())
            found = {"depth": size.depth, "heads": size.heads, "dimension": size.dimension, "bits": size.bits}
            for key, value in {**found, "wrong": wrong, "outputs": x.size}.items():
                counted[key].loc[{"construction": name, "n_tokens": n}] = value
    bound = [n / math.log2(n) for n in promised]
    return xr.Dataset(
        {**counted, "product": (("construction", "promised"), product), "bound": ("promised", bound)},
        {"promised": list(promised)},
        {"exponent": exponent, "seed": seed},
    )


def triple_model(name: str, n_tokens: int, exponent: float) -> averaging.MatchTransformer:
    """A construction for Match3 at the modulus of `triple_sizes`."""
    modulus = max(2, round(n_tokens**exponent))
    if name == "groups":
        return averaging.match3_groups(root=round(n_tokens ** (1 / 3)), modulus=modulus)
    if name == "sorted":
        return averaging.match3_sorted(n_tokens=n_tokens, modulus=modulus)
    return averaging.match3_transform(n_tokens=n_tokens, modulus=n_tokens)


# The figure


@styled
def match3_sizes(data: xr.Dataset) -> Figure:
    """Size m H D of three constructions for Match3 against N, and the bound N / log2 N that the slides conjecture.

    Lines are the sizes that are proved to be enough; marks those that were counted while the construction ran. The
    conjecture has a constant that is not given: what counts is that each line falls below any multiple of the bound.

    Parameters
    ----------
    data : xarray.Dataset
        From `triple_sizes`.
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
    """Sentences on which sizes were run, and from which of the drawn ones on each line is below the bound."""
    wrong, outputs = int(data["wrong"].sum()), int(data["outputs"].sum())
    return (
        f"Run on random and adversarial inputs to N = {int(data['n_tokens'].max())}: {wrong} of {outputs} outputs"
        f" wrong. {below(data)}"
    )


def below(data: xr.Dataset) -> str:
    """A sentence on the first size drawn from which on each construction's ``product`` is below ``bound``."""
    n, told = data["promised"].values, []
    for name in data["construction"].values:
        above = np.flatnonzero(data["product"].sel(construction=name).values >= data["bound"].values)
        first = above.max() + 1 if above.size else 0
        told.append(f"{name} from N = {n[first]:.3g}" if first < n.size else f"{name} at none")
    return f"Of the sizes drawn, below the bound with the constant 1: {'; '.join(told)}."


def _triples(effort: Effort) -> xr.Dataset:
    few: dict[str, Any] = {"n_tokens": (8, 27, 64)} if effort.quick else {}
    return triple_sizes(progress=effort.progress, **few)


FIGURES = (Entry("match3_sizes", "Sparse averaging", match3_sizes, _triples, claims=_crossings),)
