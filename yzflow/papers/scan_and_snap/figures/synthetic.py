"""Figures of the SGD experiments of Scan and Snap (Tian, Wang, Chen, Du 2023, arXiv 2305.16380)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from dynamics import SequenceClasses, Trajectory
from yzflow import intervals
from yzflow.figures.registry import Effort, Entry
from yzflow.figures.style import canvas, ordered_colours, styled
from yzflow.papers.scan_and_snap import synthetic
from yzflow.papers.scan_and_snap.settings import PAPER

_ROWS = (0, 2, 4, 6, 8, 10)  # iterations that Figs. 4 and 5 show beside the last


@styled
def figure4(runs: Sequence[Sequence[Trajectory]]) -> Figure:
    """Attention on Syn-Small over training by SGD, eta_Y = 1 and 10 at eta_Z = 1 (Fig. 4).

    Above ⋮ the first steps, below it the same runs followed until attention hardly moves. The paper trains until
    convergence, and finds that attention leaves the common tokens for the likely distinct ones, and that the larger
    eta_Y is faster and ends less sparse.

    Parameters
    ----------
    runs : sequence of sequences of Trajectory
        For each column one from `scan_and_snap.synthetic.syn_small` with each of its first steps, and if wanted
        further ones of the same training that go on from where it ends.
    """
    return _attention_maps(runs, "Syn-Small, SGD with momentum 0.9: attention on common (0-9) and distinct tokens")


@styled
def figure5(runs: Sequence[Sequence[Trajectory]]) -> Figure:
    """Attention on Syn-Small over training by Adam, eta_Y = eta_Z in {0.1, 0.5, 1} (Fig. 5).

    The paper finds that the learning rate decides which distinct tokens get most attention. The choice is soft where
    many of the ten keep more than 1/M. Tokens that never come before a next token are blank.

    Parameters
    ----------
    runs : sequence of sequences of Trajectory
        For each column one from `scan_and_snap.synthetic.syn_small`.
    """
    return _attention_maps(runs, "Syn-Small, Adam: attention on common (0-9) and distinct tokens, by learning rate")


def _sgd_runs(effort: Effort) -> list[tuple[Trajectory, ...]]:
    last = synthetic.CONVERGED // 100 if effort.quick else synthetic.CONVERGED
    return [
        tuple(
            synthetic.syn_small(eta_y=eta_y, eta_z=eta_z, steps=steps, record_every=every, store=effort.store)
            for steps, every in ((synthetic.STEPS, 1), (last, synthetic.STEPS))
        )
        for eta_y, eta_z in synthetic.SMALL_RATES
    ]


def _adam_runs(effort: Effort) -> list[tuple[Trajectory, ...]]:
    return [
        (synthetic.syn_small(eta_y=rate, eta_z=rate, optimizer="adam", store=effort.store),)
        for rate in synthetic.ADAM_RATES
    ]


def _rows(parts: Sequence[Trajectory]) -> tuple[xr.DataArray, int]:
    """Attention at the steps that are shown, (time, next_token, token), and how many of them are of the first part."""
    first, *further = (part.dataset["attention"] for part in parts)
    last = int(first["time"][-1])
    rows = [first.sel(time=[time for time in _ROWS if time < last] + [last])]
    for part in further:
        end = int(part["time"][-1])
        decades = [10**n for n in range(1, len(str(end))) if 10**n > last]
        rows.append(part.sel(time=sorted({*decades, end})))
        last = end
    return xr.concat(rows, "time"), rows[0].sizes["time"]


# The name of an empty row, after which the rows are of a run that is shown at fewer steps.
_BREAK = "⋮"


def _attention_maps(runs: Sequence[Sequence[Trajectory]], title: str) -> Figure:
    figure = canvas(figsize=(3.5 * len(runs) + 0.9, 5.4))
    all_axes = figure.subplots(2, len(runs), sharex=True, sharey=True, squeeze=False)
    shown = [_rows(parts) for parts in runs]
    top = max(float(shares.max()) for shares, _ in shown)
    for column, parts, (shares, first) in zip(all_axes.T, runs, shown, strict=True):
        times = [f"{int(time):,}" for time in shares["time"].values]
        if broken := first < len(times):
            times.insert(first, _BREAK)
        given = parts[0].parameters
        rates = ", ".join(rf"$\eta_{name[-1].upper()} = {given[name]:g}$" for name in ("eta_y", "eta_z"))
        for n, axes in enumerate(column):
            occurs = parts[0].dataset["attention"].isel(time=0, next_token=n) > 0
            drawn = shares.isel(next_token=n).where(occurs).values  # blank, and so told from attention near zero
            if broken:
                drawn = np.insert(drawn, first, np.nan, axis=0)
            mesh = axes.imshow(drawn, aspect="auto", cmap="cividis", vmin=0, vmax=top, interpolation="nearest")
            axes.set_yticks(range(len(times)), times)
            axes.grid(False)
            axes.set_title(f"{rates}: next token {n}")
        column[-1].set_xlabel("contextual token")
    kinds = {parts[0].parameters["optimizer"] for parts in runs}
    for axes in all_axes[:, 0]:
        axes.set_ylabel("step of Adam" if kinds == {"adam"} else "SGD step")
    figure.colorbar(mesh, ax=all_axes, label=r"attention $c_{nl}$")
    figure.suptitle(title)
    return figure


def _own_shares(run: Trajectory, at: int) -> np.ndarray:
    """Attention on the ten distinct tokens of each next token, rising in probability: (next tokens, 10)."""
    shares, own = (run.dataset[name] for name in ("attention", "distinct"))
    return np.stack([shares.values[at, n, own.values[n]] for n in range(own.shape[0])])


def _settled(run: Trajectory) -> int:
    """The step from which attention stays within a tenth of its change over the run of where it ends."""
    shares = run.dataset["attention"].values
    distance = np.abs(shares - shares[-1]).sum(axis=(1, 2))
    return int(run.dataset["time"].values[np.flatnonzero(distance > 0.1 * distance[0]).max() + 1])


def _entropy(run: Trajectory, at: int) -> float:
    return float(run.attention_entropy().isel(time=at).mean())


def _numbers(run: Trajectory, at: int) -> str:
    data = run.dataset
    common = 1 - float(np.mean([share.sum() for share in _own_shares(run, at)]))
    return f"{common:.3f} and {_entropy(run, at):.3f} at step {int(data['time'][at]):,}"


def _followed(runs: Sequence[Sequence[Trajectory]]) -> str:
    """Figure 4: where attention goes, how fast, and how it ends."""
    sentences = []
    for parts in runs:
        first, last = parts[0], parts[-1]
        rates = first.parameters
        shares = [*((first, at) for at in (0, -1)), *((part, -1) for part in parts[1:])]
        likely = all((np.diff(_own_shares(run, at)) > 0).all() for run, at in shares[1:])
        moved = np.abs(
            last.dataset["attention"].values[-1] - last.dataset["attention"].values[last.dataset.sizes["time"] // 2]
        )
        sentences.append(
            f"eta_Y = {rates['eta_y']:g}, eta_Z = {rates['eta_z']:g}: attention on common tokens, and entropy on "
            f"distinct ones in nats, are {', '.join(_numbers(*one) for one in shares)}; attention on distinct tokens "
            f"is {'' if likely else 'not '}in the order of their probability; nine tenths of the change by step "
            f"{int(first.dataset['time'][-1])} are done by step {_settled(first)}; in the second half of what is shown "
            f"attention moves by {float(moved.sum(axis=1).max()) / 2:.2g} in total variation."
        )
    if len(runs) > 1:
        slow, fast = (sorted(runs, key=lambda parts: parts[0].parameters["eta_y"])[i] for i in (0, -1))
        sooner = _settled(fast[0]) < _settled(slow[0])
        denser = _entropy(fast[-1], -1) > _entropy(slow[-1], -1)
        sentences.append(
            f"So the larger eta_Y is {'' if sooner else 'not '}the faster one, and ends {'less' if denser else 'more'} "
            "sparse."
        )
    return " ".join(sentences)


def _most_attended(runs: Sequence[Sequence[Trajectory]]) -> str:
    """Figure 5: the most attended token, and how many keep attention."""
    found = []
    for run, *_ in runs:
        shares = _own_shares(run, -1)
        above = (shares > 1 / SequenceClasses.syn_small().vocab_size).sum(axis=1)
        top = " and ".join(map(str, shares.argmax(axis=1)))
        found.append(f"{top} at {run.parameters['eta_y']:g} (with {' and '.join(map(str, above))} above 1/M)")
    return (
        "Of the ten distinct tokens of each next token, 0 the least probable and 9 the likeliest, most attention at "
        f"the end has {'; '.join(found)}."
    )


@styled
def figure6(runs: xr.Dataset) -> Figure:
    """Entropy of attention on distinct tokens against eta_Y / eta_Z on Syn-Medium, mean and 95% interval (Fig. 6).

    A panel for each number of query tokens, with two next tokens per query. The paper finds sparser attention at larger
    eta_Z, and denser attention as eta_Y grows at a fixed eta_Z beyond a threshold.

    Parameters
    ----------
    runs : xarray.Dataset
        From `scan_and_snap.synthetic.syn_medium`.
    """
    figure = canvas(figsize=(11, 3.6))
    panels = figure.subplots(1, runs.sizes["n_queries"], sharey=True, squeeze=False)[0]
    error = intervals.of_mean(runs["entropy"])
    for axes, n_queries in zip(panels, runs["n_queries"].values, strict=True):
        for eta_z, colour in zip(runs["eta_z"].values, ordered_colours(runs.sizes["eta_z"]), strict=True):
            at = {"n_queries": n_queries, "eta_z": eta_z}
            mean = runs["entropy"].sel(at).mean("seed")
            axes.errorbar(
                runs["ratio"], mean, error.sel(at), color=colour, marker="o", markersize=4, capsize=2.5,
                label=rf"$\eta_Z = {eta_z:g}$",
            )  # fmt: skip
        axes.set(title=_queries(n_queries), xlabel=r"$\eta_Y / \eta_Z$", xscale="log")
        axes.set_xticks(runs["ratio"].values, [f"{ratio:g}" for ratio in runs["ratio"].values])
        axes.minorticks_off()
    panels[0].set_ylabel("entropy of attention on\ndistinct tokens (nats)")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right center")
    figure.suptitle(
        f"Syn-Medium after {synthetic.STEPS} SGD steps: mean of {runs.sizes['seed']} seeds and its 95% interval"
    )
    return figure


def _queries(n_queries: int) -> str:
    return f"{n_queries} quer{'y' if n_queries == 1 else 'ies'}"


def _orders(runs: xr.Dataset) -> str:
    """In how many pairs of neighbouring rates the mean entropy has the paper's order, and where it is least."""
    mean = runs["entropy"].mean("seed")
    sparser, denser = (synthetic.ordered(mean, by, rising=by == "ratio") for by in ("eta_z", "ratio"))
    ratios = runs["ratio"].values
    steps = [
        f"from {low:g} to {high:g} in {int(cell.sum())} of {cell.size}"
        for low, high, cell in zip(ratios, ratios[1:], denser.transpose("ratio", ...), strict=False)
    ]
    least = [
        f"{', '.join(f'{ratio:g}' for ratio in np.unique(panel.idxmin('ratio')))} with {_queries(int(number))}"
        for number, panel in mean.groupby("n_queries", squeeze=False)
    ]
    return (
        f"Here entropy falls from one eta_Z to the next in {int(sparser.sum())} of {sparser.size} cases, and rises "
        f"with the ratio {', '.join(steps)}. It is least at the ratios {'; '.join(least)}."
    )


@styled
def figure11(runs: xr.Dataset) -> Figure:
    """Recall of distinct tokens against a threshold around 1/M (dotted), by eta_Y / eta_Z (Fig. 11).

    Rows: number of query tokens; columns: eta_Z; thresholds are the paper's. Recall is the mean share of a next token's
    distinct tokens whose softmax in their query's row of Z, over all M tokens, passes the threshold. The paper: a
    curve that falls more slowly is sparser attention, and smaller eta_Y / eta_Z is sparser.

    Parameters
    ----------
    runs : xarray.Dataset
        From `scan_and_snap.synthetic.syn_medium`.
    """
    return _recall_panels(runs, columns="eta_z", curves="ratio")


@styled
def figure12(runs: xr.Dataset) -> Figure:
    """Recall of distinct tokens against a threshold around 1/M (dotted), by eta_Z (Fig. 12).

    Rows: number of query tokens; columns: eta_Y / eta_Z; recall and thresholds as in Fig. 11. The paper: a curve that
    falls more slowly is sparser attention, and larger eta_Z is sparser.

    Parameters
    ----------
    runs : xarray.Dataset
        From `scan_and_snap.synthetic.syn_medium`.
    """
    return _recall_panels(runs, columns="ratio", curves="eta_z")


_SYMBOLS = {"eta_z": r"\eta_Z", "ratio": r"\eta_Y/\eta_Z"}


def _recall_panels(runs: xr.Dataset, *, columns: str, curves: str) -> Figure:
    shape = (runs.sizes["n_queries"], runs.sizes[columns])
    figure = canvas(figsize=(2.35 * shape[1] + 1.4, 2.0 * shape[0] + 0.8))
    panels = figure.subplots(*shape, sharex="row", sharey="row", squeeze=False)
    for row, n_queries in zip(panels, runs["n_queries"].values, strict=True):
        recall = synthetic.window(runs, int(n_queries))["softmax_recall"]
        mean, error = recall.mean("seed"), intervals.of_mean(recall)
        thousandths = 1e3 * mean["threshold"].values
        vocab_size = SequenceClasses.syn_medium(int(n_queries)).vocab_size
        for axes, column in zip(row, runs[columns].values, strict=True):
            for value, colour in zip(runs[curves].values, ordered_colours(runs.sizes[curves]), strict=True):
                at = {columns: column, curves: value}
                centre, width = mean.sel(at), error.sel(at)
                axes.plot(thousandths, centre, color=colour, label=rf"${_SYMBOLS[curves]} = {value:g}$")
                band = (centre - width, centre + width)
                axes.fill_between(thousandths, *band, color=colour, alpha=0.2, linewidth=0)
            axes.axvline(1e3 / vocab_size, color="0.4", linestyle=":", label="1/M")
            axes.set_xlim(thousandths[0], thousandths[-1])
            axes.locator_params(axis="x", nbins=5)
            if axes in panels[0]:
                axes.set_title(rf"${_SYMBOLS[columns]} = {column:g}$")
        row[0].set_ylabel(f"{_queries(n_queries)}\nrecall")
    for axes in panels[-1]:
        axes.set_xlabel("1000 x threshold")
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside right center")
    figure.suptitle(
        f"Syn-Medium: share of distinct tokens above a threshold, mean of {runs.sizes['seed']} seeds, 95% interval"
    )
    return figure


def _descents(curves: str) -> Callable[[xr.Dataset], str]:
    """In how many panels the curves fall in the paper's order, by how far they fall over the window."""
    sign, words = (1, "further the larger the ratio") if curves == "ratio" else (-1, "less far the larger eta_Z")

    def claims(runs: xr.Dataset) -> str:
        falls = [synthetic.descent(runs, int(number)) for number in runs["n_queries"].values]
        steps = sign * xr.concat(falls, "n_queries").diff(curves)  # between neighbouring curves, seed by seed
        mean, panels = steps.mean("seed"), (steps.mean("seed") > 0).all(curves)
        clear = mean > intervals.of_mean(steps)
        return (
            f"Here the curves fall {words} over the window of thresholds in {int(panels.sum())} of {panels.size} "
            f"panels; of the steps between neighbouring curves {int((mean > 0).sum())} of {mean.size} have this sign, "
            f"and {int(clear.sum())} have it throughout their 95% intervals (Student's t, over seeds)."
        )

    return claims


def _medium(effort: Effort, **options: Any) -> xr.Dataset:
    size: dict[str, Any] = {"n_queries": (1, 3), "seeds": 2} if effort.quick else {}
    return synthetic.syn_medium(store=effort.store, progress=effort.progress, **options, **size)


FIGURES = (
    Entry("figure4", PAPER, figure4, _sgd_runs, number=4, claims=_followed),
    Entry("figure5", PAPER, figure5, _adam_runs, number=5, claims=_most_attended),
    Entry("figure6", PAPER, figure6, _medium, number=6, claims=_orders),
    Entry("figure11", PAPER, figure11, _medium, number=11, claims=_descents("ratio")),
    Entry("figure12", PAPER, figure12, _medium, number=12, claims=_descents("eta_z")),
)
