r"""In how many dimensions one unit can average every set evenly: exactly min(2q, N - 1), with exact numbers.

Sanford, Hsu, Telgarsky (NeurIPS 2023, arXiv 2306.02896): "iff m >~ q". The attention of a query tends to the even one
on a set y exactly if the hull of y's keys is a face of the hull of all keys. Points of which every q span a face are
called q-neighbourly; that they need 2q dimensions, unless they are the corners of a simplex, is classical (Ziegler,
Lectures on Polytopes, chapter 0). `yzflow_sparse_averaging.proofs.faces` has the proof and what smaller m must err by.
"""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import sympy as sp
from numpy.typing import ArrayLike
from sympy.polys.matrices import DomainMatrix

from dynamics.support import checks
from yzflow_sparse_averaging.keys import checked_sizes
from yzflow_sparse_averaging.moments import moment_curve

__all__ = ["LostSet", "every_set_keys", "every_set_query", "least_dimension", "least_error_of_sets", "lost_set"]


@dataclass(frozen=True)
class LostSet:
    """A set of q tokens that no query prefers to all others, with its reason; found by `lost_set`.

    Attributes
    ----------
    subset : (q,) array of int
        y, indices from 0.
    inside, outside : dict of int to Fraction
        Weights of two convex combinations of keys that are the same point, by token. ``inside`` has tokens of y alone.
    share : Fraction
        b, the weight that ``outside`` has off y: above 1/2 for q <= N/2, and 1 for N >= 3q.
    error : float
        Attention errs on y by at least this, ``||a - 1_y/q||_1``, for any query and temperature: `least_error_of_sets`.
    """

    subset: np.ndarray
    inside: dict[int, Fraction]
    outside: dict[int, Fraction]
    share: Fraction
    error: float


def least_dimension(n_tokens: int, q: int) -> int:
    """The least m with which some keys give every set of q tokens a query: min(2q, N - 1); 0 for q = N.

    Exact numbers, keys that do not depend on the set. `every_set_keys` has the keys, `lost_set` a set that smaller
    dimensions leave out. In p bits a number, m p is of order q at least (Theorem 4).

    Examples
    --------
    >>> least_dimension(100, 3), least_dimension(5, 3)
    (6, 4)
    """
    n_tokens, q = checked_sizes(n_tokens, q)
    return min(2 * q, n_tokens - 1) if q < n_tokens else 0


def every_set_keys(n_tokens: int, q: int) -> np.ndarray:
    """Keys of `least_dimension` numbers, as Python's integers: the moment curve, or the corners of a simplex."""
    n_tokens, q = checked_sizes(n_tokens, q)
    if 2 * q <= n_tokens - 1:
        return moment_curve(n_tokens, q).keys()
    return np.eye(n_tokens, least_dimension(n_tokens, q), dtype=int).astype(object)


def every_set_query(n_tokens: int, q: int, subset: ArrayLike) -> np.ndarray:
    """The query of a set for `every_set_keys`: scores are equal on the set, and less by at least one off it."""
    n_tokens, q = checked_sizes(n_tokens, q)
    curve = moment_curve(n_tokens, q)
    query = curve.query(subset)
    if 2 * q <= n_tokens - 1:
        return query
    member = np.zeros(n_tokens, dtype=int)
    member[checks.index_array("subset", subset, upper=n_tokens)] = 1
    return (member - member[-1])[: least_dimension(n_tokens, q)].astype(object)


def least_error_of_sets(share: float, q: int) -> float:
    r"""The error that a set must have of which a share b of a common point lies off it (`LostSet`).

    The least eps >= 0 with ``1 - x <= x^b (1 + x)^(1-b)``, x = q eps/2: 1/q for b = 1, and 2/(3q) for b = 1/2.

    Parameters
    ----------
    share : float
        b, in (0, 1].
    q : int
    """
    share, q = checks.positive("share", share), checks.integer("q", q, minimum=1)
    if share > 1:
        raise checks.reject("share", "be at most 1", share)
    low, high = 0.0, 0.5  # at x = 1/2 the right side is sqrt(3)^(1-b)/2 or more
    for _ in range(60):
        x = (low + high) / 2
        low, high = (low, x) if 1 - x <= x**share * (1 + x) ** (1 - share) else (x, high)
    return 2 * low / q


def lost_set(keys: ArrayLike, q: int) -> LostSet:
    r"""A set of q tokens that no query can have the attention evenly on, for keys of fewer than min(2q, N - 1) numbers.

    Of m + 2 keys some weights with sum zero add to nothing (Radon): those above zero and those below are two convex
    combinations of one point. The fewer of both are q tokens at most; a set of q tokens has them and not all of the
    others. Any query's mean score is the same over both. In exact rational arithmetic, for floats as they are stored.

    Parameters
    ----------
    keys : (N, m) array of numbers
        Integers, fractions or floats.
    q : int
        Below N.

    Raises
    ------
    ValueError
        If the keys have `least_dimension` numbers or more.
    """
    table = np.asarray(keys, dtype=object)
    if table.ndim != 2 or not table.size:
        raise checks.reject("keys", "be an (N, m) array", f"shape {table.shape}")
    for number in table.ravel():
        if not isinstance(number, numbers.Rational | float):
            raise checks.reject("keys", "hold integers, fractions or floats", checks.brief(number))
        if isinstance(number, float) and not np.isfinite(number):
            raise checks.reject("keys", "be finite", "nan or infinity")
    n_tokens, m = table.shape
    _, q = checked_sizes(n_tokens, q)
    needed = least_dimension(n_tokens, q)
    if m >= needed:
        raise checks.reject("keys", f"have fewer than {needed} numbers each, with which no set need be lost", m)
    weights = _dependency(table[: m + 2])
    signs = [{i: sign * w for i, w in enumerate(weights) if sign * w > 0} for sign in (1, -1)]
    inside, outside = sorted(signs, key=len)
    total = sum(inside.values(), Fraction(0))
    inside, outside = ({i: w / total for i, w in part.items()} for part in (inside, outside))
    spare = [i for i in range(n_tokens) if i not in inside and i not in outside]
    subset = [*inside, *spare, *sorted(outside, key=lambda i: outside[i])][:q]
    share = sum((w for i, w in outside.items() if i not in subset), Fraction(0))
    return LostSet(np.sort(subset), inside, outside, share, least_error_of_sets(float(share), q))


def _dependency(points: np.ndarray) -> list[Fraction]:
    """Weights of sum zero, not all zero, with which the points add to nothing."""
    rows = [
        [*(sp.Rational(*Fraction(number).as_integer_ratio()) for number in point), sp.Integer(1)] for point in points
    ]
    matrix = DomainMatrix.from_Matrix(sp.Matrix(rows).T).to_field()
    first = matrix.nullspace().to_Matrix().row(0)
    return [Fraction(int(number.p), int(number.q)) for number in first]
