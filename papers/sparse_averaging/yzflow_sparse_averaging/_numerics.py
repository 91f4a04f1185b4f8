"""Numbers of `attention_unit`: checks, scores of queries and keys, and their softmax, in floating point and exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np

from dynamics.support import checks
from dynamics.support.limits import current

# Integers up to here are exact in float64, and so is a sum of products that stays below it.
_EXACT = 2**53


def numbers(name: str, value) -> np.ndarray:
    """A finite array of at least two axes; integers of any size stay exact."""
    array = checks.array(name, value)
    if array.dtype.kind == "O":
        for entry in array.flat:
            if not checks.is_number(entry, (int, np.integer, Fraction)):
                raise checks.reject(name, "hold numbers, integers or fractions if not floating", repr(entry))
    elif array.dtype.kind not in "iu":
        array = checks.finite_array(name, array)
    if array.ndim < 2 or 0 in array.shape:
        raise checks.reject(name, "have at least two axes, none of them empty", f"shape {array.shape}")
    return array


def tokens(X) -> np.ndarray:
    X = checks.finite_array("X", X)
    if X.ndim < 2 or 0 in X.shape:
        raise checks.reject("X", "have the axes (.., token, number), none of them empty", f"shape {X.shape}")
    return X


def matrix(name, value) -> np.ndarray:
    array = checks.finite_array(name, value, ndim=2)
    if 0 in array.shape:
        raise checks.reject(name, "have at least one row and one column", f"shape {array.shape}")
    array.flags.writeable = False
    return array


def mapped(name: str, function: Callable, X: np.ndarray, width: int | None) -> np.ndarray:
    """``function(X)``, seen to be finite and of one row of ``width`` numbers a token."""
    out = numbers(name, function(X))
    if out.shape[:-1] != X.shape[:-1] or (width is not None and out.shape[-1] != width):
        expected = (*X.shape[:-1], "any" if width is None else width)
        raise checks.reject(name, f"return an array of shape {expected}", f"shape {out.shape}")
    return out


def to_float(name: str, array: np.ndarray) -> np.ndarray:
    """The array in float64; integers that are too large are refused."""
    try:
        return array.astype(np.float64)
    except OverflowError:
        raise checks.reject(name, "be in the range of float64", "a larger integer") from None


def same_width(queries: np.ndarray, keys: np.ndarray) -> None:
    """Refuse queries and keys of different widths."""
    if queries.shape[-1] != keys.shape[-1]:
        raise checks.reject("keys", f"have {queries.shape[-1]} columns, as the queries have", f"shape {keys.shape}")


def scaled(queries: np.ndarray, scale: float) -> np.ndarray:
    """``scale * queries``, seen to be finite."""
    with np.errstate(over="ignore"):
        scaled = scale * queries
    if not np.isfinite(scaled).all():
        raise checks.reject("scale", "leave the scaled queries in the range of float64", scale)
    return scaled


def scores_of(queries: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Products of each query with each key, seen to be finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        scores = queries @ np.swapaxes(keys, -1, -2)
    if not np.isfinite(scores).all():
        raise checks.reject("queries", "have products with the keys in the range of float64", "larger ones")
    return scores


def exact_logits(queries: np.ndarray, keys: np.ndarray, scale: float) -> np.ndarray:
    """``scale`` times the exact distance of each exact score from its row's largest one."""
    largest = [max(abs(int(bound)) for bound in (array.min(), array.max())) + 1 for array in (queries, keys)]
    whole = "O" not in (queries.dtype.kind, keys.dtype.kind)
    if whole and largest[0] * largest[1] * keys.shape[-1] < _EXACT // 2:
        scores = scores_of(queries.astype(np.float64), keys.astype(np.float64))
        with np.errstate(over="ignore"):
            return scale * (scores - scores.max(axis=-1, keepdims=True))
    scores = np.matmul(queries.astype(object), np.swapaxes(keys.astype(object), -1, -2))
    distance = scores - scores.max(axis=-1, keepdims=True)
    exact = Fraction(scale)
    # exp(-10^6) is zero, and floats hold -10^6 but not every integer below it.
    return np.frompyfunc(lambda d: float(max(exact * d, -(10**6))) if d else 0.0, 1, 1)(distance).astype(np.float64)


def softmax(scores: np.ndarray, scale: float) -> np.ndarray:
    """Softmax of ``scale * scores`` over the last axis."""
    with np.errstate(over="ignore", under="ignore"):
        weights = np.exp(scale * (scores - scores.max(axis=-1, keepdims=True)))
        return weights / weights.sum(axis=-1, keepdims=True)


def blocks(rows: int, scores_a_row: int) -> Iterator[slice]:
    """Slices over ``rows`` that keep to `Limits.numbers` scores, at least one row each."""
    block = max(1, current().numbers // max(1, scores_a_row))
    return (slice(start, start + block) for start in range(0, rows, block))
