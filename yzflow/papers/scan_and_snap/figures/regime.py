"""Regime maps as figures."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from yzflow.figures.registry import Effort, Entry
from yzflow.figures.style import canvas, log_ticks, styled
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
    """Error of each statement over two parameters, as printed and, where there is such a form, as corrected.

    Parameters
    ----------
    errors : xarray.Dataset
        From `scan_and_snap.regime.regime_map` over two parameters.
    """
    x, y = errors["slowdown"].dims
    levels = errors["level"].values
    rows = [
        (f"{name}, {form}", errors[variable].sel(statement=name))
        for name, both in zip(errors["statement"].values, errors["corrected"].values, strict=True)
        for form, variable in ((("printed", "printed"), ("corrected", "error")) if both else (("printed", "error"),))
    ]
    # Statements below each other: side by side, in the width of a page, they could not be read.
    figure = canvas(figsize=(2.9 * len(levels) + 1.7, 1.8 * len(rows) + 1.0))
    panels = figure.subplots(len(rows), len(levels), sharex=True, sharey=True, squeeze=False)
    crossed = _crosses_half(errors)
    norm = LogNorm(1e-3, 1.0)
    for i, (title, error) in enumerate(rows):
        for j, level in enumerate(levels):
            axes = panels[i, j]
            cell = error.sel(level=level)
            shown = np.ma.masked_invalid(np.clip(cell.transpose(y, x).values, 1e-3, None))
            axes.set(xscale="log", yscale="log")
            if errors[x][-1] < 100 * errors[x][0]:
                log_ticks(axes.xaxis)
            axes.grid(False)
            if shown.count():
                edges = _edges(errors[x].values), _edges(errors[y].values)
                mesh = axes.pcolormesh(*edges, shown, cmap="cividis", norm=norm)
                if crossed:
                    slowdown = errors["slowdown"].transpose(y, x).values
                    line = axes.contour(errors[x], errors[y], slowdown, levels=[0.5], colors="white", linestyles="--")
                    line.set_path_effects([withStroke(linewidth=3, foreground="black")])  # seen on yellow, too
            else:
                axes.text(0.5, 0.5, "not measured\nat this level", ha="center", va="center", transform=axes.transAxes)
            if i == 0:
                axes.set_title(f"against {level}")
            if i == len(rows) - 1:
                axes.set_xlabel(_NAMES[x])
        panels[i, 0].set_ylabel(f"{title}\n{_NAMES[y]}", fontsize=9)
    figure.colorbar(mesh, ax=panels, label="relative error", extend="both", aspect=50)
    dashed = "\ndashed: predicted slow-down s = 1/2" if crossed else ""
    figure.suptitle(f"Relative errors of the statements{dashed}")
    return figure


def _crosses_half(errors: xr.Dataset) -> bool:
    """Whether the predicted slow-down is above 1/2 in some cells, and below in others."""
    return bool(errors["slowdown"].min() < 0.5 < errors["slowdown"].max())


def _found(errors: xr.Dataset) -> str:
    """What is expected of which panel, and what the corrected forms are off by at most."""
    parts = []
    for level in errors["level"].values:
        expected = [
            str(one) for one in errors["statement"].values if errors["expected"].sel(statement=one, level=level)
        ]
        parts.append(f"{' and '.join(expected) if expected else 'nothing'} at the level {level}")
    said = [f"Inside its assumptions a statement is expected to hold for {'; '.join(parts)}; elsewhere an error is no"
            " failure."]  # fmt: skip
    for name in errors["statement"].values[errors["corrected"].values]:
        worst = {form: float(errors[form].sel(statement=name).max()) for form in ("printed", "error")}
        said.append(f"{name} is off by up to {worst['printed']:.2g} as printed, and {worst['error']:.2g} as corrected.")
    if _crosses_half(errors):
        said.append(
            "The dashed line is where the full flow is predicted to begin at half the speed of the theory (s = 1/2), "
            "slower for larger M and rho."
        )
    return " ".join(said)


def _edges(values: np.ndarray) -> np.ndarray:
    """Edges of cells around rising values, half way between them on a logarithmic axis."""
    log = np.log(values)
    inner = (log[1:] + log[:-1]) / 2
    first, last = (inner[0], inner[-1]) if inner.size else (log[0] + 1, log[0] - 1)
    return np.exp([2 * log[0] - first, *inner, 2 * log[-1] - last])


FIGURES = (Entry("regime_map", PAPER, regime_map, _small_map, claims=_found),)
