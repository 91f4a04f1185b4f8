"""Complete words beside prefixes: what violation and drift say of long prefixes, with and without the regulariser.

Wen, Li, Liu, Risteski (2023), arXiv 2312.01429, Fig. 3 and Appendix D.2. The runs are those of the sweep "dyck_words"
(`tasks`).
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from contextlib import nullcontext
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from dynamics.support import checks
from yzflow import intervals
from yzflow.figures.registry import Effort, Entry
from yzflow.figures.style import canvas, log_ticks, ordered_colours, styled
from yzflow.sweeps.store import Store
from yzflow.sweeps.sweep import sweep
from yzflow_studies.words_and_prefixes.ranks import Rank, rank_correlation
from yzflow_studies.words_and_prefixes.tasks import DYCK_WORDS
from yzflow_studies.words_and_prefixes.words import ARCHITECTURES, KINDS, LONG

SEEDS = range(5, 20)  # what is published: results of seeds 0 to 4 were known before the number of seeds was set
WEIGHTS = {"minimal": (0.0, 1.0, 10.0), "standard": (0.0, 1.0)}  # of (22); those that have been run


def trained(
    architecture: str = "minimal",
    *,
    kinds: Sequence[str] = KINDS,
    contrast_weight: Sequence[float] | None = None,
    seeds: int | Sequence[int] = SEEDS,
    store: str | os.PathLike | Store | None = None,
    threads: int | None = None,
    progress: bool = False,
    **settings: Any,
) -> xr.Dataset:
    """Train on words and on prefixes, with and without (22), and measure what predicts long prefixes.

    This is the sweep "dyck_words": what ``store`` holds is not run again.

    Parameters
    ----------
    architecture : "minimal" or "standard"
        The layer Y/Z/V over the states of a minimal first layer, or a 2-layer transformer (yzflow-deep).
    kinds : sequence of "word" or "prefix"
    contrast_weight : sequence of float, optional
        Weights of (22). Default: those of `WEIGHTS`.
    seeds : int or sequence of int
        Each decides start and batches. Training and test data are the same for all; another ``data_seed`` draws other
        training data. Default: `SEEDS`.
    store, threads, progress
        As in `yzflow.sweep`.
    **settings
        Other keys of the sweep, one value each: "positions", "targets", "embedding", "scale", "eta", "steps",
        "batch_size",
        "data_seed", ..

    Returns
    -------
    xarray.Dataset
        Over (kind, contrast_weight, seed): ``accuracy(length, query)``, ``pair_effect``, ``behind_mean_word``, ``loss``
        in nats; for "minimal" also ``predicted(length, query)``, at the mean prefix, ``violation`` and ``residual``.
    """
    checks.one_of("architecture", architecture, ARCHITECTURES)
    weights = WEIGHTS[architecture] if contrast_weight is None else contrast_weight
    given = {"architecture": [architecture]} | {name: [value] for name, value in settings.items()}
    grid = {"kind": list(kinds), "contrast_weight": list(weights), **given}
    with TemporaryDirectory(prefix="yzflow-") if store is None else nullcontext(store) as kept:
        runs = sweep(DYCK_WORDS, grid, store=kept, seeds=seeds, workers=threads, progress=progress)
    return runs.isel(dict.fromkeys(given, 0), drop=True).assign_attrs(architecture=architecture)


def interval(values: xr.DataArray, *, level: float = 0.95) -> tuple[float, float]:
    """Mean over seeds, and half of its confidence interval (Student's t)."""
    return float(values.mean("seed")), float(intervals.of_mean(values, level=level))


def long_accuracy(runs: xr.Dataset) -> xr.DataArray:
    """Share of closing queries of prefixes of 400 to 500 brackets that are answered right."""
    return runs["accuracy"].sel(length=LONG, query="close", drop=True)


def imbalance(runs: xr.Dataset) -> xr.DataArray:
    """The violation of runs behind a minimal first layer, and `pair_effect` of others, which have none."""
    return runs["violation"] if "violation" in runs else runs["pair_effect"]


def from_drift(runs: xr.Dataset) -> xr.DataArray:
    """Accuracy of the decoder at the mean long prefix, or what stands in for that, `behind_mean_word`."""
    return (
        runs["predicted"].sel(length=LONG, query="close", drop=True)
        if "predicted" in runs
        else runs["behind_mean_word"]
    )


class SummarisedRuns(NamedTuple):
    """The runs of all seeds with one kind of sequences and one weight of (22), summarised."""

    kind: str
    weight: float
    short: tuple[float, float]  # accuracy at closing queries below 28, mean and half of its 95% interval
    long: tuple[float, float]
    imbalance: tuple[float, float]
    gain: tuple[float, float]  # of long accuracy against weight 0, the same seeds
    violation_rank: Rank  # of imbalance and long accuracy
    drift_rank: Rank
    drift_error: tuple[float, float]  # |predicted - measured|, mean and largest


def summary(runs: xr.Dataset) -> list[SummarisedRuns]:
    """The numbers of each kind and weight of `trained`; intervals are over seeds."""
    measured, violation, drift = long_accuracy(runs), imbalance(runs), from_drift(runs)
    short = runs["accuracy"].sel(length="below 28", query="close", drop=True)
    cells = []
    for kind, weight in itertools.product(runs["kind"].values, runs["contrast_weight"].values):
        at = {"kind": kind, "contrast_weight": weight}
        error = np.abs(drift - measured).sel(at)
        against = measured.sel(at, drop=True) - measured.sel(kind=kind).isel(contrast_weight=0, drop=True)
        cells.append(
            SummarisedRuns(
                str(kind),
                float(weight),
                interval(short.sel(at)),
                interval(measured.sel(at)),
                interval(violation.sel(at)),
                interval(against),
                rank_correlation(violation.sel(at), measured.sel(at)),
                rank_correlation(drift.sel(at), measured.sel(at)),
                (float(error.mean()), float(error.max())),
            )
        )
    return cells


def pooled_rank(runs: xr.Dataset, kind: str) -> Rank:
    """Rank correlation of imbalance and long accuracy over seeds and weights together, as Fig. 3 shows them.

    Its interval takes runs for independent, but those of one seed share their start.
    """
    return rank_correlation(imbalance(runs).sel(kind=kind), long_accuracy(runs).sel(kind=kind))


# The figures


_TRAINED_ON = {"word": "complete words", "prefix": "prefixes"}
_ARCHITECTURE = {"minimal": "Layer behind a minimal first layer", "standard": "Standard 2-layer transformer"}
_QUICK: dict[str, dict[str, Any]] = {
    "minimal": {"seeds": 4, "steps": 300, "n_train": 4000, "n_test": 1000},
    "standard": {"seeds": 4, "steps": 30, "n_closing": 20},
}


def _runs(architecture: str, effort: Effort, **settings: Any) -> xr.Dataset:
    size = _QUICK[architecture] if effort.quick else {}
    return trained(architecture, store=effort.store, progress=effort.progress, **settings, **size)


def _draw(runs: xr.Dataset, labels: tuple[str, str]) -> Figure:
    kinds, weights = [str(kind) for kind in runs["kind"].values], runs["contrast_weight"].values
    figure = canvas(figsize=(4.3 * len(kinds) + 1.8, 7.6))
    panels = figure.subplots(2, len(kinds), sharey=True, sharex="row", squeeze=False)
    measured = long_accuracy(runs)
    ranks = {(cell.kind, cell.weight): (cell.violation_rank, cell.drift_rank) for cell in summary(runs)}
    rows = (imbalance(runs), from_drift(runs))
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
        From `trained`.
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
        From `trained` with the architecture "standard".
    """
    return _draw(runs, ("effect of a matched pair", "accuracy behind the mean word"))


def claims(runs: xr.Dataset) -> str:
    """Sentences on the paper's claims on Fig. 3 and App. D.2 in these runs, each with its interval."""
    cells = summary(runs)
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
        sentence += f" Over all weights together it is {pooled_rank(runs, kind)}."
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
        "Bounded Dyck",
        dyck_words,
        lambda effort: _runs("minimal", effort, embedding="one-hot"),
        number=(3, 10),
        claims=claims,
    ),
    Entry("deep_dyck_words", "Bounded Dyck", deep_dyck_words, lambda effort: _runs("standard", effort), claims=claims),
)

# <!-- numbers
# typed: 0.1 (scale of the runs that the figure makes)
# typed: 28 400 500 (range of lengths of the test prefixes, LENGTHS of yzflow_bounded_dyck.training)
# typed: 95% (level of intervals and quantiles)
# -->
