"""Figures of the Y/Z layer on real text (Section 8 of Scan and Snap: Tian et al. 2023, arXiv 2305.16380)."""

from __future__ import annotations

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from yzflow import intervals
from yzflow.figures.registry import Entry
from yzflow.figures.style import BLACK, BLUE, VERMILION, canvas, ordered_colours, styled

_GROUPS = {"distinct": (BLUE, "-"), "undecided": ("0.6", ":"), "common": (VERMILION, "--")}
_TITLES = {"natural": "next tokens as in the text", "equal": "next tokens weighted to be equally likely"}


@styled
def real_text_fate(runs: xr.Dataset) -> Figure:
    """Attention on distinct and common tokens over training on real text: mean over seeds and its 95% interval.

    Above: attention on a group of tokens of held-out windows relative to the start; distinct and common are said of a
    token for the next token of its window. Theorem 2 says that distinct tokens gain and common ones lose. Below: loss
    and entropy of attention. Left: the text as it is; right: next tokens weighted to be equally likely, as the theorem
    assumes. With equal weights it agrees. As the text is, it does not at first: common tokens gain and distinct ones
    lose while the decoder learns the frequencies of next tokens, because attention then goes to what all windows share.

    Parameters
    ----------
    runs : xarray.Dataset
        Of the task "real_text" with dimensions ``next_tokens``, ``time`` and ``seed``.
    """
    weightings = runs["next_tokens"].values
    figure = canvas(figsize=(1.2 + 4.4 * len(weightings), 7.5))
    axes = figure.subplots(3, len(weightings), sharex=True, sharey="row", squeeze=False)
    for column, weighting in zip(axes.T, weightings, strict=True):
        at = runs.sel(next_tokens=weighting)
        for group, (colour, line) in _GROUPS.items():
            _band(column[0], at[f"gain_{group}"], colour=colour, linestyle=line, label=group)
        column[0].axhline(1, color=BLACK, linewidth=0.8)
        column[0].set_title(_TITLES[str(weighting)])
        _band(column[1], at["loss"], colour=BLACK)
        _band(column[2], at["entropy"], colour=BLACK)
        column[2].set_xscale("symlog", linthresh=max(float(runs["time"][1]), 1))
        column[2].set(xlabel="SGD step", xlim=(0, float(runs["time"][-1])))
    axes[0, 0].set_ylabel("attention on the group,\nrelative to the start")
    axes[1, 0].set_ylabel("cross-entropy of\nheld-out windows (nats)")
    axes[2, 0].set_ylabel("entropy of attention\n(nats)")
    axes[0, 0].legend(title="tokens, for the next token")
    figure.suptitle(f"The Y/Z layer on real text: mean of {runs.sizes['seed']} seeds and its 95% interval")
    return figure


@styled
def real_text_entropy(runs: xr.Dataset) -> Figure:
    """Entropy of attention on held-out windows of real text at the end of training against the learning rates.

    Means over seeds and their 95% intervals (Student's t). The dotted line is the entropy before training. The paper's
    Fig. 10 has the entropy of an ordinary transformer fall as its one learning rate grows. Here it falls with eta_Z and
    rises with eta_Y, as Section 6 (c) says; with both together it does not change beyond its errors.

    Parameters
    ----------
    runs : xarray.Dataset
        Of the task "real_text" with dimensions ``eta_y``, ``eta_z``, ``time`` and ``seed``.
    """
    figure = canvas(figsize=(9, 3.8))
    panels = figure.subplots(1, 2)
    labels = ("entropy of attention (nats)", "held-out cross-entropy (nats)")
    for axes, name, label in zip(panels, ("entropy", "loss"), labels, strict=True):
        end, error = runs[name].isel(time=-1), intervals.of_mean(runs[name].isel(time=-1))
        for eta_y, colour in zip(runs["eta_y"].values, ordered_colours(runs.sizes["eta_y"]), strict=True):
            mean = end.sel(eta_y=eta_y).mean("seed")
            axes.errorbar(
                runs["eta_z"], mean, error.sel(eta_y=eta_y), color=colour, marker="o", markersize=4, capsize=2.5,
                label=rf"$\eta_Y = {eta_y:g}$",
            )  # fmt: skip
        axes.set(xlabel=r"learning rate of attention $\eta_Z$ (per step)", ylabel=label, xscale="log")
        axes.set_xticks(runs["eta_z"].values, [f"{rate:g}" for rate in runs["eta_z"].values])
        axes.minorticks_off()
    start = float(runs["entropy"].isel(time=0).mean())
    panels[0].axhline(start, color="0.4", linestyle=":", label="before training")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right center")
    steps = float(runs["time"][-1])
    figure.suptitle(f"Real text after {steps:g} SGD steps: mean of {runs.sizes['seed']} seeds and its 95% interval")
    return figure


def _band(axes: Axes, values: xr.DataArray, *, colour: str, **style: object) -> None:
    mean, error = values.mean("seed"), intervals.of_mean(values)
    axes.plot(values["time"], mean, color=colour, **style)
    axes.fill_between(values["time"], mean - error, mean + error, color=colour, alpha=0.2, linewidth=0)


FIGURES = (
    Entry("real_text_entropy", "Scan and Snap", real_text_entropy, trained_by="yzflow example real_text"),
    Entry("real_text_fate", "Scan and Snap", real_text_fate, trained_by="yzflow example real_text"),
)

# <!-- numbers
# typed: 95% (level of intervals and quantiles)
# -->
