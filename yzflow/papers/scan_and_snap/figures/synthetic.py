"""Figures of the SGD experiments of Scan and Snap (Tian, Wang, Chen, Du 2023, arXiv 2305.16380)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from dynamics import SequenceClasses, Trajectory
from dynamics.support import checks
from yzflow import intervals
from yzflow.figures.registry import Effort, Entry
from yzflow.figures.style import canvas, ordered_colours, styled
from yzflow.papers.scan_and_snap import synthetic
from yzflow.papers.scan_and_snap.figures import training
from yzflow.papers.scan_and_snap.settings import PAPER

Runs = Sequence[Sequence[Trajectory]]
_MOST_NEXT_TOKENS = 12
_SGD_RATES = tuple(eta_y for eta_y, _ in synthetic.SMALL_RATES)
_ROWS = (0, 2, 4, 6, 8, 10)  # iterations that Figs. 4 and 5 show beside the last


@styled
def figure4(runs: Runs) -> Figure:
    """Attention over training, for each next token and each pair of learning rates (Fig. 4).

    Above ⋮ the first steps, below it the same runs followed for longer. The paper trains Syn-Small by SGD until
    convergence, and finds that attention leaves the common tokens for the likely distinct ones, and that the larger
    eta_Y is faster and ends less sparse. Tokens that never come before a next token are blank.

    Parameters
    ----------
    runs : sequence of sequences of Trajectory
        For each column one from `scan_and_snap.synthetic.syn_small` with each of its first steps, and if wanted
        further ones of the same training that go on from where it ends.
    """
    return _attention_maps(runs)


@styled
def figure5(runs: Runs) -> Figure:
    """Attention over training at several learning rates, and which tokens it ends on (Fig. 5).

    The paper finds, for Adam on Syn-Small, that the learning rate decides which distinct tokens get most attention. The
    choice is soft where many of them keep more than 1/M. Tokens that never come before a next token are blank.

    Parameters
    ----------
    runs : sequence of sequences of Trajectory
        For each column one from `scan_and_snap.synthetic.syn_small`.
    """
    return _attention_maps(runs)


def _sgd_runs(
    effort: Effort,
    *,
    eta_y: Sequence[float] = _SGD_RATES,
    eta_z: Sequence[float] = (1.0,),
    optimizer: str = "sgd",
    steps: int | None = None,
) -> Runs:
    usual = synthetic.CONVERGED // 100 if effort.quick else synthetic.CONVERGED
    last = usual if steps is None else steps
    lengths = [(min(last, synthetic.STEPS), 1), *([(last, synthetic.STEPS)] if last > synthetic.STEPS else [])]
    return [
        tuple(
            synthetic.syn_small(**rates, optimizer=optimizer, steps=n, record_every=every, store=effort.store)
            for n, every in lengths
        )
        for rates in _rates(eta_y, eta_z)
    ]


def _adam_runs(
    effort: Effort,
    *,
    eta_y: Sequence[float] = synthetic.ADAM_RATES,
    eta_z: Sequence[float] | None = None,
    optimizer: str = "adam",
    steps: int = synthetic.STEPS,
) -> Runs:
    return [
        (synthetic.syn_small(**rates, optimizer=optimizer, steps=steps, store=effort.store),)
        for rates in _rates(eta_y, eta_z)
    ]


def _rates(eta_y: Sequence[float], eta_z: Sequence[float] | None) -> list[dict[str, Any]]:
    """All pairs of rates; equal rates if there is no eta_Z."""
    return [{"eta_y": one, "eta_z": other} for one in eta_y for other in ((one,) if eta_z is None else eta_z)]


def _checked(runs: Runs) -> Runs:
    """Runs that a map can show, each column of one training.

    Raises
    ------
    ValueError
        If they are others.
    """
    runs = checks.listed("runs", runs, "be a sequence of columns, each a sequence of trajectories")
    columns = [
        checks.listed("runs", parts, "be a sequence of columns, each a sequence of trajectories") for parts in runs
    ]
    if not columns or not all(columns):
        raise checks.reject("runs", "have one run or more in each column", "none")
    for parts in columns:
        for part in parts:
            checks.instance("runs", part, Trajectory)
            if "token" not in part.dataset["attention"].dims:
                raise checks.reject("runs", "record attention of all tokens", "that of entries")
            if not 1 <= part.dataset.sizes["next_token"] <= _MOST_NEXT_TOKENS:
                rule = f"have {_MOST_NEXT_TOKENS} next tokens at most, a row of maps each"
                raise checks.reject("runs", rule, part.dataset.sizes["next_token"])
        own = [_training_of(part) for part in parts]
        if any(one != own[0] for one in own):
            raise checks.reject("runs", "have in a column parts of one training", "runs with other parameters")
    starts = [parts[0].dataset["attention"].isel(time=0).shape for parts in columns]
    if len(set(starts)) > 1:
        raise checks.reject("runs", "be of the same data: draw others in a figure of their own", starts)
    return columns


def _training_of(run: Trajectory) -> dict[str, Any]:
    """The parameters of a run without its length and its recording."""
    return {name: value for name, value in run.parameters.items() if name not in ("steps", "record_every")}


def _rows(parts: Sequence[Trajectory]) -> tuple[xr.DataArray, int]:
    """Attention at the shown steps, (time, next_token, token), and the number of shown steps in the first part."""
    first, *further = (part.dataset["attention"] for part in parts)
    last = int(first["time"][-1])
    rows = [first.sel(time=[time for time in _ROWS if time < last] + [last])]
    for part in further:
        end = int(part["time"][-1])
        decades = [10**n for n in range(1, len(str(end))) if 10**n > last]
        rows.append(part.sel(time=sorted({*decades, end})))
        last = end
    return xr.concat(rows, "time"), rows[0].sizes["time"]


# The name of an empty row; the rows after it show a longer run at fewer steps.
_BREAK = "⋮"


def _attention_maps(runs: Runs) -> Figure:
    runs = _checked(runs)
    n_rows = runs[0][0].dataset.sizes["next_token"]
    figure = canvas(figsize=(max(3.5 * len(runs) + 0.9, 5.6), 2.4 * n_rows + 0.6))
    shown = [_rows(parts) for parts in runs]
    alike = all(np.array_equal(shares["time"], shown[0][0]["time"]) for shares, _ in shown)
    all_axes = figure.subplots(n_rows, len(runs), sharex=True, sharey=True if alike else "col", squeeze=False)
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
        if parts is runs[0] or not alike or training.step_of(parts[0]) != training.step_of(runs[0][0]):
            for axes in column:
                axes.set_ylabel(training.step_of(parts[0]))
    figure.colorbar(mesh, ax=all_axes, label=r"attention $c_{nl}$")
    figure.suptitle(f"{_on_what(runs)}:\nattention on {training.common_of(runs[0][0])}")
    return figure


def _on_what(runs: Runs) -> str:
    """Data and optimizers of the runs in words."""
    rules = dict.fromkeys(training.of_run(parts[0]) for parts in runs)
    return f"{training.data_of(runs[0][0])}, {' and '.join(rules)}"


def _own_shares(run: Trajectory, at: int) -> list[np.ndarray]:
    """Attention on the distinct tokens of each next token, in the order of rising attention at the start."""
    shares, own = (run.dataset[name].values for name in ("attention", "distinct"))
    return [
        row[at, mine][np.argsort(row[0, mine], kind="stable")]
        for row, mine in zip(shares.swapaxes(0, 1), own, strict=True)
    ]


def _settled(run: Trajectory) -> int:
    """First step after which attention stays near its end: within a tenth of its change over the run."""
    shares = run.dataset["attention"].values
    distance = np.abs(shares - shares[-1]).sum(axis=(1, 2))
    return int(run.dataset["time"].values[np.flatnonzero(distance > 0.1 * distance[0]).max() + 1])


def _entropy(run: Trajectory, at: int) -> float:
    return float(run.attention_entropy().isel(time=at).mean())


def _numbers(run: Trajectory, at: int) -> str:
    data = run.dataset
    common = 1 - float(np.mean([share.sum() for share in _own_shares(run, at)]))
    return f"{common:.3f} and {_entropy(run, at):.3f} at step {int(data['time'][at]):,}"


def _followed(runs: Runs) -> str:
    """Figure 4: where attention goes, how fast, and how it ends."""
    runs = _checked(runs)
    sentences = [f"Here: {_on_what(runs)}."]
    for parts in runs:
        first, last = parts[0], parts[-1]
        rates = first.parameters
        shares = [*((first, at) for at in (0, -1)), *((part, -1) for part in parts[1:])]
        likely = all((np.diff(share) > 0).all() for run, at in shares[1:] for share in _own_shares(run, at))
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


def _most_attended(runs: Runs) -> str:
    """Figure 5: the most attended token, and how many keep attention."""
    runs = _checked(runs)
    found = []
    for run, *_ in runs:
        shares, size = _own_shares(run, -1), int(run.dataset["multiplicity"].sum())
        above = [str((share > 1 / size).sum()) for share in shares]
        top = [str(share.argmax()) for share in shares]
        rates = run.parameters
        where = f"{rates['eta_y']:g}"
        if rates["eta_y"] != rates["eta_z"]:
            where = f"eta_Y = {rates['eta_y']:g}, eta_Z = {rates['eta_z']:g}"
        found.append(f"{' and '.join(top)} at {where} (with {' and '.join(above)} above 1/M)")
    counts = "-".join(map(str, sorted({len(share) for run, *_ in runs for share in _own_shares(run, -1)})))
    return (
        f"Here: {_on_what(runs)}. Of the {counts} distinct tokens of each next token, 0 the least "
        f"probable and the last the likeliest, most attention at the end has {'; '.join(found)}."
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
    trained, error = training.of_sweep(runs), intervals.of_mean(runs["entropy"])
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
    figure.suptitle(f"{trained}: mean of {runs.sizes['seed']} seeds and its 95% interval")
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
        f"{training.of_sweep(runs)}: here entropy falls from one eta_Z to the next in {int(sparser.sum())} of "
        f"{sparser.size} cases, and rises with the ratio {', '.join(steps)}. It is least at the ratios "
        f"{'; '.join(least)}."
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
    trained, shape = training.of_sweep(runs), (runs.sizes["n_queries"], runs.sizes[columns])
    figure = canvas(figsize=(max(2.35 * shape[1] + 1.4, 6.5), 2.0 * shape[0] + 0.8))
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
        f"{trained}:\nshare of distinct tokens above a threshold, mean of {runs.sizes['seed']} seeds, 95% interval"
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


def _medium(
    effort: Effort,
    *,
    n_queries: Sequence[int] | None = None,
    eta_z: Sequence[float] = synthetic.ETA_Z,
    ratios: Sequence[float] = synthetic.RATIOS,
    seeds: int | None = None,
    steps: int = synthetic.STEPS,
) -> xr.Dataset:
    if n_queries is None:
        n_queries = (1, 3) if effort.quick else synthetic.N_QUERIES
    if seeds is None:
        seeds = 2 if effort.quick else synthetic.SEEDS
    grid: dict[str, Any] = {"n_queries": n_queries, "eta_z": eta_z, "ratios": ratios, "seeds": seeds, "steps": steps}
    return synthetic.syn_medium(store=effort.store, progress=effort.progress, **grid)


FIGURES = (
    Entry("figure4", PAPER, figure4, _sgd_runs, number=4, claims=_followed),
    Entry("figure5", PAPER, figure5, _adam_runs, number=5, claims=_most_attended),
    Entry("figure6", PAPER, figure6, _medium, number=6, claims=_orders),
    Entry("figure11", PAPER, figure11, _medium, number=11, claims=_descents("ratio")),
    Entry("figure12", PAPER, figure12, _medium, number=12, claims=_descents("eta_z")),
)

# <!-- numbers
# typed: 95% (level of intervals and quantiles)
# typed: 1000 (unit of an axis)
# -->
