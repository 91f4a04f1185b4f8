"""Training runs on sparse averaging: the setting of the talk's pictures, and the embedding dimension that it needs.

Task and pictures: Sanford, Hsu, Telgarsky (2023), arXiv 2306.02896, and the slides of the talk.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from yzflow_sparse_averaging.trained.qsa import train_qsa

from dynamics.support.progress import Progress
from yzflow.figures.registry import Effort, Entry
from yzflow.figures.style import BLACK, BLUE, VERMILION, canvas, log_ticks, styled

STEPS = 40_000
SHOWN = (0, 1000, STEPS)  # of the slides' pictures
N_TOKENS, SUBSET_SIZE, EMBEDDING_DIM = 20, 3, 24


def training(*, steps: int = STEPS, seed: int = 0, progress: bool = False) -> xr.Dataset:
    """One run of `train_qsa` at N = 20, q = 3, m = 24, recorded at times even in log t, at 100 and every 1000 steps."""
    times = np.append(np.geomspace(1, steps, 61).round().astype(int), min(100, steps))
    return train_qsa(
        N_TOKENS,
        SUBSET_SIZE,
        embedding_dim=EMBEDDING_DIM,
        steps=steps,
        times=times,
        record_every=1000,
        seed=seed,
        progress=progress,
    )


def by_embedding_dim(
    *,
    embedding_dim: Sequence[int] = (16, 17, 18, 19, 20, 24),
    n_tokens: int = N_TOKENS,
    subset_size: int = SUBSET_SIZE,
    seeds: int = 3,
    steps: int = 10_000,
    progress: bool = False,
) -> xr.Dataset:
    """Distance of attention from its target after training, over (embedding_dim, seed): mean and largest over sets."""
    shape = (len(embedding_dim), seeds)
    mean, largest = np.empty(shape), np.empty(shape)
    with Progress("embedding dimensions", enabled=progress) as report:
        for k, (which, seed) in enumerate(np.ndindex(shape)):
            final = train_qsa(
                n_tokens,
                subset_size,
                embedding_dim=embedding_dim[which],
                steps=steps,
                record_every=steps,
                seed=seed,
            ).isel(time=-1)
            mean[which, seed], largest[which, seed] = final["distance"], final["largest_distance"]
            report.update((k + 1) / mean.size, f"m = {embedding_dim[which]}, seed {seed}")
    axes = ("embedding_dim", "seed")
    return xr.Dataset(
        {
            "distance": (axes, mean, {"long_name": "mean L1 distance from 1_y/q", "units": "1"}),
            "largest_distance": (axes, largest, {"long_name": "largest L1 distance", "units": "1"}),
        },
        {"embedding_dim": list(embedding_dim), "seed": np.arange(seeds)},
        {"n_tokens": n_tokens, "subset_size": subset_size, "steps": steps},
    )


# The figures


@styled
def qsa_training(run: xr.Dataset) -> Figure:
    """Attention over the training of one unit on sparse averaging, by a linear query, and its distance from the target.

    As in the slides: attention starts close to uniform, and in the end each row is 1/q on its set and zero elsewhere.
    The slides do not give their N, q, m or optimizer, so that distances there and here cannot be compared.

    Parameters
    ----------
    run : xarray.Dataset
        From `yzflow_sparse_averaging.trained.qsa.train_qsa`, as by `training`.
    """
    last = int(run["time"][-1])
    shown = [*(step for step in SHOWN if step < last), last]
    sets, n_tokens = run["sets"].values, run.sizes["token"]
    target = np.zeros((len(sets), n_tokens))
    np.put_along_axis(target, sets, 1 / sets.shape[1], axis=1)
    pictures = [(f"T = {step}", run["attention"].sel(time=step).values) for step in shown]
    pictures.append((r"target $1_y / q$", target))

    figure = canvas(figsize=(2.75 * len(pictures), 5.8))
    upper, lower = figure.subfigures(2, 1, height_ratios=(1, 0.95))
    panels = upper.subplots(1, len(pictures), sharey=True)
    largest = max(1 / sets.shape[1], *(picture.max() for _, picture in pictures))
    for axes, (title, picture) in zip(panels, pictures, strict=True):
        image = axes.imshow(picture, cmap="cividis", vmin=0, vmax=largest, interpolation="nearest")
        axes.grid(False)
        axes.set(title=title, xlabel="token j")
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    panels[0].set_ylabel("token i, with its set $y_i$")
    upper.colorbar(image, ax=panels, label="attention $a_{ij}$", shrink=0.85)

    axes = lower.subplots()
    for name, colour, style, label in (
        ("distance", BLUE, "-", "mean over sets y"),
        ("largest_distance", VERMILION, "--", "largest over sets y"),
    ):
        axes.plot(run["time"], run[name], style, color=colour, label=label)
    for step in shown:
        value = float(run["distance"].sel(time=step))
        axes.plot(step, value, "o", color=BLACK, markersize=5)
        right = step > 0  # the curve falls: below and left of a point there is room
        axes.annotate(
            f"{value:.2g}",
            (step, value),
            xytext=(-6 if right else 6, -11 if step else -13),
            textcoords="offset points",
            ha="right" if right else "left",
            fontsize=9,
        )
    axes.set_xscale("symlog", linthresh=1, linscale=0.3)
    axes.set(yscale="log", xlim=(-0.1, last * 1.3), xlabel="time T (SGD steps)")
    axes.set_ylim(bottom=0.5 * float(run["distance"].min()))
    axes.set_ylabel(r"distance $\|a_i - 1_{y_i}/q\|_1$")
    axes.legend(loc="lower left")
    figure.suptitle(
        f"One unit trained on sparse averaging: N = {n_tokens}, q = {sets.shape[1]}, m = {run.sizes['dimension']}"
    )
    return figure


@styled
def qsa_embedding_dim(errors: xr.Dataset) -> Figure:
    """Distance of attention from its target after training against the embedding dimension m, with a linear query.

    Found here: training works from m = N - 1 on and not below. Scores that are equal on each set of q >= 3 tokens and
    lower off it take a matrix W K^T of rank N - 1 at least, so that below it the largest distance has a floor that no
    training removes. Constructions with a query that is not linear in the set need m of about q log N only.

    Parameters
    ----------
    errors : xarray.Dataset
        From `by_embedding_dim`.
    """
    dims = errors["embedding_dim"].values
    figure = canvas(figsize=(6.2, 4))
    axes = figure.subplots()
    for name, colour, marker, label in (
        ("largest_distance", VERMILION, "s", "largest over sets y"),
        ("distance", BLUE, "o", "mean over sets y"),
    ):
        seeds = errors[name].transpose("embedding_dim", "seed").values
        axes.plot(dims, seeds.mean(axis=1), "-", color=colour, linewidth=1, alpha=0.6)
        axes.plot(np.repeat(dims, seeds.shape[1]), seeds.ravel(), marker, color=colour, markersize=4.5, label=label)
    axes.axvline(errors.attrs["n_tokens"] - 1, color="0.4", linestyle=":", label="m = N - 1")
    axes.set(yscale="log", xlabel="embedding dimension m")
    log_ticks(axes.yaxis)
    axes.set_ylabel(rf"distance $\|a - 1_y/q\|_1$ after {errors.attrs['steps']} steps")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend()
    n_seeds = errors.sizes["seed"]
    axes.set_title(
        f"Linear query, N = {errors.attrs['n_tokens']}, q = {errors.attrs['subset_size']}, "
        + (f"each of {n_seeds} seeds" if n_seeds > 1 else "one seed")
    )
    return figure


def _run(effort: Effort) -> xr.Dataset:
    return training(steps=2000 if effort.quick else STEPS, progress=effort.progress)


def _errors(effort: Effort) -> xr.Dataset:
    few: dict[str, Any] = {"seeds": 1, "steps": 4000} if effort.quick else {}
    return by_embedding_dim(progress=effort.progress, **few)


FIGURES = (
    Entry("qsa_training", "Sparse averaging", qsa_training, _run),
    Entry("qsa_embedding_dim", "Sparse averaging", qsa_embedding_dim, _errors),
)

# <!-- numbers
# typed: 3 (a bound that is proved)
# -->
