"""Checks of the dimension that all sets need: keys that serve all sets, sets that others lose, and errors there."""

from __future__ import annotations

import numpy as np

from theory.statements import Runs
from yzflow_sparse_averaging import averaging
from yzflow_sparse_averaging import instances as tasks
from yzflow_sparse_averaging.proofs import faces as proved

_SMALL = tuple((n, q) for n in range(2, 8) for q in range(1, n))


def all_sets_served(runs: Runs, level: str) -> float:
    """Share of all sets of q tokens, N to 7 and q < N, that `every_set_keys` do not serve, in integers."""
    missed = []
    for n, q in _SMALL:
        keys = averaging.every_set_keys(n, q)
        for subset in tasks.all_subsets(n, q):
            scores = keys @ averaging.every_set_query(n, q, subset)
            inside, outside = scores[subset], np.delete(scores, subset)
            fits = keys.shape[1] == int(proved.dimension(n, q))
            missed.append(not fits or inside.min() != inside.max() or inside[0] - outside.max() < 1)
    return float(np.mean(missed))


def sets_lost(runs: Runs, level: str) -> float:
    """Share of random keys of one dimension fewer that do prefer the set that they should lose: by a linear program.

    N to 7 and q < N, with integer keys and Gaussian ones; one where two combinations are not the same point.
    """
    rng, kept = np.random.default_rng(runs.setting.seed), []
    for n, q in _SMALL:
        m = int(proved.dimension(n, q)) - 1
        for keys in (rng.integers(-9, 10, (n, m)), rng.normal(size=(n, m))) if m else ():
            lost = averaging.lost_set(keys, q)
            points = [sum(float(w) * keys[i] for i, w in part.items()) for part in (lost.inside, lost.outside)]
            kept.append(not np.allclose(*points, atol=1e-9) or largest_gap(keys, lost.subset) > 1e-6)
    return float(np.mean(kept))


def largest_gap(keys: np.ndarray, subset: np.ndarray) -> float:
    """The largest gap of a query with entries in [-1, 1] that scores a set alike: 0 if none prefers it."""
    from scipy.optimize import linprog  # a tenth of a second, which every sweep would wait

    inside, outside = keys[subset], np.delete(keys, subset, axis=0)
    m = keys.shape[1]
    found = linprog(
        np.append(np.zeros(m + 1), -1.0),
        A_ub=np.hstack([outside, -np.ones((len(outside), 1)), np.ones((len(outside), 1))]),
        b_ub=np.zeros(len(outside)),
        A_eq=np.hstack([inside, -np.ones((len(inside), 1)), np.zeros((len(inside), 1))]),
        b_eq=np.zeros(len(inside)),
        bounds=[(-1, 1)] * m + [(None, None), (0, None)],
    )
    return float(-found.fun)


def errors_of_few(runs: Runs, level: str) -> float:
    """Shortfall of the least error found on lost sets below the proved one, in its units; q = 1 to 3, N = 2q + 1 to 3q.

    Queries of one dimension fewer are fitted by the simplex method of Nelder and Mead, from six starts each.
    """
    from scipy.optimize import minimize

    rng, below = np.random.default_rng(runs.setting.seed), [0.0]
    for n, q in ((3, 1), (5, 2), (6, 2), (9, 3)):
        keys = rng.normal(size=(n, int(proved.dimension(n, q)) - 1))
        subset = averaging.lost_set(keys, q).subset
        wanted = np.isin(np.arange(n), subset) / q

        def error(query, keys=keys, wanted=wanted):
            weights = np.exp((scores := keys @ query) - scores.max())
            return float(np.abs(weights / weights.sum() - wanted).sum())

        starts = rng.normal(size=(6, keys.shape[1])) * 3
        found = min(minimize(error, start, method="Nelder-Mead").fun for start in starts)
        least = float(proved.far_error(q) if n >= 3 * q else proved.forced_error(q))
        below.append(1 - found / least)
    return max(below)
