"""Numbers that the register quotes of single units: ``python -m yzflow.values write``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from theory.values import Study
from yzflow_sparse_averaging import instances as tasks
from yzflow_sparse_averaging import matching, moments
from yzflow_sparse_averaging.attention_unit import attention_weights
from yzflow_sparse_averaging.proofs import groups

_BLAS = "which sets fail depends on the library that sums"


def _fails(curve: moments.MomentCurve, keys: np.ndarray, subset: np.ndarray, rows: int, error: float) -> bool:
    """Whether attention is off the set where its scores are summed in float64, so many equal queries at once."""
    queries = np.tile(curve.query(subset).astype(float), (rows, 1))
    attention = attention_weights(queries, keys, scale=curve.temperature(error))
    return bool(tasks.attention_error(attention, np.tile(subset, (rows, 1))).max() > error)


def float_curve(n: list[int], q: list[int], n_sets: int, rows: int, error: float, seed: int) -> dict[str, Any]:
    """How many random sets fail on the moment curve in float64; half of them are of the upper half of the tokens."""
    rng, failing = np.random.default_rng(seed), []
    for size, chosen in zip(n, q, strict=True):
        curve = moments.moment_curve(size, chosen)
        keys, half = curve.keys().astype(float), n_sets // 2
        anywhere = tasks.random_subsets(size, chosen, size=n_sets - half, rng=rng)
        upper = tasks.random_subsets(size // 2, chosen, size=half, rng=rng) + (size - size // 2)
        failing.append(sum(_fails(curve, keys, subset, rows, error) for subset in (*anywhere, *upper)))
    return {
        "failing": failing,
        "some_at": [[size, chosen] for size, chosen, found in zip(n, q, failing, strict=True) if found],
    }


def one_set(n: int, q: int, subset: list[int], rows: list[int], error: float) -> dict[str, Any]:
    """Numbers of equal queries per batch at which a set fails on the moment curve in float64, and the other numbers."""
    curve = moments.moment_curve(n, q)
    keys, chosen = curve.keys().astype(float), np.array(subset)
    fails = {count: _fails(curve, keys, chosen, count, error) for count in rows}
    return {"fails": [count for count in rows if fails[count]], "works": [count for count in rows if not fails[count]]}


def without_blank(x: list[int], m: int) -> dict[str, Any]:
    """Outputs of the unit for pairs without the blank token, on tokens without a match mod M."""
    tokens = np.array(x)
    unit = matching.match2(n_tokens=len(x), modulus=m, error=0.01)
    found = unit.unit(tasks.match_tokens(tokens, blank=False)).ravel()
    return {"pairs": int(tasks.match2(tokens, m).sum()), "ones": bool(np.abs(found - 1).max() < 1e-6)}


def conjecture(root: int) -> dict[str, Any]:
    """m H D of the two layers of groups at N = root^3, and N / log2 N."""
    n = root**3
    return {"n": n, "ours": float(groups.size(n)), "bound": n / math.log2(n), "log2": n.bit_length() - 1}


STUDIES = (
    Study(
        "float_curve",
        float_curve,
        {
            "n": [16, 32, 64, 384, 512, 1024],
            "q": [6, 5, 4, 3, 3, 3],
            "n_sets": 300,
            "rows": 1,
            "error": 0.1,
            "seed": 0,
        },
        (_BLAS,),
        quick=False,
    ),
    Study(
        "one_set",
        one_set,
        {"n": 64, "q": 4, "subset": [37, 56, 57, 62], "rows": [1, 3], "error": 0.1},
        (_BLAS,),
        quick=False,
    ),
    Study("conjecture", conjecture, {"root": 1024}),
    Study("without_blank", without_blank, {"x": [1, 2, 3, 4], "m": 11}),
)
