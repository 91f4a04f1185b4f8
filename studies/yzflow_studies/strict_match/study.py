"""Match3 where queries, keys and values are linear in a token of d = m numbers: sizes, bits, and what was run.

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
from yzflow_sparse_averaging.constructions import TRIPLES, linear_product, one_layer_bits

from yzflow.figures.registry import Effort, Entry
from yzflow.figures.style import BLACK, BLUE, GREEN, ORANGE, VERMILION, canvas, styled
from yzflow_studies.conjecture.study import below, triple_model

PROMISED = tuple(2**k for k in range(4, 41, 2))
LAYERS = (3, 5, 9, 17, 33, 65, 129)


def built(name: str, n_tokens: int, exponent: float) -> averaging.MatchTransformer:
    """A strict transformer for Match3: M = N for the transform, N^``exponent`` for the others."""
    return averaging.strict_transformer(triple_model(name, n_tokens, exponent))


def counted(name: str, n_tokens: int, exponent: float, seed: int) -> dict[str, int]:
    """D, H, m and p of a strict transformer as counted while it runs, and its wrong outputs."""
    model = built(name, n_tokens, exponent)
    x = tasks.random_match(n_tokens, model.modulus, size=4, rng=seed, order=3, planted=0.5)
    x = np.concatenate([x, tasks.adversarial_match(n_tokens, model.modulus, order=3)[:: max(1, n_tokens // 8)]])
    size = averaging.counted_size(model, x[:2])
    wrong = int((model(x) != tasks.match3(x, model.modulus)).sum())
    found = {"depth": size.depth, "heads": size.heads, "dimension": size.dimension, "token": size.width}
    return {**found, "bits": size.bits, "wrong": wrong, "outputs": x.size}


def strict_sizes(
    *, promised: Sequence[int] = PROMISED, n_tokens: Sequence[int] = LAYERS, exponent: float = 2.0
) -> xr.Dataset:
    """m H D of three strict constructions over (construction, promised), and m H p of one layer over ``n_tokens``.

    One layer has M = N + 2; ``least`` is what any layer has, ``one`` and ``all`` what is built with m = 1 and m = 2N.
    """
    product = np.array([[linear_product(name, n, exponent) for n in promised] for name in TRIPLES])
    one, wide = (np.array([one_layer_bits(n, n + 2, 2 * n if wide else 1) for n in n_tokens]) for wide in (False, True))
    return xr.Dataset(
        {
            "product": (("construction", "promised"), product),
            "bound": ("promised", [n / math.log2(n) for n in promised]),
            "least": ("n_tokens", one[:, 0]),
            "one": ("n_tokens", one[:, 1]),
            "all": ("n_tokens", wide[:, 1]),
        },
        {"construction": list(TRIPLES), "promised": list(promised), "n_tokens": list(n_tokens)},
        {"exponent": exponent},
    )


# The figure


@styled
def strict_match(data: xr.Dataset) -> Figure:
    """Match3 with d = m and linear queries, keys and values: several layers with positions, one layer without.

    Left: m H D that is proved to be enough against N, and the N / log2 N that the slides conjecture, whose constant is
    not given. Right: m H p of one layer, M = N + 2: what any layer needs, and the layer X + mean(X) as built, with one
    number a token and with 2N.

    Parameters
    ----------
    data : xarray.Dataset
        From `strict_sizes`.
    """
    figure = canvas(figsize=(9.6, 4.0))
    left, right = figure.subplots(1, 2)
    exponent = f"{data.attrs['exponent']:g}"
    labels = {
        "groups": (VERMILION, "two layers of groups, any M"),
        "sorted": (ORANGE, rf"sorted groups, $M = N^{{{exponent}}}$"),
        "transform": (BLUE, "transform, M = N"),
    }
    for name, (colour, label) in labels.items():
        left.plot(data["promised"], data["product"].sel(construction=name), color=colour, label=label)
    left.plot(data["promised"], data["bound"], "--", color=BLACK, label=r"$N / \log_2 N$")
    right.plot(data["n_tokens"], data["all"], "D-", color=GREEN, markersize=4, label="built, m = 2N")
    right.plot(data["n_tokens"], data["one"], "o-", color=BLUE, markersize=4, label="built, m = 1")
    right.plot(data["n_tokens"], data["least"], "--", color=BLACK, label="needed, (N - 1)/4")
    left.set(xlabel="tokens N", ylabel="m H D", xscale="log", yscale="log")
    right.set(xlabel="tokens N", ylabel="m H p in bits", xscale="log", yscale="log")
    left.set_title("several layers, with positions")
    right.set_title("one layer, without positions")
    left.legend(loc="upper left", fontsize=8)
    right.legend(loc="upper left", fontsize=8)
    return figure


def _claims(data: xr.Dataset) -> str:
    """Sentences on where the lines cross, and how near one layer is to its bound."""
    ratio = float((data["one"] / data["least"]).isel(n_tokens=-1))
    return (
        f"{below(data)} One layer with m = 1 has {ratio:.0f} times what is needed at N = {int(data['n_tokens'][-1])}."
    )


def _sizes(effort: Effort) -> xr.Dataset:
    return strict_sizes(n_tokens=LAYERS[:4]) if effort.quick else strict_sizes()


FIGURES = (Entry("strict_match", "Sparse averaging", strict_match, _sizes, claims=_claims),)

# <!-- numbers
# typed: 2 (exponent, divisor or factor of a formula)
# typed: 4 (zero and one, which bounds and indices have)
# -->
