"""The certified lattice: settings at which a claim about the full flow is proved for every time, or refuted."""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from dynamics import SequenceClasses
from dynamics.support import files
from dynamics.support.progress import Progress
from yzflow.figures.registry import Effort, Entry
from yzflow.figures.style import BLUE, VERMILION, canvas, styled

if TYPE_CHECKING:
    from yzflow_enclose import Claim, Enclosure, Moment

# K and M; and distinct tokens, twice as frequent as one another, of finding 8.
_SIZES = ((2, 2), (3, 50))
DISTINCT = (2.0, 1.0)
_CLAIMS = (
    "the lead of the more frequent distinct token never shrinks",
    "Theorem 2: distinct tokens gain, the common one loses",
)
# Questions that few bits leave open are tried again with more.
_BITS = (45, 75)
TRUE, FALSE, OPEN = 1, 0, -1


def classes_of(n_classes: int, vocab_size: int, overlap: float) -> SequenceClasses:
    """One common token and two distinct ones per class, with a given overlap f_n . f_n' at the start."""
    common = float(np.sqrt(overlap / (1 - overlap) * sum(weight**2 for weight in DISTINCT)))
    return SequenceClasses.single_common_token(n_classes, vocab_size, common=common, distinct=DISTINCT)


def _lead(at: Moment) -> Claim:
    return at.velocity(0, 1) - at.velocity(0, 2) >= 0


def _theorem2(at: Moment) -> Claim:
    return (at.velocity(0, 0) < 0) & (at.velocity(0, 1) > 0) & (at.velocity(0, 2) > 0)


def certified(
    overlaps: np.ndarray,
    ratios: np.ndarray,
    *,
    t_end: float,
    folder: str | os.PathLike | None = None,
    progress: bool = False,
) -> xr.Dataset:
    """Decide two claims about the full flow at every setting of a lattice, for all times up to ``t_end``.

    Parameters
    ----------
    overlaps, ratios : arrays
        f_n . f_n' at the start, and eta_Z/eta_Y at eta_Y = 1.
    t_end : float
        Last time, SGD steps.
    folder : path-like, optional
        Where certificates are kept.
    progress : bool
        Show progress on standard error.

    Returns
    -------
    xarray.Dataset
        ``value(claim, sizes, ratio, overlap)``: 1 proved for all t <= t_end, 0 refuted, -1 open; and ``reached``, up to
        which time it is proved.
    """
    from yzflow_enclose import kept

    folder = None if folder is None else files.absolute("folder", folder, folder=True)

    @functools.cache
    def flows(data: SequenceClasses, ratio: float, bits: int) -> Enclosure:
        return kept(folder, data, eta_y=1.0, eta_z=ratio, t_end=t_end, bits=bits, max_seconds=120.0)

    shape = len(_CLAIMS), len(_SIZES), len(ratios), len(overlaps)
    value, reached = np.full(shape, OPEN), np.zeros(shape)
    settings = list(np.ndindex(shape[1:]))
    with Progress("certified lattice", enabled=progress) as report:
        for number, (i, j, k) in enumerate(settings):
            report.update(number / len(settings), f"setting {number + 1} of {len(settings)}")
            data = classes_of(*_SIZES[i], float(overlaps[k]))
            for c, claim in enumerate((_lead, _theorem2)):
                for bits in _BITS:
                    flow = flows(data, float(ratios[j]), bits)
                    found = flow.decide(claim)
                    if found.value is not None:
                        break
                value[c, i, j, k] = OPEN if found.value is None else TRUE if found.value else FALSE
                reached[c, i, j, k] = found.reached
            flows.cache_clear()
    dims = ("claim", "sizes", "ratio", "overlap")
    return xr.Dataset(
        {"value": (dims, value), "reached": (dims, reached)},
        {
            "claim": list(_CLAIMS),
            "sizes": [f"K = {k}, M = {m}" for k, m in _SIZES],
            "ratio": ratios,
            "overlap": overlaps,
        },
        {"t_end": t_end},
    )


def certificates(effort: Effort) -> Path | None:
    """Where certificates are kept: beside the store, if that is a folder."""
    if isinstance(effort.store, (str, os.PathLike)):
        return Path(os.fspath(effort.store)).parent / "certificates"
    return None


def _map(effort: Effort) -> xr.Dataset:
    n, last = (2, 200.0) if effort.quick else (8, 1e4)
    overlaps, ratios = np.linspace(0.1, 0.8, n), np.geomspace(0.03125, 4.0, n)
    return certified(overlaps, ratios, t_end=last, folder=certificates(effort), progress=effort.progress)


@styled
def certified_lattice(found: xr.Dataset) -> Figure:
    """Proved signs of the full flow at the settings of a lattice, at every time and whatever the rounding.

    A cell has the colour of the setting in its middle, which is what the proof is about: nothing is claimed of settings
    between. Numbers in cells that are not proved are the times up to which the claim is.

    Parameters
    ----------
    found : xarray.Dataset
        From `certified`.
    """
    claims, sizes = found["claim"].values, found["sizes"].values
    figure = canvas(figsize=(4.4 * len(claims), 3.4 * len(sizes) + 0.6))
    panels = figure.subplots(len(sizes), len(claims), sharex=True, sharey=True, squeeze=False)
    colours = ListedColormap(["0.75", VERMILION, BLUE])
    x, y = np.arange(found["overlap"].size), np.arange(found["ratio"].size)
    for i, size in enumerate(sizes):
        for c, claim in enumerate(claims):
            axes = panels[i, c]
            cell = found.isel(claim=c, sizes=i)
            values, reached = cell["value"].values, cell["reached"].values
            axes.pcolormesh(x, y, values, cmap=colours, vmin=-1.5, vmax=1.5, edgecolors="white", linewidth=0.5)
            axes.grid(False)
            for row, column in np.argwhere(values != TRUE):
                time = reached[row, column]
                words = f"{time:.0f}" if time >= 100 else f"{time:.3g}"
                axes.text(column, row, words, ha="center", va="center", fontsize=6, color="white")
            axes.set_xticks(x, [f"{value:.2g}" for value in found["overlap"].values])
            axes.set_yticks(y, [f"{value:.3g}" for value in found["ratio"].values])
            axes.set_title(f"{claim}\n{size}", fontsize=8.5)
            if i == len(sizes) - 1:
                axes.set_xlabel(r"overlap $\rho$ at the start")
        panels[i, 0].set_ylabel(r"$\eta_Z / \eta_Y$")
    for colour, label in ((BLUE, "proved"), (VERMILION, "refuted"), ("0.75", "open")):
        panels[0, 0].plot([], [], "s", color=colour, label=label)
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside right upper")
    figure.suptitle(f"The full flow at every time up to t = {found.attrs['t_end']:g}, in balls")
    return figure


def claims(found: xr.Dataset) -> str:
    """How many settings are proved, refuted and open, and where the refuted ones begin."""
    sentences = []
    for claim in found["claim"].values:
        for size in found["sizes"].values:
            values = found["value"].sel(claim=claim, sizes=size)
            counts = [int((values == kind).sum()) for kind in (TRUE, FALSE, OPEN)]
            sentence = f"{size}, {claim}: proved at {counts[0]}, refuted at {counts[1]}, open at {counts[2]} settings"
            if counts[1]:
                least = float(values["ratio"].where((values == FALSE).any("overlap")).min())
                sentence += f", refuted from eta_Z/eta_Y = {least:.3g} on"
            sentences.append(sentence)
    return f"Up to t = {found.attrs['t_end']:g}: {'; '.join(sentences)}."


FIGURES = (Entry("certified_lattice", "Scan and Snap", certified_lattice, _map, claims=claims),)
