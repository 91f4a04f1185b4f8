"""The margin of Match2 by one unit at one temperature: measured on the worst inputs, and by its formula.

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

from yzflow.figures.registry import Entry
from yzflow.figures.style import BLACK, canvas, ordered_colours, styled


def match2_margins(
    *,
    scale: float = 2000.0,
    n_tokens: Sequence[int] = (2, 10, 100, 1000),
    moduli: Sequence[int] = (31, 41, 51, 71, 101),
) -> xr.Dataset:
    """Margin of Match2 at one temperature c: the least log-odds of a right answer, measured and predicted.

    ``measured`` (n_tokens, modulus): min of |ln f/(1 - f)| over the worst inputs, with the sign of right answers;
    ``predicted``: L = (c (1 - cos(2 pi/M)) - ln N)/2, which the best blank score attains.
    """
    measured, predicted = (np.zeros((len(n_tokens), len(moduli))) for _ in range(2))
    for row, n in enumerate(n_tokens):
        for column, modulus in enumerate(moduli):
            unit = averaging.match2(n_tokens=n, modulus=modulus, scale=scale)
            predicted[row, column] = (scale * averaging.angle_gap(modulus) - math.log(n)) / 2
            margins = []
            for x in (np.full(n, (modulus + 1) // 2), np.zeros(1, int)):  # as near a match as can be; a single match
                attention = unit.unit.attention(tasks.match_tokens(x))[:-1]
                # Shares of the blank and of the rest: their ratio, which the output itself rounds to 0 or 1.
                odds = np.log(attention[:, :-1].sum(axis=1)) - np.log(attention[:, -1])
                margins.append(np.where(tasks.match2(x, modulus), odds, -odds).min())
            measured[row, column] = min(margins)
    names = ("n_tokens", "modulus")
    return xr.Dataset(
        {"measured": (names, measured), "predicted": (names, predicted)},
        {"n_tokens": list(n_tokens), "modulus": list(moduli)},
        {"scale": scale},
    )


# The figure


@styled
def drawn(data: xr.Dataset) -> Figure:
    """Margin of Match2 at one temperature against the modulus M, for several N: measured marks on the formula's lines.

    The margin L is the least log-odds of a right answer. It falls like 1/M^2 and by half of ln N; where it is below
    zero no blank score helps.

    Parameters
    ----------
    data : xarray.Dataset
        From `match2_margins`.
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


FIGURES = (Entry("match2_margins", "Sparse averaging", drawn, lambda effort: match2_margins()),)

# <!-- numbers
# typed: 3 (size of a construction)
# -->
