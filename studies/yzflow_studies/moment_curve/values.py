"""Where the moment curve's integers no longer fit into float64, and how many bits its queries have."""

import math
from collections.abc import Sequence

import numpy as np
from yzflow_sparse_averaging import averaging
from yzflow_sparse_averaging import instances as tasks
from yzflow_sparse_averaging.attention_unit import attention_weights

from theory.values import Study


def float64(sizes: Sequence[tuple[int, int]], sets: int, error: float, seed: int) -> dict:
    """Sets for which attention is off by more, of random ones, half of them of the upper half of the positions."""
    rows = []
    for n, q in sizes:
        curve, rng = averaging.moment_curve(n, q), np.random.default_rng([seed, n, q])
        keys, scale = curve.keys().astype(float), curve.temperature(error)
        fails = 0
        for k in range(sets):
            low = n // 2 if k % 2 else 0
            subset = np.sort(low + rng.choice(n - low, q, replace=False))
            attention = attention_weights(curve.query(subset).astype(float)[None], keys, scale=scale)
            fails += bool(tasks.attention_error(attention, subset[None])[0] > error)
        rows.append({"n": n, "q": q, "fails": fails})
    return {"rows": rows}


def bits(sizes: Sequence[tuple[int, int]]) -> dict:
    """Bits of a query over 4 q^2 log2 N."""
    found = []
    for n, q in sizes:
        curve = averaging.moment_curve(n, q)
        found.append(curve.dimension * curve.number_bits() / (4 * q**2 * math.log2(n)))
    return {"low": min(found), "high": max(found)}


STUDIES = (
    Study(
        "float64",
        float64,
        {
            "sizes": [
                [16, 5],
                [16, 6],
                [32, 4],
                [32, 5],
                [64, 3],
                [64, 4],
                [256, 3],
                [384, 3],
                [512, 3],
                [1024, 3],
                [4096, 2],
            ],
            "sets": 300,
            "error": 0.1,
            "seed": 0,
        },
        ("which sets fail depends on how BLAS sums",),
        quick=False,
    ),
    Study("bits", bits, {"sizes": [[n, q] for n in (16, 64, 256, 1024, 4096) for q in (2, 3, 4, 8, 16) if q <= n / 2]}),
)
