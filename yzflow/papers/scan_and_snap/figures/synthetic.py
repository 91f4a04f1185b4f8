"""Figures of the SGD experiments of Scan and Snap (Tian, Wang, Chen, Du 2023, arXiv 2305.16380)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from dynamics import SequenceClasses, Trajectory
from yzflow.figures.registry import Effort, Entry
from yzflow.figures.style import ordered_colours, styled
from yzflow.papers.scan_and_snap import synthetic
from yzflow.papers.scan_and_snap.settings import PAPER

_ROWS = (0, 2, 4, 6, 8, 10)  # iterations that Figs. 4 and 5 show beside the last


@styled
def figure4(runs: Sequence[Trajectory]) -> Figure:
    """Attention on Syn-Small over training by SGD, eta_Y = 1 and 10 at eta_Z = 1 (Fig. 4).

    Agrees with the paper: attention leaves the common tokens and settles on the most frequent distinct ones; the larger
    eta_Y gets there in fewer steps and ends less sparse.

    Parameters
    ----------
    runs : sequence of Trajectory
        One for each column, from `scan_and_snap.synthetic.syn_small`.
    """
    return _attention_maps(runs, "Syn-Small, SGD with momentum 0.9: attention leaves common tokens (0-9)")


@styled
def figure5(runs: Sequence[Trajectory]) -> Figure:
    """Attention on Syn-Small over training by Adam, eta_Y = eta_Z in {0.1, 0.5, 1} (Fig. 5).

    Agrees with the paper in that the rate decides which distinct tokens get most attention: improbable ones at 0.1, the
    likeliest at 1. The choice is soft: nine or ten of the ten keep more than 1/M.

    Parameters
    ----------
    runs : sequence of Trajectory
        One for each column, from `scan_and_snap.synthetic.syn_small`.
    """
    return _attention_maps(runs, "Syn-Small, Adam: the learning rate chooses which distinct tokens keep attention")


def _sgd_runs(effort: Effort) -> list[Trajectory]:
    return [synthetic.syn_small(eta_y=eta_y, eta_z=eta_z, store=effort.store) for eta_y, eta_z in synthetic.SMALL_RATES]


def _adam_runs(effort: Effort) -> list[Trajectory]:
    return [
        synthetic.syn_small(eta_y=rate, eta_z=rate, optimizer="adam", store=effort.store)
        for rate in synthetic.ADAM_RATES
    ]


def _attention_maps(runs: Sequence[Trajectory], title: str) -> Figure:
    figure = Figure(figsize=(4.6 * len(runs) + 1, 5))
    all_axes = figure.subplots(2, len(runs), sharex=True, sharey=True, squeeze=False)
    top = max(float(run.dataset["attention"].max()) for run in runs)
    for column, run in zip(all_axes.T, runs, strict=True):
        last = int(run.dataset["time"][-1])
        times = [time for time in _ROWS if time < last] + [last]
        rates = ", ".join(rf"$\eta_{name[-1].upper()} = {run.parameters[name]:g}$" for name in ("eta_y", "eta_z"))
        for n, axes in enumerate(column):
            shares = run.dataset["attention"].isel(next_token=n).sel(time=times)
            mesh = axes.imshow(shares, aspect="auto", cmap="cividis", vmin=0, vmax=top, interpolation="nearest")
            axes.set_yticks(range(len(times)), times)
            axes.grid(False)
            axes.set_title(f"{rates}: next token {n}")
        column[-1].set_xlabel("contextual token")
    for axes in all_axes[:, 0]:
        axes.set_ylabel("SGD step")
    figure.colorbar(mesh, ax=all_axes, label=r"attention $c_{nl}$")
    figure.suptitle(title)
    return figure


@styled
def figure6(runs: xr.Dataset) -> Figure:
    """Entropy of attention on distinct tokens against eta_Y / eta_Z on Syn-Medium, mean and standard error (Fig. 6).

    A panel for each number of query tokens, two next tokens a query. The paper finds sparser attention at larger eta_Z,
    and denser attention as eta_Y grows at a fixed eta_Z.

    Parameters
    ----------
    runs : xarray.Dataset
        From `scan_and_snap.synthetic.syn_medium`.
    """
    figure = Figure(figsize=(11, 3.6))
    panels = figure.subplots(1, runs.sizes["n_queries"], sharey=True, squeeze=False)[0]
    error = synthetic.standard_error(runs["entropy"])
    for axes, n_queries in zip(panels, runs["n_queries"].values, strict=True):
        for eta_z, colour in zip(runs["eta_z"].values, ordered_colours(runs.sizes["eta_z"]), strict=True):
            at = {"n_queries": n_queries, "eta_z": eta_z}
            mean = runs["entropy"].sel(at).mean("seed")
            axes.errorbar(
                runs["ratio"], mean, error.sel(at), color=colour, marker="o", markersize=4, capsize=2.5,
                label=rf"$\eta_Z = {eta_z:g}$",
            )  # fmt: skip
        axes.set(title=f"{n_queries} quer{'y' if n_queries == 1 else 'ies'}", xlabel=r"$\eta_Y / \eta_Z$", xscale="log")
        axes.set_xticks(runs["ratio"].values, [f"{ratio:g}" for ratio in runs["ratio"].values])
        axes.minorticks_off()
    panels[0].set_ylabel("entropy of attention on\ndistinct tokens (nats)")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right center")
    figure.suptitle(
        f"Syn-Medium after {synthetic.STEPS} SGD steps: mean and standard error of {runs.sizes['seed']} seeds"
    )
    return figure


@styled
def figure11(runs: xr.Dataset) -> Figure:
    """Recall of distinct tokens against the threshold on attention, by eta_Y / eta_Z at eta_Z = 1 (Fig. 11).

    A curve that falls more slowly means fewer distinct tokens with more attention each. Agrees with the paper for
    ratios from 2 on: the larger, the denser. At ratio 1 the curve starts as the slowest and ends below that of ratio 2.
    The paper does not say at which eta_Z its curves are drawn.

    Parameters
    ----------
    runs : xarray.Dataset
        From `scan_and_snap.synthetic.syn_medium`.
    """
    return _recall_panels(runs.sel(eta_z=[1.0]), "ratio", r"\eta_Y/\eta_Z", r"$\eta_Z = 1$")


@styled
def figure12(runs: xr.Dataset) -> Figure:
    """Recall of distinct tokens against the threshold on attention, by eta_Z at eta_Y = 2 eta_Z (Fig. 12).

    Agrees with the paper: the larger eta_Z, the more slowly recall falls at high thresholds, so the sparser attention.
    The paper does not say at which ratio its curves are drawn.

    Parameters
    ----------
    runs : xarray.Dataset
        From `scan_and_snap.synthetic.syn_medium`.
    """
    return _recall_panels(runs.sel(ratio=[2.0]), "eta_z", r"\eta_Z", r"$\eta_Y = 2 \eta_Z$")


def _orders(runs: xr.Dataset) -> str:
    """In how many pairs of neighbouring rates the mean entropy has the paper's order."""
    mean = runs["entropy"].mean("seed")
    sparser, denser = mean.diff("eta_z") < 0, mean.diff("ratio") > 0
    ratios = runs["ratio"].values
    steps = [
        f"from {low:g} to {high:g} in {int(cell.sum())} of {cell.size}"
        for low, high, cell in zip(ratios, ratios[1:], denser.transpose("ratio", ...), strict=False)
    ]
    return (
        f"Here entropy falls from one eta_Z to the next in {int(sparser.sum())} of {sparser.size} cases, and rises "
        f"with the ratio {', '.join(steps)}."
    )


def _medium(effort: Effort, **options: Any) -> xr.Dataset:
    size: dict[str, Any] = {"n_queries": (1, 3), "seeds": 2} if effort.quick else {}
    return synthetic.syn_medium(store=effort.store, progress=effort.progress, **options, **size)


def _recall_panels(runs: xr.Dataset, by: str, symbol: str, fixed: str) -> Figure:
    figure = Figure(figsize=(11, 3.6))
    panels = figure.subplots(1, runs.sizes["n_queries"], sharey=True, squeeze=False)[0]
    runs = runs.squeeze([name for name in ("eta_z", "ratio") if name != by], drop=True)
    mean, error = runs["recall"].mean("seed"), synthetic.standard_error(runs["recall"])
    for axes, n_queries in zip(panels, runs["n_queries"].values, strict=True):
        for value, colour in zip(runs[by].values, ordered_colours(runs.sizes[by]), strict=True):
            at = {"n_queries": n_queries, by: value}
            axes.plot(runs["threshold"], mean.sel(at), color=colour, label=rf"${symbol} = {value:g}$")
            band = (mean.sel(at) - error.sel(at), mean.sel(at) + error.sel(at))
            axes.fill_between(runs["threshold"], *band, color=colour, alpha=0.25, linewidth=0)
        axes.set(title=f"{n_queries} quer{'y' if n_queries == 1 else 'ies'}", xlabel="threshold on attention")
        axes.set(xlim=(0, float(np.max(runs["threshold"]))), ylim=(0, 1.02))
        vocab_size = SequenceClasses.syn_medium(int(n_queries)).vocab_size
        axes.axvline(1 / vocab_size, color="0.4", linestyle=":", label="1/M")
    panels[0].set_ylabel("recall of distinct tokens")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right center")
    figure.suptitle(
        f"Syn-Medium, {fixed}: share of distinct tokens above a threshold, {runs.sizes['seed']} seeds (band: SE)"
    )
    return figure


FIGURES = (
    Entry("figure4", PAPER, figure4, _sgd_runs, number=4),
    Entry("figure5", PAPER, figure5, _adam_runs, number=5),
    Entry("figure6", PAPER, figure6, _medium, number=6, claims=_orders),
    Entry("figure11", PAPER, figure11, lambda effort: _medium(effort, eta_z=(1.0,)), number=11),
    Entry("figure12", PAPER, figure12, lambda effort: _medium(effort, ratios=(2.0,)), number=12),
)
