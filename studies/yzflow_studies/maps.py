"""Maps of attention."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.image import AxesImage


def causal_map(
    axes: Axes, attention: np.ndarray, *, labels: Sequence[str] | None = None, largest: float = 1.0
) -> AxesImage:
    """Draw attention of each query (row) on the keys up to it; returns the image, for a colour bar.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
    attention : (positions, positions) array
        Keys after the query stay blank.
    labels : sequence of str, optional
        What stands at each position. Default: the positions' numbers.
    largest : float
        Attention of the lightest colour.
    """
    causal = np.where(np.tri(len(attention), dtype=bool), attention, np.nan)
    image = axes.imshow(causal, cmap="cividis", vmin=0, vmax=largest, interpolation="nearest")
    axes.grid(False)
    if labels is not None:
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_ticks(range(len(labels)), labels, fontsize=7)
            axis.set_tick_params(length=0, pad=2)
    return image
