"""How many bits the numbers of a query need: rounding in q-sparse averaging with random keys.

Source: Sanford, Hsu, Telgarsky (NeurIPS 2023), arXiv 2306.02896, Theorem 2: p = O(log(q log N / eps)) bits are enough.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from dynamics.support import checks
from yzflow_sparse_averaging.attention_unit import FixedPoint, Precision, attention_weights
from yzflow_sparse_averaging.keys import as_subset

MOST_BITS = 53


def rounded_query(query: ArrayLike, *, tau: float, bits: int) -> Precision:
    """The finest ``bits``-bit fixed-point numbers that hold ``tau * query``, as the precision of a unit."""
    query = checks.finite_array("query", query)
    return Precision(query=FixedPoint.covering(bits, checks.positive("tau", tau) * _largest(query)))


def error_parts(attention: ArrayLike, subset: ArrayLike) -> tuple[float, float]:
    """||a - 1_y/q||_1 in two parts: the unevenness of attention on y, and its weight off y.

    Parameters
    ----------
    attention : (N,) array
        Sums to one.
    subset : (q,) array of int

    Returns
    -------
    uneven, off : float
        sum_{j in y} |a_j - mean of a on y|, and 2 sum_{i off y} a_i; their sum bounds the error from above.
    """
    attention = checks.finite_array("attention", attention, ndim=1)
    subset = as_subset("subset", subset, n_tokens=attention.size)
    inside = attention[subset]
    return float(np.abs(inside - inside.mean()).sum()), float(2 * np.delete(attention, subset).sum())


def sufficient_bits(query: ArrayLike, *, tau: float, error: float) -> int:
    r"""Bits p with which rounding the scaled query adds at most ``error`` to ||a - 1_y/q||_1.

    Rounding with the step s moves an entry by at most s/2, or s where it saturates, and a score by at most s ||u||_1 =
    s sqrt(m); scores that move by at most delta change attention by at most e^{2 delta} - 1 in L1.

    Raises
    ------
    ValueError
        If more than 53 bits are needed.
    """
    query = checks.finite_array("query", query, ndim=1)
    if query.size == 0:
        raise checks.reject("query", "hold at least one number", "none")
    tau, error = checks.positive("tau", tau), checks.positive("error", error)
    step = math.log1p(error) / math.sqrt(query.size)
    for bits in range(1, MOST_BITS + 1):
        numbers = FixedPoint.covering(bits, tau * _largest(query))
        if 2 * numbers.step <= step:
            return bits
    raise checks.reject("error", f"be within reach of {MOST_BITS} bits", error)


def smallest_bits(keys: ArrayLike, query: ArrayLike, subset: ArrayLike, *, tau: float, error: float) -> int | None:
    """Smallest p from which on every p up to 53 keeps ||a - 1_y/q||_1 within ``error``, by trying; None if 53 fail."""
    keys, query = checks.finite_array("keys", keys, ndim=2), checks.finite_array("query", query, ndim=1)
    subset = as_subset("subset", subset, n_tokens=len(keys))
    target = np.zeros(len(keys))
    target[subset] = 1 / subset.size
    error, tau = checks.positive("error", error), checks.positive("tau", tau)
    bits = np.arange(1, MOST_BITS + 1)
    rounded = [rounded_query(query, tau=tau, bits=int(p)).apply("query", tau * query) for p in bits]
    errors = np.abs(attention_weights(rounded, keys) - target).sum(axis=1)
    failing = bits[errors > error]
    first = int(failing.max(initial=0)) + 1
    return first if first <= MOST_BITS else None


def _largest(query: np.ndarray) -> float:
    """Largest |entry|; a query of zeros is held by any numbers."""
    return float(np.abs(query).max(initial=0.0)) or 1.0
