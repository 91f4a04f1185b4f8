"""Figures of training on complete words beside prefixes (Wen, Li, Liu, Risteski 2023, Figs. 3 and 10)."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from yzflow.figures.registry import Effort, Entry
from yzflow.figures.style import canvas, log_ticks, ordered_colours, styled
from yzflow.papers.bounded_dyck import words
from yzflow.papers.bounded_dyck.settings import PAPER

_TRAINED_ON = {"word": "complete words", "prefix": "prefixes"}
_ARCHITECTURE = {"minimal": "Layer behind a minimal first layer", "standard": "Standard 2-layer transformer"}
_QUICK: dict[str, dict[str, Any]] = {
    "minimal": {"seeds": 4, "steps": 300, "n_train": 4000, "n_test": 1000},
    "standard": {"seeds": 4, "steps": 30, "n_closing": 20},
}


def _runs(architecture: str, effort: Effort, **settings: Any) -> xr.Dataset:
    size = _QUICK[architecture] if effort.quick else {}
    return words.trained(architecture, store=effort.store, progress=effort.progress, **settings, **size)


def _draw(runs: xr.Dataset, labels: tuple[str, str]) -> Figure:
    kinds, weights = [str(kind) for kind in runs["kind"].values], runs["contrast_weight"].values
    figure = canvas(figsize=(4.3 * len(kinds) + 1.8, 7.6))
    panels = figure.subplots(2, len(kinds), sharey=True, sharex="row", squeeze=False)
    measured = words.long_accuracy(runs)
    ranks = {(cell.kind, cell.weight): (cell.violation_rank, cell.drift_rank) for cell in words.summary(runs)}
    rows = (words.imbalance(runs), words.from_drift(runs))
    for row, (axes_row, values) in enumerate(zip(panels, rows, strict=True)):
        for axes, kind in zip(axes_row, kinds, strict=True):
            if row == 1:
                axes.axline((0.5, 0.5), slope=1, color="0.6", linewidth=1, zorder=0)
            lines = []
            for weight, colour in zip(weights, ordered_colours(len(weights)), strict=True):
                at = {"kind": kind, "contrast_weight": weight}
                axes.scatter(
                    values.sel(at), measured.sel(at), color=colour, s=26, alpha=0.8, linewidths=0,
                    label=f"weight {weight:g}",
                )  # fmt: skip
                lines.append(f"weight {weight:g}: {ranks[kind, float(weight)][row]}")
            axes.set_title("\n".join([f"trained on {_TRAINED_ON[kind]}", *lines]), fontsize=9)
            axes.set_xlabel(labels[row])
    if (rows[0] > 0).all():
        panels[0, 0].set_xscale("log")
        log_ticks(panels[0, 0].xaxis)
    for axes_row in panels:
        axes_row[0].set_ylabel("accuracy at lengths 400-500,\nclosing queries")
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside right center", title="regulariser (22)")
    figure.suptitle(
        f"{_ARCHITECTURE[runs.attrs['architecture']]}, {runs.sizes['seed']} seeds;\n"
        "above each panel: rank correlation [95% interval over seeds]"
    )
    return figure


@styled
def dyck_words(runs: xr.Dataset) -> Figure:
    """Accuracy on long prefixes against violation and against that at the mean prefix, by what was trained on.

    Left: complete words, at all positions, as for the paper's Fig. 3. Right: prefixes, at all positions, as in its
    App. D.2. A point is a layer Y/Z/V with embedding (19), trained by Adam from a start of scale 0.1 on the brackets
    that were drawn; colours are weights of the regulariser (22). Below: the accuracy of the layer's own decoder at the
    mean long prefix, whose matched pairs are replaced by their mean number; grey: equal to the measured one. The paper
    claims that violation and long accuracy are negatively correlated for words and not for prefixes, and that (22)
    helps in both. Intervals are over seeds, which all share their data: they leave out the choice of training and test
    sequences.

    Parameters
    ----------
    runs : xarray.Dataset
        From `yzflow.papers.bounded_dyck.words.trained`.
    """
    return _draw(runs, ("balance violation", "decoder's accuracy at the mean prefix"))


@styled
def deep_dyck_words(runs: xr.Dataset) -> Figure:
    """The same of standard 2-layer transformers without positions, trained on complete words and on prefixes.

    Violation and drift need a minimal first layer. In their place stand, measured by answers: how far one matched pair
    moves the closing logits, in units of how far another stack does; and the accuracy behind one fixed word that has
    the mean numbers of matched pairs of a long prefix. Intervals are over seeds, which all share their data.

    Parameters
    ----------
    runs : xarray.Dataset
        From `yzflow.papers.bounded_dyck.words.trained` with the architecture "standard".
    """
    return _draw(runs, ("effect of a matched pair", "accuracy behind the mean word"))


def claims(runs: xr.Dataset) -> str:
    """What the runs show of the paper's claims on Fig. 3 and App. D.2, each with its interval."""
    cells = words.summary(runs)
    exact = "violation" in runs
    name = "violation" if exact else "the effect of a pair"
    prediction = "decoder's accuracy at the mean prefix" if exact else "accuracy behind the mean word"
    said = []
    for kind in map(str, runs["kind"].values):
        own = [cell for cell in cells if cell.kind == kind]
        ranks = ", ".join(f"{cell.violation_rank} at weight {cell.weight:g}" for cell in own)
        sentence = f"Trained on {_TRAINED_ON[kind]}, the rank correlation of {name} and long accuracy is {ranks}: "
        negative = [f"{cell.weight:g}" for cell in own if cell.violation_rank.sign < 0]
        positive = [f"{cell.weight:g}" for cell in own if cell.violation_rank.sign > 0]
        parts = [f"negative at weight {' and '.join(negative)}"] if negative else []
        parts += [f"positive at weight {' and '.join(positive)}"] if positive else []
        sentence += (", ".join(parts) if parts else "no interval excludes zero") + "."
        sentence += f" Over all weights together it is {words.pooled_rank(runs, kind)}."
        for cell in own[1:]:
            mean, half = cell.gain
            verdict = "helps" if mean - half > 0 else "harms" if mean + half < 0 else "neither helps nor harms for sure"
            sentence += f" The regulariser at weight {cell.weight:g} {verdict}: {mean:+.3f} +- {half:.3f}."
        errors = [cell.drift_error for cell in own]
        sentence += f" The {prediction} is off by {np.mean([one for one, _ in errors]):.3f} on average and "
        sentence += f"{max(most for _, most in errors):.3f} at most."
        said.append(sentence)
    return " ".join(said)


FIGURES = (
    Entry(
        "dyck_words",
        PAPER,
        dyck_words,
        lambda effort: _runs("minimal", effort, embedding="one-hot"),
        claims=claims,
    ),
    Entry("deep_dyck_words", PAPER, deep_dyck_words, lambda effort: _runs("standard", effort), claims=claims),
)
