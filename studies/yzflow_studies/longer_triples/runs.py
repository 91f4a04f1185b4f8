"""Runs of the units of finding 31 from better starts, through a curriculum, and on three equal tokens.

Tasks and units: Sanford, Hsu, Telgarsky (2023), arXiv 2306.02896. Needs yzflow-deep to train.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from yzflow_sparse_averaging import averaging
from yzflow_sparse_averaging import instances as tasks
from yzflow_sparse_averaging.attention_unit import TensorAttentionUnit

from dynamics.support import checks
from yzflow_studies.learning_match import runs

if TYPE_CHECKING:
    from yzflow_studies.learning_match import models

TASKS = ("pairs", "triples", "three equal")
STARTS = ("random", "one frequency", "frequencies")
FREQUENCIES = 10  # of the start "frequencies", m = 31
CURRICULUM = ((8, 2000), (16, 1000))  # N and steps before those at the last N, with a planted triple in each input
_DRAWS = 200


def three_equal(x: ArrayLike) -> np.ndarray:
    """Which tokens have the residue of two others at least, (.., N) of bool: pairs are compared, but two are needed."""
    x = np.asarray(x)
    return (x[..., :, None] == x[..., None, :]).sum(axis=-1) >= 3


def equal_modulus(n_tokens: int) -> int:
    """The prime M nearest to N/t, with e^-t (1 + t) = 1/2: about half of the tokens then have two equal others."""
    wanted = checks.integer("n_tokens", n_tokens, minimum=5) / brentq(lambda t: math.exp(-t) * (1 + t) - 0.5, 1, 3)
    near = sorted(range(2, int(2 * wanted) + 3), key=lambda number: abs(number - wanted))
    return next(number for number in near if all(number % k for k in range(2, math.isqrt(number) + 1)))


def chosen_frequencies(modulus: int, count: int, rng: np.random.Generator) -> tuple[np.ndarray, float]:
    """Frequencies with the largest gap of many random sets, and the gap 1 - max_s mean_k cos(2 pi k s/M), s != 0.

    A single frequency has the gap 1 - cos(2 pi/M), of order 1/M^2; ten have one of order 1.
    """
    most = (checks.integer("modulus", modulus, minimum=3) - 1) // 2
    if checks.integer("count", count, minimum=1) > most:
        raise checks.reject("count", f"be at most {most}", count)
    residue = np.arange(1, modulus)

    def gap(frequencies: np.ndarray) -> float:
        return float(1 - np.cos(2 * np.pi / modulus * np.outer(residue, frequencies)).mean(axis=1).max())

    drawn = [np.sort(rng.choice(most, count, replace=False) + 1) for _ in range(_DRAWS)]
    best = max(drawn, key=gap)
    return best, gap(best)


def many_frequencies(n_tokens: int, modulus: int, count: int, rng: np.random.Generator) -> averaging.MatchUnit:
    """Match3 by a third-order unit of m = 3 r + 1: the mean over r frequencies k of cos(2 pi k (x_i + x_j + x_l)/M).

    As `averaging.match3_tensor`, which has r = 1 and k = 1, with the gap of `chosen_frequencies` in the place of
    1 - cos(2 pi/M): the temperature falls from order M^2 to order 1.
    """
    frequencies, gap = chosen_frequencies(modulus, count, rng)
    gap = min(gap, 1.0)  # of pairs of a token and the blank, which score 0
    odds = (1 - runs.ERROR) / runs.ERROR
    scale = (math.log(n_tokens * (n_tokens + 2)) + 2 * math.log(odds)) / gap
    blank = 1 - (math.log(odds) - math.log1p(-2 / ((n_tokens + 2) * odds))) / scale
    shifts = 2 * np.pi * np.arange(3) / 3

    def waves(X: np.ndarray) -> np.ndarray:
        angle = 2 * np.pi / modulus * (X[..., :1] * frequencies % modulus)
        return np.cos(angle[..., None] - shifts).reshape(*X.shape[:-1], -1)

    def query(X: np.ndarray) -> np.ndarray:
        columns = 4 / (3 * count) * waves(X)
        return np.concatenate([columns, np.ones_like(columns[..., :1])], -1)

    def key(score: float) -> Any:
        def found(X: np.ndarray) -> np.ndarray:
            is_blank = X[..., :1] == tasks.BLANK
            return np.concatenate([np.where(is_blank, 0.0, waves(X)), np.where(is_blank, score, 0.0)], -1)

        return found

    def value(X: np.ndarray) -> np.ndarray:
        return (X != tasks.BLANK).astype(float)

    unit = TensorAttentionUnit(query, (key(blank), key(1.0)), (value, value), embedding_dim=3 * count + 1, scale=scale)
    return averaging.MatchUnit(unit, 3, n_tokens, modulus, runs.ERROR, scale, blank)


def moved(weights: models.Weights, distance: float, rng: np.random.Generator) -> models.Weights:
    """Weights with normal noise on every table of queries and keys, of ``distance`` times its root mean square."""
    noisy = dict(weights)
    for name in ("query", "key", "second_key"):
        table = weights[name]
        noise = rng.standard_normal(table.shape) * np.sqrt(np.mean(table.astype(float) ** 2))
        noisy[name] = (table + distance * noise).astype(np.float32)
    return noisy


class Planted(runs.Inputs):
    """Inputs each of which has a triple planted in it."""

    def training(self, size: int) -> np.ndarray:
        """``size`` inputs."""
        return tasks.random_match(*self.shape, self.modulus, size=size, rng=self.rng, order=3, planted=1.0)


def trained(
    kind: str,
    task: str,
    n_tokens: int,
    *,
    dimension: int,
    heads: int = 1,
    steps: int,
    learning_rate: float,
    start: str = "random",
    distance: float = 0.0,
    curriculum: bool = False,
    seed: int = 0,
) -> xr.Dataset:
    """One run of Adam, its rate falling to zero by a cosine (in each stage of a curriculum).

    Parameters
    ----------
    kind : "one layer" or "third order"
        See `yzflow_studies.learning_match.models`.
    task : "pairs", "triples" or "three equal"
        Match2 or Match3 mod `runs.balanced_modulus`, or `three_equal` mod `equal_modulus`.
    n_tokens, dimension, heads : int
        N, m and H.
    steps : int
        At N tokens; a multiple of 25.
    learning_rate : float
    start : "random", "one frequency" or "frequencies"
        The last two are constructions for Match3 by the third-order unit: `averaging.match3_tensor`, and
        `many_frequencies` of `FREQUENCIES`.
    distance : float
        By which a construction is `moved`.
    curriculum : bool
        Whether the stages of `CURRICULUM` come first, mod the same M.
    seed : int
        Of test inputs, start and training inputs.

    Returns
    -------
    xarray.Dataset
        `yzflow_studies.learning_match.runs.measures` on test inputs over ``time`` in steps of the last stage.
    """
    from yzflow_studies.learning_match import models  # jax

    checks.one_of("kind", kind, ("one layer", "third order"))
    order = {"pairs": 2, "triples": 3}.get(checks.one_of("task", task, TASKS))
    modulus = equal_modulus(n_tokens) if order is None else runs.balanced_modulus(order, n_tokens)
    model = models.Model(kind, n_tokens, modulus, dimension, heads)
    drawn, weighted = map(np.random.default_rng, np.random.SeedSequence(seed).spawn(2))
    inputs = runs.Inputs(n_tokens, modulus, drawn)
    if checks.one_of("start", start, STARTS) == "random":
        weights = models.start(model, weighted)
    else:
        unit = (
            averaging.match3_tensor(n_tokens=n_tokens, modulus=modulus, error=runs.ERROR)
            if start == "one frequency"
            else many_frequencies(n_tokens, modulus, FREQUENCIES, weighted)
        )
        weights = moved(models.at_construction(model, unit, weighted), distance, weighted)

    def matched(x: np.ndarray) -> np.ndarray:
        return three_equal(x) if order is None else runs.matches(x, modulus, order)

    target = matched(inputs.test)
    pairs = runs.pair_matches(inputs.test, modulus) if order == 3 else np.zeros_like(target)
    for n, before in CURRICULUM if curriculum else ():
        stage = models.Model(kind, n, modulus, dimension, heads)
        weights, _, _ = runs.fit(
            stage, weights, Planted(n, modulus, drawn), matched, lambda one: {}, steps=before,
            learning_rate=learning_rate,
        )  # fmt: skip

    def record(one: models.Weights) -> dict[str, float]:
        return runs.measures(runs.logits(model, one, inputs.test), target, pairs)

    _, times, records = runs.fit(model, weights, inputs, matched, record, steps=steps, learning_rate=learning_rate)
    return xr.Dataset(
        {name: ("time", [one[name] for one in records], {"units": "1"}) for name in records[0]},
        {"time": ("time", np.array(times, float), {"units": "SGD steps"})},
        {"modulus": modulus},
    )
