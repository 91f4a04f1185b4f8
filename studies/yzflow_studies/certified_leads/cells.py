"""The certified map: cells of settings, for all of which a claim about the full flow is proved or refuted."""

from __future__ import annotations

import functools
import math
import os
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from dynamics import gradient_flow
from dynamics.support import checks, files
from dynamics.support.progress import Progress
from yzflow.figures.registry import Effort, Entry
from yzflow.figures.style import BLUE, VERMILION, canvas, styled
from yzflow_studies.certified_leads.lattice import DISTINCT, FALSE, OPEN, TRUE, certificates, classes_of

# Of each claim, sums of velocities (of the common token and the distinct ones) that are all positive if it is true.
CLAIMS = {
    "the lead of the more frequent distinct token never shrinks": ((0.0, 1.0, -1.0),),
    "Theorem 2: distinct tokens gain, the common one loses": ((-1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
}
_LEAD, _THEOREM2 = CLAIMS
_DEGREE = 6
_COLOURS = {TRUE: BLUE, FALSE: VERMILION, OPEN: "0.75"}


@dataclass(frozen=True)
class Plane:
    """A part of the plane of settings, cut into cells.

    Attributes
    ----------
    n_classes, vocab_size : int
    overlaps, ratios : tuple of float
        Edges of the cells: f_n . f_n' at the start, and eta_Z/eta_Y at eta_Y = 1.
    levels : int
        How often a cell that is left open is cut into four.
    """

    n_classes: int
    vocab_size: int
    overlaps: tuple[float, ...]
    ratios: tuple[float, ...]
    levels: int = 0

    @property
    def name(self) -> str:
        return f"K = {self.n_classes}, M = {self.vocab_size}"

    def cells(self) -> Iterator[tuple[float, float, float, float]]:
        """First and last overlap, first and last ratio of each cell."""
        for low, high in zip(self.ratios, self.ratios[1:], strict=False):
            for first, last in zip(self.overlaps, self.overlaps[1:], strict=False):
                yield first, last, low, high


def common_range(first: float, last: float) -> tuple[float, float]:
    """Weights of the common token for all overlaps rho from ``first`` to ``last``: sqrt(rho/(1 - rho) sum_l w_l^2)."""
    from flint import arb
    from yzflow_enclose.stepping import above, precision

    squares = sum(weight**2 for weight in DISTINCT)
    with precision(80):
        low, high = ((arb(rho) / (1 - arb(rho)) * squares).sqrt() for rho in (first, last))
        return -above(-low), above(high)


@functools.cache
def _lead_falls(n_classes: int, vocab_size: int, overlap: float, ratio: float, t_end: float) -> bool:
    """Whether the lead shrinks at a setting, in floating point: a guess by which cells are left alone."""
    times = np.concatenate([[0.0], np.geomspace(0.1, t_end, 200)])
    flow = gradient_flow(
        classes_of(n_classes, vocab_size, overlap), eta_y=1.0, eta_z=ratio, t_end=t_end, times=times, rtol=1e-10
    )
    z = flow.dataset["z"].values[:, 0]
    return bool((np.diff(z[:, 1] - z[:, 2]) < 0).any())


def _decided(
    plane: Plane, box: tuple[float, ...], asked: Sequence[str], t_end: float, folder: Path | None
) -> dict[str, tuple[int, float]]:
    """Value of each claim in a cell and up to which time it is proved, computed or as kept."""
    from yzflow_enclose.cells import Cell
    from yzflow_enclose.keeping import kept_cell

    cell = Cell(plane.n_classes, plane.vocab_size, DISTINCT, 1.0, (box[2], box[3]), common_range(box[0], box[1]))
    signs = kept_cell(folder, cell, [row for name in asked for row in CLAIMS[name]], t_end=t_end, degree=_DEGREE)
    outcome = {}
    for name in asked:
        own, signs = signs[: len(CLAIMS[name])], signs[len(CLAIMS[name]) :]
        values = [sign.value for sign in own]
        value = TRUE if all(v is True for v in values) else FALSE if any(v is False for v in values) else OPEN
        outcome[name] = value, min(sign.reached for sign in own)
    return outcome


def certified_cells(
    planes: Sequence[Plane],
    *,
    t_end: float,
    folder: str | os.PathLike | None = None,
    progress: bool = False,
) -> xr.Dataset:
    """Decide two claims about the full flow in cells of settings: at every setting of a cell, for all t <= t_end.

    Parameters
    ----------
    planes : sequence of Plane
        A cell across which the answer changes, by a float's guess at its corners, is cut without a try.
    t_end : float
        Last time, SGD steps.
    folder : path-like, optional
        Where what is decided is kept, in certificates that ``yzflow verify`` checks; one that is damaged, or of another
        question, is made again.
    progress : bool
        Show progress on standard error.

    Returns
    -------
    xarray.Dataset
        Along ``cell``: ``claim`` and ``sizes``, ``first`` and ``last`` overlap, ``low`` and ``high`` ratio, ``value``
        (1: true at every setting of the cell for all t <= t_end; 0: false at every one, at one time up to t_end; -1:
        open), and ``reached``, up to which time it is proved at every setting.

    Raises
    ------
    ValueError
        If `t_end` is not positive.
    """
    t_end = checks.positive("t_end", t_end)
    kept = None if folder is None else files.absolute("folder", folder, folder=True)
    waiting = [(plane, box, tuple(CLAIMS), 0) for plane in planes for box in plane.cells()]
    total, done, rows = len(waiting), 0.0, []
    with Progress("certified cells", enabled=progress) as report:
        while waiting:
            plane, box, asked, level = waiting.pop(0)
            report.update(min(1.0, done / total), f"{plane.name}, level {level}, {len(waiting)} waiting")
            tried = list(asked)
            if _LEAD in tried:
                falls = {
                    _lead_falls(plane.n_classes, plane.vocab_size, rho, ratio, t_end)
                    for rho in box[:2]
                    for ratio in box[2:]
                }
                if len(falls) > 1:
                    tried.remove(_LEAD)
            found = dict.fromkeys(asked, (OPEN, 0.0))
            if tried:
                found.update(_decided(plane, box, tried, t_end, kept))
            left = tuple(name for name in asked if found[name][0] == OPEN and level < plane.levels)
            rows += [(name, plane.name, *box, *found[name]) for name in asked if name not in left]
            if left:
                waiting += [(plane, part, left, level + 1) for part in _quarters(box)]
            done += 4.0**-level * (1 - bool(left))
    names = ("claim", "sizes", "first", "last", "low", "high", "value", "reached")
    columns = dict(zip(names, zip(*rows, strict=True), strict=True))
    return xr.Dataset({name: ("cell", np.array(column)) for name, column in columns.items()}, attrs={"t_end": t_end})


def _quarters(box: tuple[float, ...]) -> list[tuple[float, float, float, float]]:
    """A cell in four: halves of the overlap, and of the ratio's logarithm."""
    first, last, low, high = box
    middle, between = (first + last) / 2, math.sqrt(low * high)
    return [(a, b, c, d) for c, d in ((low, between), (between, high)) for a, b in ((first, middle), (middle, last))]


def shares(found: xr.Dataset, claim: str, sizes: str) -> dict[int, float]:
    """Share of the plane's area, of overlap and ln(eta_Z/eta_Y), that is true, false and open."""
    own = found.isel(cell=np.flatnonzero((found["claim"] == claim) & (found["sizes"] == sizes)))
    area = (own["last"] - own["first"]) * np.log(own["high"] / own["low"])
    whole = float(area.sum())
    return {value: float(area.where(own["value"] == value, 0.0).sum()) / whole for value in (TRUE, FALSE, OPEN)}


def _map(effort: Effort) -> xr.Dataset:
    planes: tuple[Plane, ...]
    if effort.quick:
        # Narrow ones, of both answers; a plane has panels of its own.
        planes, last = (Plane(2, 2, (0.3, 0.32), (0.125, 0.13)), Plane(2, 3, (0.3, 0.32), (2.0, 2.1))), 50.0
    else:
        planes, last = PLANES, T_END
    return certified_cells(planes, t_end=last, folder=certificates(effort), progress=effort.progress)


@styled
def certified_map(found: xr.Dataset) -> Figure:
    """Proved signs of the full flow at every setting of a cell, at every time and whatever the rounding.

    A blue cell: the claim holds at all its settings for all t up to the last. A red one: at a time it fails at all its
    settings. In a grey one neither is proved.

    Parameters
    ----------
    found : xarray.Dataset
        From `certified_cells`.
    """
    sizes = list(dict.fromkeys(found["sizes"].values.tolist()))
    figure = canvas(figsize=(4.4 * len(CLAIMS), 3.4 * len(sizes) + 0.6))
    panels = figure.subplots(len(sizes), len(CLAIMS), squeeze=False)
    for i, size in enumerate(sizes):
        for c, claim in enumerate(CLAIMS):
            axes = panels[i, c]
            own = found.isel(cell=np.flatnonzero((found["claim"] == claim) & (found["sizes"] == size)))
            for first, last, low, high, value in zip(
                *(own[name].values.tolist() for name in ("first", "last", "low", "high", "value")), strict=True
            ):
                axes.add_patch(
                    Rectangle(
                        (first, low), last - first, high - low, facecolor=_COLOURS[value], edgecolor="white", lw=0.5
                    )
                )
            axes.set_xlim(float(own["first"].min()), float(own["last"].max()))
            axes.set_yscale("log", base=2)
            axes.set_ylim(float(own["low"].min()), float(own["high"].max()))
            axes.grid(False)
            axes.set_title("\n".join([*textwrap.wrap(claim, 40), size]), fontsize=8.5)
            if i == len(sizes) - 1:
                axes.set_xlabel(r"overlap $\rho$ at the start")
        panels[i, 0].set_ylabel(r"$\eta_Z / \eta_Y$")
    for value, label in ((TRUE, "proved at every setting"), (FALSE, "false at every setting"), (OPEN, "open")):
        panels[0, 0].plot([], [], "s", color=_COLOURS[value], label=label)
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncol=3)
    figure.suptitle(f"The full flow at every time up to t = {found.attrs['t_end']:g}, cells of settings in balls")
    return figure


def claims(found: xr.Dataset) -> str:
    """Which share of each plane is proved, refuted and open, and where the claims are false."""
    sentences = []
    for size in dict.fromkeys(found["sizes"].values.tolist()):
        for claim in CLAIMS:
            own = found.isel(cell=np.flatnonzero((found["claim"] == claim) & (found["sizes"] == size)))
            part = shares(found, claim, size)
            edges = [float(own[name].min()) for name in ("first", "low")] + [
                float(own[n].max()) for n in ("last", "high")
            ]
            sentence = (
                f"{size}, overlaps from {edges[0]:g} to {edges[2]:g}, eta_Z/eta_Y from {edges[1]:.4g} to "
                f"{edges[3]:.4g}, {claim}: proved in {part[TRUE]:.1%} of the plane, false in {part[FALSE]:.1%}, open "
                f"in {part[OPEN]:.1%}"
            )
            if part[FALSE]:
                sentence += f" (false from {float(own['low'].where(own['value'] == FALSE).min()):.3g} on)"
            sentences.append(sentence)
    return f"Every setting of a cell, up to t = {found.attrs['t_end']:g}: {'; '.join(sentences)}."


# Where the lead's answer changes. A cell takes ten seconds of a core at K = M = 2, twice that at K = 3.
T_END = 1000.0
PLANES = (
    Plane(
        2, 2, (0.2, 0.3, 0.4, 0.5, 0.6), tuple(2.0**k for k in (-3, -2.5, *np.arange(-2.25, -0.25, 0.25).tolist())), 1
    ),
    Plane(3, 50, (0.3, 0.35), tuple(2.0**k for k in np.arange(-4.0, -1.75, 0.25).tolist()), 1),
)
FIGURES = (Entry("certified_map", "Scan and Snap", certified_map, _map, claims=claims),)
