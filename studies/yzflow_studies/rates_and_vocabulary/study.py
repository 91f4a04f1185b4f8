"""How far (10) misses the modified flow's velocities, over vocabularies and ratios of the learning rates.

Paper: Tian, Wang, Chen, Du (2023), arXiv 2305.16380, Lemma 4 and Assumption 1(c).
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from dynamics import gradient_flow
from dynamics.support import checks
from theory.statements import REGISTER
from yzflow.figures.registry import Effort, Entry
from yzflow.figures.style import canvas, ordered_colours, styled
from yzflow.papers.scan_and_snap.settings import Setting, classes_with_common_shares


def miss(*, n_classes: int, vocab_size: int, overlap: float, ratio: float, t_end: float = 1000.0) -> float:
    """Largest error of (10), with the class probability, in the modified flow, relative to the largest velocity.

    Both maxima over time are refined: between the neighbours of the largest of 120 times the flow is recorded again.

    Parameters
    ----------
    n_classes, vocab_size : int
    overlap : float
        rho of classes that share one token and have one of their own each, with equal overlaps.
    ratio : float
        eta_Y/eta_Z, with eta_Y = 1.
    t_end : float
        SGD steps.
    """
    classes = classes_with_common_shares(
        [checks.positive("overlap", overlap) ** 0.5] * n_classes, vocab_size, distinct=[1.0]
    )
    setting = Setting("", classes, 1.0, 1.0 / checks.positive("ratio", ratio), t_end)
    check = next(one for one in REGISTER["Scan and Snap: Lemma 4"].checks if one.name == "velocity of the logits")
    measured = check.corrected
    assert measured is not None

    def error(data: xr.Dataset) -> float:
        runs = SimpleNamespace(setting=setting, trajectory=lambda level: SimpleNamespace(dataset=data))
        return measured(runs, "modified flow")

    coarse = setting.simulate("modified flow", seed=0).dataset
    times = coarse["time"].values
    fastest = int(np.abs(coarse["z_velocity"].values).max(axis=(1, 2)).argmax())
    # Relative to the velocity at the fastest time, which stands beside each of the others.
    worst = 1 + int(np.argmax([error(coarse.isel(time=[0, i, fastest])) for i in range(1, times.size)]))
    near = [np.linspace(times[i - 1], times[min(i + 1, times.size - 1)], 81) for i in (fastest, worst)]
    options = setting.of_flows | {"times": np.unique(np.concatenate([[0.0], *near]))}
    fine = gradient_flow(classes, eta_y=setting.eta_y, eta_z=setting.eta_z, decoder="modified", **options)
    return error(fine.dataset)


def misses(
    *, sizes: Sequence[int], settings: Sequence[tuple[int, float]], ratios: Sequence[float], t_end: float = 1000.0
) -> xr.DataArray:
    """`miss` over settings (K, rho), ratios and vocabularies."""
    found = np.array(
        [
            [
                [miss(n_classes=k, vocab_size=m, overlap=rho, ratio=ratio, t_end=t_end) for m in sizes]
                for ratio in ratios
            ]
            for k, rho in settings
        ]
    )
    coordinates: dict[str, Any] = {
        "n_classes": ("setting", [k for k, _ in settings]),
        "overlap": ("setting", [rho for _, rho in settings]),
        "ratio": list(ratios),
        "vocab_size": list(sizes),
    }
    return xr.DataArray(found, coordinates, ["setting", "ratio", "vocab_size"])


def constants(found: xr.DataArray) -> xr.DataArray:
    """The errors times eta_Y/eta_Z, over ln^2 M: what is left does not depend on either if the law holds."""
    return found * found["ratio"] / np.log(found["vocab_size"]) ** 2


# The figure

_SETTINGS = ((2, 0.3), (3, 0.06), (7, 0.02))


def _computed(effort: Effort) -> xr.DataArray:
    sizes = [1000, 10**5, 10**7] if effort.quick else [10**n for n in range(3, 9)]
    return misses(sizes=sizes, settings=_SETTINGS, ratios=(100.0, 400.0))


def _law(found: xr.DataArray) -> str:
    left = constants(found)
    spread = float((left.max(["ratio", "vocab_size"]) / left.min(["ratio", "vocab_size"])).max())
    first = found.sel(ratio=100.0)
    worst = float(first.isel(vocab_size=-1).max())
    return (
        f"At eta_Y = 100 eta_Z the errors are {100 * float(first.isel(vocab_size=0).min()):.2g}% to "
        f"{100 * float(first.isel(vocab_size=0).max()):.2g}% at M = {int(found['vocab_size'][0]):,} and up to "
        f"{100 * worst:.2g}% at M = {int(found['vocab_size'][-1]):,}. Times eta_Y/eta_Z and over ln^2 M they differ by "
        f"a factor of {spread:.2f} at most within a setting."
    )


@styled
def drawn(found: xr.DataArray) -> Figure:
    """How far (10) misses the velocities of attention in the modified flow, at two ratios of the learning rates.

    Left: the largest error over the training, relative to the largest velocity; dashed: eta_Y = 400 eta_Z. Right: times
    eta_Y/eta_Z, over ln^2 M.

    Parameters
    ----------
    found : xarray.DataArray
        From `misses`.
    """
    figure = canvas(figsize=(9, 3.6))
    left, right = figure.subplots(1, 2)
    scaled, sizes = constants(found), found["vocab_size"].values
    for n, colour in zip(range(found.sizes["setting"]), ordered_colours(found.sizes["setting"]), strict=True):
        one = found.isel(setting=n)
        label = rf"$K = {int(one['n_classes'])}$, $\rho = {float(one['overlap']):g}$"
        for place, style in enumerate(("-", "--")):
            left.plot(
                sizes, one.isel(ratio=place), style, color=colour, marker="o", label=label if place == 0 else None
            )
            right.plot(sizes, scaled.isel(setting=n, ratio=place), style, color=colour, marker="o")
    left.set(xscale="log", yscale="log", xlabel="M", ylabel="error of (10)")
    right.set(xscale="log", xlabel="M", ylabel=r"error $\cdot\,\eta_Y/(\eta_Z \ln^2 M)$", ylim=(0, None))
    left.legend()
    figure.suptitle(r"What $\eta_Y \gg \eta_Z$ has to mean grows with $\ln^2 M$")
    return figure


FIGURES = (Entry("rates_and_vocabulary", "Scan and Snap", drawn, _computed, claims=_law),)

# <!-- numbers
# typed: 400 100 (factor of a formula)
# -->
