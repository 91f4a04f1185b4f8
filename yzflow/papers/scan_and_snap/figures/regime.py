"""Regime maps as figures."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from yzflow.figures.registry import Effort, Entry
from yzflow.figures.style import log_ticks, styled
from yzflow.papers.scan_and_snap import regime
from yzflow.papers.scan_and_snap.settings import PAPER

_NAMES = {
    "n_classes": "next tokens K",
    "vocab_size": "vocabulary M",
    "overlap": r"overlap $\rho$",
    "ratio": r"$\eta_Z / \eta_Y$",
}


def _small_map(effort: Effort) -> xr.Dataset:
    """Over M and rho at K = 10."""
    grid: dict[str, list[float]] = {
        "vocab_size": [10, 30, 100, 300, 1000, 3000],
        "overlap": [0.001, 0.003, 0.01, 0.03, 0.1, 0.3],
    }
    if effort.quick:
        grid = {name: values[::2] for name, values in grid.items()}
    return regime.regime_map(grid, progress=effort.progress)


@styled
def regime_map(errors: xr.Dataset) -> Figure:
    """Error of each statement over two parameters, against the full flow and SGD.

    The line is where the predicted slow-down of the full flow is s = 1/2: beyond it, on the side of large M and rho,
    the full flow moves attention at less than half the speed of the theory.

    Parameters
    ----------
    errors : xarray.Dataset
        From `scan_and_snap.regime.regime_map` over two parameters.
    """
    x, y = errors["slowdown"].dims
    names, levels = errors["statement"].values, errors["level"].values
    figure = Figure(figsize=(2.4 * len(names) + 1.4, 2.5 * len(levels) + 0.8))
    panels = figure.subplots(len(levels), len(names), sharex=True, sharey=True, squeeze=False)
    norm = LogNorm(1e-3, 1.0)
    for i, level in enumerate(levels):
        for j, name in enumerate(names):
            axes = panels[i, j]
            cell = errors["error"].sel(statement=name, level=level)
            shown = np.ma.masked_invalid(np.clip(cell.transpose(y, x).values, 1e-3, None))
            axes.set(xscale="log", yscale="log")
            if errors[x][-1] < 100 * errors[x][0]:
                log_ticks(axes.xaxis)
            axes.grid(False)
            if shown.count():
                edges = _edges(errors[x].values), _edges(errors[y].values)
                mesh = axes.pcolormesh(*edges, shown, cmap="cividis", norm=norm)
                slowdown = errors["slowdown"].transpose(y, x).values
                if np.nanmin(slowdown) < 0.5 < np.nanmax(slowdown):
                    axes.contour(errors[x], errors[y], slowdown, levels=[0.5], colors="white", linestyles="--")
            else:
                axes.text(0.5, 0.5, "not measured\nat this level", ha="center", va="center", transform=axes.transAxes)
            if i == 0:
                axes.set_title(name)
            if i == len(levels) - 1:
                axes.set_xlabel(_NAMES[x])
        panels[i, 0].set_ylabel(f"against {level}\n{_NAMES[y]}")
    figure.colorbar(mesh, ax=panels, label="relative error", extend="both")
    figure.suptitle("Where the statements hold; dashed: predicted boundary, s = 1/2")
    return figure


def _edges(values: np.ndarray) -> np.ndarray:
    """Edges of cells around rising values, half way between them on a logarithmic axis."""
    log = np.log(values)
    inner = (log[1:] + log[:-1]) / 2
    first, last = (inner[0], inner[-1]) if inner.size else (log[0] + 1, log[0] - 1)
    return np.exp([2 * log[0] - first, *inner, 2 * log[-1] - last])


FIGURES = (Entry("regime_map", PAPER, regime_map, _small_map),)
