r"""Weight decay that falls to zero: what it leaves of the squared loss, and of balance.

Wen, Li, Liu, Risteski (2023), arXiv 2312.01429, Corollary 2. Layers behind a minimal first layer, with a head of two
matrices, are minimised over all prefixes of up to N brackets. LN without a floor takes off the scale of W_V, so that
decay on W_V has no minimiser: a smaller W_V always has the smaller objective, at the same outputs. What is minimised
here is the infimum over that scale, decay on all other weights. The hypotheses on the page were written, with seeds
and statistics, before any of the runs was made.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import scipy.optimize
import xarray as xr
from matplotlib.figure import Figure
from yzflow_bounded_dyck import DyckLanguage, balance
from yzflow_bounded_dyck.proofs import theorem2

from dynamics import Bags, Embedding, Layer
from dynamics.layer import moved
from dynamics.support import checks
from yzflow import intervals
from yzflow.figures.registry import Effort, Entry
from yzflow.figures.style import BLACK, CATEGORIES, canvas, styled
from yzflow.sweeps.store import Store
from yzflow.sweeps.sweep import sweep

PAPER = "Bounded Dyck"
CASES = ((2, 5), (2, 9), (3, 6))  # (D, N): depth, and length of the prefixes; k = 2
DECAYS = tuple(10.0**-n for n in range(2, 6))  # 0.01 to 1e-5, each from the last one's end
SEEDS = tuple(range(5200, 5205))  # used by no other study of this project; the pilot had 0, 1 and 2
STEPS = 2500  # of L-BFGS at each decay, at most
FITTED = 1e-3  # decays up to which exponents are fitted
UNITS = {2: 10, 3: 16}  # of the head, by depth; an exact head as `exact_weights` writes it has one less than stacks
ATTENDED = 6  # rows of W_K and W_Q
START = 0.5  # standard deviation of entries of W_K and W_Q


def start(language: DyckLanguage, seed: int, units: int) -> Layer:
    """A random layer with one-hot encodings, k D + 1 values and a head of ``units`` rectified linear units."""
    rng = np.random.default_rng(seed)
    states, width = language.n_states, language.n_types * language.max_depth + 1
    keys, queries = START * rng.normal(size=(2, ATTENDED, states))
    values = rng.normal(size=(width, states)) / np.sqrt(width)
    hidden = np.vstack([rng.normal(size=(width, units)) * np.sqrt(2 / width), np.zeros(units)])
    Y = rng.normal(size=(units, language.n_brackets)) / np.sqrt(units)
    return Layer.embedded(Embedding(np.eye(states), keys, queries, values), Y, hidden=hidden)


def norm(layer: Layer) -> float:
    """R: the sum of squares of all weights but W_V, whose scale LN takes off."""
    own = layer.weights._asdict()
    return float(sum((own[name] ** 2).sum() for name in own if name != "values"))


def minimised(layer: Layer, bags: Bags, decay: float, *, steps: int = STEPS) -> tuple[Layer, float]:
    """A local minimiser of the squared loss plus ``decay`` times `norm`, by L-BFGS from ``layer``.

    Parameters
    ----------
    layer : Layer
        With an embedding.
    bags : Bags
        What the loss is the mean over.
    decay : float
        Positive.
    steps : int
        At most.

    Returns
    -------
    Layer
    float
        Its objective over the decay.
    """
    decay = checks.positive("decay", decay)
    if checks.instance("layer", layer, Layer).embedding is None:
        raise checks.reject("layer", "have an embedding", layer)
    shapes = layer.weights
    decayed = np.concatenate([np.full(part.size, name != "values") for name, part in shapes._asdict().items()])

    def unpacked(x: np.ndarray) -> Layer:
        cuts = np.cumsum([part.size for part in shapes])[:-1]
        return moved(layer, [part.reshape(like.shape) for part, like in zip(np.split(x, cuts), shapes, strict=True)])

    def objective(x: np.ndarray) -> tuple[float, np.ndarray]:
        own = unpacked(x)
        slopes = _packed(own.gradient(bags, criterion="squared"))
        # Over the decay, so that what is compared stays of one size as it falls.
        loss = own.loss(bags, criterion="squared") / decay
        return loss + float((x[decayed] ** 2).sum()), 2 * decayed * x - slopes / decay

    options = {"maxiter": steps, "maxfun": 2 * steps, "maxcor": 40, "ftol": 0.0, "gtol": 1e-9}
    found = scipy.optimize.minimize(objective, _packed(layer), jac=True, method="L-BFGS-B", options=options)
    return unpacked(found.x), float(found.fun)


def _packed(layer: Layer) -> np.ndarray:
    return np.concatenate([part.ravel() for part in layer.weights])


def exact_weights(language: DyckLanguage, *, draws: int = 4000, rng: int = 0) -> tuple[Layer, float]:
    """Weights that are exact at every length, and their norm R_0: uniform attention, and a head that interpolates.

    With balancing values the feature is one of finitely many, one for each stack. Their projections on a direction
    are interpolated by a piecewise linear function, a unit for each; of random directions the one of least norm.
    """
    states = language.n_states
    values = balance.balancing_values(np.zeros((states, states)), language).T
    nothing = np.zeros((ATTENDED, states))
    stacks = [
        [2 * kind for kind in kinds]
        for depth in range(language.max_depth + 1)
        for kinds in itertools.product(range(language.n_types), repeat=depth)
    ]
    bags = language.bags(stacks)
    embedding = Embedding(np.eye(states), nothing, nothing, values)
    width = len(values)
    blank = Layer.embedded(embedding, np.zeros((1, language.n_brackets)), hidden=np.zeros((width + 1, 1)))
    features = blank.features(bags)
    best: tuple[float, np.ndarray, np.ndarray] | None = None
    for direction in np.random.default_rng(rng).normal(size=(draws, width)):
        hidden, Y = _interpolating(features, bags.target, direction / np.linalg.norm(direction))
        size = float((hidden**2).sum() + (Y**2).sum())
        if best is None or size < best[0]:
            best = size, hidden, Y
    assert best is not None
    return replace(blank, hidden=best[1], Y=best[2]), best[0]


def _interpolating(points: np.ndarray, targets: np.ndarray, direction: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A head with ``targets`` at ``points``, linear between their projections, its two matrices as small as they go."""
    place = points @ direction
    order = np.argsort(place)
    t, p = place[order], targets[order]
    slopes = np.diff(p, axis=0) / np.diff(t)[:, None]
    Y = np.vstack([p[:1], slopes[:1], np.diff(slopes, axis=0)])
    # The first unit is the constant 1; each other one begins at a projection, the last of which needs none.
    hidden = np.zeros((points.shape[1] + 1, len(Y)))
    hidden[-1, 0] = 1
    hidden[:-1, 1:] = direction[:, None]
    hidden[-1, 1:] = -t[: len(Y) - 1]
    scale = np.sqrt(np.linalg.norm(Y, axis=1) / np.maximum(np.linalg.norm(hidden, axis=0), 1e-300))
    return hidden * scale, Y / np.where(scale > 0, scale, 1)[:, None]


def separation(language: DyckLanguage) -> float:
    """tau of Theorem 2: the distance of the exact distributions after two stacks that differ in their last type."""
    one, other = (language.next_token([2 * kind]) for kind in range(2))
    return float(np.linalg.norm(one - other))


def least_weight(language: DyckLanguage, length: int) -> tuple[int, float]:
    """n and pi of Theorem 2: how many pairs fit before the prefixes of (16), and the weight of the rarest result.

    Over the queries close (j, d), the types of the open brackets, and the pairs (i, d') with d' <= d + 2, for the
    largest n that fits for the deepest query; lengths up to ``length`` are equally likely.
    """
    k, D = language.n_types, language.max_depth
    n = (length - (D + 1)) // 2
    weights = []
    for d in range(1, D):
        for kinds in itertools.product(range(k), repeat=d + 1):
            prefix = [2 * kind for kind in kinds] + [2 * kinds[-1] + 1]
            for i, above in itertools.product(range(k), range(min(d + 2, D))):
                longer = prefix[:above] + [2 * i, 2 * i + 1] * n + prefix[above:]
                weights.append(np.exp(language.log_probability(longer)) / length)
    return n, float(min(weights))


def bound(layer: Layer, language: DyckLanguage, n: int) -> float:
    """Bound of S / P where outputs stay half of tau apart: that of Theorem 2 with gamma the head's two norms."""
    if checks.instance("layer", layer, Layer).hidden is None:
        raise checks.reject("layer", "have a hidden layer", layer)
    gamma = np.linalg.norm(layer.weights.hidden[:-1], 2) * np.linalg.norm(layer.Y, 2)
    return float(theorem2.bound(1.0, gamma, separation(language) / 2, n))


def minima(configuration: dict, seed: int) -> dict[str, xr.DataArray]:
    """Task of a sweep: minimise from the start of a seed at falling decay, each from where the last one ended.

    Keys: ``max_depth`` D, ``max_length`` N, ``decays``, how many of `DECAYS`, and ``steps`` of `minimised`.
    """
    depth, length, steps = (configuration[name] for name in ("max_depth", "max_length", "steps"))
    decays = DECAYS[: configuration["decays"]]
    language = DyckLanguage(2, depth)
    bags = language.enumerate(max_length=length)
    n, _ = least_weight(language, length)
    layer, rows = start(language, seed, UNITS[depth]), []
    for decay in decays:
        layer, _ = minimised(layer, bags, decay, steps=steps)
        rows.append(
            {
                "excess": layer.loss(bags, criterion="squared"),
                "norm": norm(layer),
                "violation": balance.violation(layer, language),
                "residual": balance.residual(layer.Z, language),
                "logits": float(np.ptp(layer.Z, axis=1).max()),
                "bound": bound(layer, language, n),
            }
        )
    return {name: xr.DataArray([row[name] for row in rows], {"decay": list(decays)}, ("decay",)) for name in rows[0]}


def ladder(
    case: tuple[int, int],
    seeds: Sequence[int] = SEEDS,
    *,
    decays: int = len(DECAYS),
    steps: int = STEPS,
    store: str | os.PathLike | Store | None = None,
    progress: bool = False,
) -> xr.Dataset:
    """The sweep of `minima` over several starts: what ``store`` holds is not run again.

    Parameters
    ----------
    case : (D, N)
        Depth, and length of the longest prefixes; k = 2.
    seeds : sequence of int
        One for each start.
    decays, steps : int
        As in `minima`.
    store, progress
        As in `yzflow.sweep`. Default: nothing is kept.

    Returns
    -------
    xarray.Dataset
        Over (seed, decay): ``excess`` of the squared loss over its least, 0; ``norm`` R; ``violation``; ``residual``,
        (11); ``logits``, the largest distance of two of a row of Z; ``bound`` on S / P.
    """
    depth, length = case
    grid = {"max_depth": [depth], "max_length": [length], "decays": [decays], "steps": [steps]}
    # A thread, as its runs are short beside the start of a process.
    kept = nullcontext(store) if store is not None else TemporaryDirectory()
    with kept as place, ThreadPoolExecutor(1) as executor:
        runs = sweep(minima, grid, store=place, seeds=list(seeds), executor=executor, progress=progress)
    if runs["failed"].any():
        raise RuntimeError(str(runs["error"].values[runs["failed"].values][0]))
    n, _ = least_weight(DyckLanguage(2, depth), length)
    names = ["excess", "norm", "violation", "residual", "logits", "bound"]
    return runs[names].isel(dict.fromkeys(grid, 0), drop=True).assign_attrs(D=depth, N=length, n=n)


def exponents(runs: xr.Dataset, name: str, *, most: float = FITTED) -> xr.DataArray:
    """Exponent p of ``name ~ decay^p`` of each start: least squares of logarithms over decays up to ``most``."""
    some = runs[name].sel(decay=runs["decay"] <= most)
    x = np.log(some["decay"])
    x = x - x.mean()
    return (np.log(some) * x).sum("decay") / (x**2).sum()


def near_best(runs: xr.Dataset, *, within: float = 0.01) -> xr.DataArray:
    """Which starts end, at the smallest decay, with an objective of at most 1 + ``within`` times the smallest found."""
    last = runs.isel(decay=-1).reset_coords("decay")
    objective = last["excess"] / last["decay"] + last["norm"]
    return objective <= (1 + within) * objective.min()


# The figure


@styled
def falling_decay(runs: Sequence[xr.Dataset]) -> Figure:
    """Excess loss and balance violation of trained layers as weight decay falls, start by start, beside the bounds.

    Left: the squared loss over its least; dashed: lambda R_0 of Corollary 2, with the smallest norm found in the place
    of R_0. Right: balance violation, the mean of S / P; dashed: what Theorem 2 bounds S / P by. Of each language and
    length, a line for each start; faint ones end with an objective more than 1% above the smallest.

    Parameters
    ----------
    runs : sequence of xarray.Dataset
        From `ladder`, one a case.
    """
    figure = canvas(figsize=(9.6, 4.2))
    left, right = figure.subplots(1, 2)
    for number, run in enumerate(runs):
        colour, _ = CATEGORIES[1 + number]
        best, decay = near_best(run), run["decay"].values
        label = f"D = {run.attrs['D']}, N = {run.attrs['N']}"
        for good, line, alpha in ((False, ":", 0.5), (True, "o-", 0.9)):
            some = run.isel(seed=np.flatnonzero(best.values == good)).transpose("decay", "seed")
            style: dict[str, Any] = {"color": colour, "markersize": 3, "linewidth": 1, "alpha": alpha}
            for axes, name in ((left, "excess"), (right, "violation")):
                axes.plot(decay, some[name], line, **style)
        left.plot([], [], "o-", color=colour, markersize=3, label=label)
        right.plot(decay, run["bound"].where(best).mean("seed"), "--", color=colour, linewidth=1)
    smallest = min(float(run["norm"].isel(decay=-1).min()) for run in runs)
    left.plot(decay, decay * smallest, "--", color=BLACK, linewidth=1, label=r"$\lambda R_0$")
    left.plot([], [], ":", color="0.5", linewidth=1, label="another minimum")
    right.plot([], [], "--", color="0.5", linewidth=1, label="bound on S / P")
    for axes in (left, right):
        axes.set(xscale="log", yscale="log", xlabel=r"weight decay $\lambda$")
        axes.set_xticks(decay, [f"{value:g}" for value in decay])
        axes.minorticks_off()
    left.set_ylabel("excess of the squared loss")
    right.set_ylabel("balance violation")
    both = [axes.get_legend_handles_labels() for axes in (left, right)]
    lines, labels = ([*one, *other] for one, other in zip(*both, strict=True))
    figure.legend(lines, labels, loc="outside lower center", ncols=6)
    figure.suptitle(f"{runs[0].sizes['seed']} starts each; decay falls from right to left")
    return figure


def _claims(runs: Sequence[xr.Dataset]) -> str:
    said = []
    for run in runs:
        best = run.isel(seed=np.flatnonzero(near_best(run)))
        sentence = (
            f"At D = {run.attrs['D']}, N = {run.attrs['N']}, {best.sizes['seed']} of {run.sizes['seed']} starts end "
        )
        sentence += "within 1% of the smallest objective"
        if best.sizes["seed"] > 1:
            for name, words in (("excess", "excess"), ("violation", "violation")):
                found = exponents(best, name)
                half = float(intervals.of_mean(found))
                sentence += f"; their {words} falls as decay to the power {float(found.mean()):.2f} +- {half:.2f}"
        said.append(sentence + ".")
    return " ".join(said)


def _runs(effort: Effort) -> list[xr.Dataset]:
    few: dict[str, Any] = {"seeds": (1, 2), "decays": 3, "steps": 150} if effort.quick else {}
    cases = CASES[:1] if effort.quick else CASES
    return [ladder(case, store=effort.store, progress=effort.progress, **few) for case in cases]


FIGURES = (Entry("falling_decay", PAPER, falling_decay, _runs, claims=_claims),)

# <!-- numbers
# typed: 1% (written before the runs, and in the study's code)
# -->
