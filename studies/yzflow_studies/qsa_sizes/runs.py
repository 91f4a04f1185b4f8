"""Runs of one unit on sparse averaging with a linear query or a perceptron of the set, at sizes beyond the slides'.

Task: Sanford, Hsu, Telgarsky (2023), arXiv 2306.02896. A query that is linear in the set is that of
`yzflow_sparse_averaging.trained.qsa`; a perceptron's adds one hidden layer, the map before the unit that the paper
allows. Needs yzflow-deep for the perceptron.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr
from yzflow_sparse_averaging import averaging
from yzflow_sparse_averaging import instances as tasks
from yzflow_sparse_averaging.trained.linear_query import LinearQueryUnit
from yzflow_sparse_averaging.trained.qsa import train_qsa, unit_at

from dynamics.support import checks

QUERIES = ("linear", "perceptron")
RATES = {"linear": 0.01, "perceptron": 0.003}
HIDDEN = 512  # rectified linear units of the perceptron
SETS_A_STEP = 256  # of the perceptron; the linear query sees 8 inputs of N sets
N_TEST = 1024  # sets on which attention is compared with its target
N_CERTIFIED = 128  # of them, for which a certificate is sought
VALUE_DIM = 8  # d'
_BLOCK = 25  # steps of one call of jax


def recorded(steps: int) -> np.ndarray:
    """Steps that are recorded: 0 and about six a decade, multiples of 25, up to the last."""
    steps = checks.integer("steps", steps, minimum=_BLOCK)
    if steps % _BLOCK:
        raise checks.reject("steps", f"be a multiple of {_BLOCK}", steps)
    even = np.geomspace(_BLOCK, steps, 1 + int(6 * np.log10(steps / _BLOCK)) if steps > _BLOCK else 1)
    return np.unique(np.r_[0, np.rint(even / _BLOCK).astype(int) * _BLOCK, steps])


def measured(query: np.ndarray, key: np.ndarray, sets: np.ndarray) -> dict[str, float]:
    """Measures of attention on ``sets`` (R, q) for queries (R, m) and keys (N, m).

    ``distance``, ``largest_distance``: mean and largest L1 distance of attention from 1_y/q; ``found``: share of sets
    each of whose members has a larger score than every other token.
    """
    scores = query @ key.T
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    errors = tasks.attention_error(shares / shares.sum(axis=1, keepdims=True), sets)
    inside = np.zeros(scores.shape, bool)
    np.put_along_axis(inside, sets, True, axis=1)
    least = np.where(inside, scores, np.inf).min(axis=1)
    most = np.where(inside, -np.inf, scores).max(axis=1)
    return {
        "distance": float(errors.mean()),
        "largest_distance": float(errors.max()),
        "found": float((least > most).mean()),
    }


def certified(key: np.ndarray, sets: np.ndarray) -> float:
    """Share of ``sets`` for which keys (N, m) have some query with equal scores on the set and a gap to all others.

    By exclusion (`averaging.certificate`): a lower bound of what a map of the set could do with these keys.
    """
    return float(np.mean([averaging.certificate(key, y, throw=False).feasible for y in sets]))


def trained(query: str, n_tokens: int, subset_size: int, *, dimension: int, steps: int, seed: int = 0) -> xr.Dataset:
    """One run of Adam, its rate falling from `RATES` to zero by a cosine.

    Parameters
    ----------
    query : "linear" or "perceptron"
        Linear: `train_qsa`, on the squared error of drawn inputs. Perceptron: the linear query plus `HIDDEN` rectified
        linear units of the indicator of the set, V = 1, on the mean of the squared error over vectors.
    n_tokens, subset_size, dimension : int
        N, q and m.
    steps : int
        A multiple of 25.
    seed : int
        Of start, training sets and test sets.

    Returns
    -------
    xarray.Dataset
        `measured` over ``time``, and `certified`, of the keys at the end.
    """
    checks.one_of("query", query, QUERIES)
    times = recorded(steps)
    start, drawn = np.random.SeedSequence(seed).spawn(2)
    test = tasks.random_subsets(n_tokens, subset_size, size=N_TEST, rng=np.random.default_rng(drawn))
    options: dict[str, Any] = {"steps": steps, "times": times, "start": start}
    states = (_linear if query == "linear" else _perceptron)(n_tokens, subset_size, dimension, **options)
    records = [measured(query_of(test), key, test) for query_of, key in states]
    found: dict[str, Any] = {name: ("time", [one[name] for one in records], {"units": "1"}) for name in records[0]}
    found["certified"] = ((), certified(states[-1][1], test[:N_CERTIFIED]), {"units": "1"})
    return xr.Dataset(found, {"time": ("time", times.astype(float), {"units": "SGD steps"})})


State = tuple[Callable[[np.ndarray], np.ndarray], np.ndarray]  # queries of sets, and keys


def _linear(n: int, q: int, m: int, *, steps: int, times: np.ndarray, start: np.random.SeedSequence) -> list[State]:
    run = train_qsa(
        n, q, embedding_dim=m, value_dim=VALUE_DIM, steps=steps, learning_rate=RATES["linear"], seed=start,
        record_every=steps, times=times,
    )  # fmt: skip

    def state(unit: LinearQueryUnit) -> State:
        return lambda sets: unit.query[sets].sum(axis=-2), unit.key

    return [state(unit_at(run, int(time))) for time in times]


def _perceptron(n: int, q: int, m: int, *, steps: int, times: np.ndarray, start: np.random.SeedSequence) -> list[State]:
    from yzflow_studies.qsa_sizes import perceptron  # jax

    rng = np.random.default_rng(start)
    weights = perceptron.start(n, m, HIDDEN, rng)
    advance, state = perceptron.stepper(RATES["perceptron"], steps, VALUE_DIM)
    state = state(weights)
    kept = [weights]
    for done in range(_BLOCK, steps + 1, _BLOCK):
        sets = tasks.random_subsets(n, q, size=_BLOCK * SETS_A_STEP, rng=rng)
        weights, state = advance(weights, state, sets.reshape(_BLOCK, SETS_A_STEP, q).astype(np.int32))
        if done in times:
            kept.append({name: np.asarray(value, dtype=float) for name, value in weights.items()})

    def pair(one: dict) -> State:
        return lambda sets: perceptron.query(one, sets, np), one["key"]

    return [pair(one) for one in kept]
