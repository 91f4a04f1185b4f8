"""How often the error bars that we publish hold the truth: a 95% interval of few seeds should in 95% of all cases.

A few hundred runs of a small problem, made once, are a population whose mean is known exactly; replicates are seeds
drawn from it with replacement. ``python -m benchmarks --only error_bars --out docs/benchmarks``; runs are kept in a
folder below the system's for temporary files, so that an interrupted call goes on.
Needs the studies: pip install -r studies/requirements.txt.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.stats
import xarray as xr
from yzflow_studies.dyck_embeddings.study import variation
from yzflow_studies.words_and_prefixes.ranks import rank_limits

from benchmarks import Study
from yzflow import intervals
from yzflow.sweeps.sweep import sweep

REPLICATES = 2000
NUMBERS = (3, 4, 5, 8, 10, 20)  # of seeds; ours are 3 to 20
_DYCK = {"embedding": ["none"], "steps": [200], "n_train": [4000], "n_test": [200]}


@dataclass(frozen=True)
class Coverage:
    """Shares of the replicates whose interval holds the truth."""

    method: str
    quantity: str
    skewness: float  # of one run's value
    n: int
    one: float  # standard error to each side
    two: float  # 1.96 of them
    student: float  # Student's t with n - 1 degrees of freedom

    @property
    def error(self) -> float:
        """Binomial standard error of ``student``."""
        return float(np.sqrt(self.student * (1 - self.student) / REPLICATES))


def populations(store: Path | None = None, *, runs: tuple[int, int, int] = (1000, 600, 300)) -> dict[str, np.ndarray]:
    """Values of runs that differ by their seed alone; attention maps have two axes more."""
    store = Path(tempfile.gettempdir()) / "yzflow-error-bars" if store is None else store
    found: dict[str, np.ndarray] = {}
    rates = {"n_queries": [1], "eta_z": [0.5, 3.0], "ratio": [1.0, 10.0], "steps": [100]}
    medium = sweep("syn_medium", rates, store=store, seeds=runs[0], progress=False).isel(n_queries=0, steps=0)
    for eta_z in medium["eta_z"].values:
        for ratio in medium["ratio"].values:
            name = f"entropy, Syn-Medium, eta_Z = {eta_z:g}, ratio {ratio:g}"
            found[name] = medium["entropy"].sel(eta_z=eta_z, ratio=ratio).values
    for scale, number in zip((0.1, 1.0), runs[1:], strict=True):
        dyck = sweep("dyck", _DYCK | {"scale": [scale]}, store=store, seeds=number, progress=False).squeeze()
        at = f"Dyck, Z of scale {scale:g}"
        found[f"long accuracy, {at}"] = dyck["accuracy"].sel(length="400-500", query="close").values
        found[f"violation, {at}"] = dyck["violation"].values
        found[f"attention before training, {at}"] = dyck["start_attention"].values
        found[f"attention after 200 steps, {at}"] = dyck["attention"].values
    return found


def of_means(quantity: str, values: np.ndarray, n: int, rng: np.random.Generator) -> Coverage:
    """Coverage of the mean over n seeds."""
    some = xr.DataArray(values[rng.integers(0, values.size, (REPLICATES, n))], dims=("replicate", "seed"))
    away = np.abs(some.mean("seed") - values.mean())
    return _row("mean", quantity, float(scipy.stats.skew(values)), n, away, intervals.of_mean(some))


def of_variation(quantity: str, maps: np.ndarray, n: int, rng: np.random.Generator) -> Coverage:
    """Coverage of attention variation with its jackknife error; true is the mean over all ordered pairs of runs."""
    flat = maps.reshape(len(maps), -1)
    centred = flat - flat.mean(axis=0)
    apart = (centred**2).sum(axis=1)
    # Variation is a sum over directions: the few in which seeds part are enough.
    u, s, _ = np.linalg.svd(centred, full_matrices=False)
    few = (u * s)[:, : max(1, int((s > 1e-6 * s[0]).sum()))]
    some = few[rng.integers(0, len(maps), (REPLICATES, n))]
    array = xr.DataArray(some[:, :, None, :], dims=("replicate", "seed", "row", "position"))
    found = variation(array)
    away = np.abs(found["mean"] - 2 * apart.mean())
    return _row("jackknife", quantity, float(scipy.stats.skew(apart)), n, away, found["half"])


def _row(method: str, quantity: str, skewness: float, n: int, away: xr.DataArray, student: xr.DataArray) -> Coverage:
    one = student / intervals.factor(n)
    shares = [float((away <= half).mean()) for half in (one, 1.96 * one, student)]
    return Coverage(method, quantity.replace("attention ", "variation "), skewness, n, *shares)


def of_ranks(n: int, correlation: float, rng: np.random.Generator) -> float:
    """Share of the intervals about Spearman's r of n pairs of normal numbers that hold 6/pi asin(rho / 2)."""
    x, y = rng.normal(size=(2, REPLICATES, n))
    y = correlation * x + np.sqrt(1 - correlation**2) * y
    x, y = (scipy.stats.rankdata(part, axis=1) for part in (x, y))
    x, y = (part - part.mean(axis=1, keepdims=True) for part in (x, y))
    r = (x * y).sum(axis=1) / np.sqrt((x**2).sum(axis=1) * (y**2).sum(axis=1))
    low, high = rank_limits(r, n)
    truth = 6 / np.pi * np.arcsin(correlation / 2)
    return float(((low <= truth) & (truth <= high)).mean())


def rows(found: dict[str, np.ndarray], *, seed: int = 0) -> Iterator[Coverage]:
    """Every quantity at every number of seeds."""
    rng = np.random.default_rng(seed)
    for n in NUMBERS:
        yield replace(of_means("normal numbers", rng.normal(size=100_000), n, rng), skewness=0.0)
    for name, values in found.items():
        for n in NUMBERS:
            if values.ndim == 1:
                yield of_means(name, values, n, rng)
            elif n > 3:
                yield of_variation(name, values, n, rng)


def markdown(data: Mapping[str, Any]) -> str:
    """A line a quantity, a column a number of seeds; below it the intervals of rank correlations."""
    table = [Coverage(**row) for row in data["rows"]]
    ranks = {(row["n"], row["correlation"]): row["coverage"] for row in data["ranks"]}
    head = ("95% interval", "of", "skewness of a run", *(f"{n} seeds" for n in NUMBERS))
    lines = [head, ("---",) * len(head)]
    for method, quantity, skewness in dict.fromkeys((row.method, row.quantity, row.skewness) for row in table):
        some = {row.n: row for row in table if row.quantity == quantity}
        cells = [_cell(some[n]) if n in some else "" for n in NUMBERS]
        lines.append((method, quantity, f"{skewness:+.1f}", *cells))
    text = "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
    inside = sum(0.93 <= row.student <= 0.97 for row in table)
    error = max(row.error for row in table)
    said = "; ".join(
        f"{n} runs " + ", ".join(f"{share:.1%} ({rho:g})" for (m, rho), share in ranks.items() if m == n)
        for n in dict.fromkeys(n for n, _ in ranks)
    )
    return (
        f"{text}\n\nPercent of {data['replicates']} replicates whose interval by Student's t holds the truth, in "
        f"brackets that of 1.96 standard errors; binomial standard errors are at most {error:.1%}. Bold: outside 93 to "
        f"97. Student's interval is inside in {inside} of {len(table)} cells.\n\nIntervals of Spearman's rank "
        f"correlation for pairs of normal numbers, by number and correlation: {said}."
    )


def _cell(row: Coverage) -> str:
    shown = f"{100 * row.student:.1f}"
    return f"{shown if 0.93 <= row.student <= 0.97 else f'**{shown}**'} ({100 * row.two:.1f})"


def draw(table: list[Coverage]):
    """Coverage of both intervals against the number of seeds."""
    from matplotlib.figure import Figure

    from yzflow.figures.style import BLUE, VERMILION

    figure = Figure(figsize=(8.5, 3.4), layout="constrained")
    for axes, (field, title) in zip(
        figure.subplots(1, 2, sharey=True), (("two", "1.96 standard errors"), ("student", "Student's t")), strict=True
    ):
        for quantity in dict.fromkeys(row.quantity for row in table):
            some = [row for row in table if row.quantity == quantity]
            jackknife = some[0].method == "jackknife"
            axes.plot(
                [row.n for row in some], [getattr(row, field) for row in some], "s--" if jackknife else "o-",
                color=VERMILION if jackknife else BLUE, markersize=3.5, linewidth=1,
            )  # fmt: skip
        axes.axhspan(0.93, 0.97, color="0.85", zorder=0)
        axes.set(xscale="log", xlabel="seeds", title=title)
        axes.set_xticks(NUMBERS, [str(n) for n in NUMBERS])
        axes.minorticks_off()
    figure.axes[0].set_ylabel("share that holds the truth")
    names = [
        figure.axes[0].plot([], [], *look, color=colour)[0] for look, colour in ((["o-"], BLUE), (["s--"], VERMILION))
    ]
    figure.legend(names, ["means", "variation,\njackknife"], loc="outside right center")
    return figure


def study() -> Study:
    """All rows; the rank correlation at the smallest and largest numbers of runs that we publish."""
    table = list(rows(populations()))
    rng = np.random.default_rng(1)
    ranks = {(n, rho): of_ranks(n, rho, rng) for n in (4, 6, 10, 20, 60) for rho in (0.0, 0.5, 0.9)}
    data = {
        "replicates": REPLICATES,
        "rows": [asdict(row) for row in table],
        "ranks": [{"n": n, "correlation": rho, "coverage": share} for (n, rho), share in ranks.items()],
    }
    return Study(markdown(data), draw(table), data)
