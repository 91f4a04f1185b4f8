"""The moment curve: q-sparse averaging with one unit of dimension m = 2q and unbounded precision.

Source: Sanford, Hsu, Telgarsky (NeurIPS 2023), arXiv 2306.02896, the remark on infinite precision under Theorem 2.
Every q points on the curve (t, t^2, .., t^{2q}) span a face of the convex hull of all (the cyclic polytope is
neighbourly), and the polynomial ``-prod_{j in y} (t - j)^2`` is the supporting functional: all numbers are integers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from dynamics.support import checks
from yzflow_sparse_averaging.keys import as_subset, temperature


@dataclass(frozen=True)
class MomentCurve:
    """Keys and queries of the construction in exact integers.

    Attributes
    ----------
    n_tokens, q : int
    """

    n_tokens: int
    q: int

    def __post_init__(self):
        # Kept as Python's integers, which are exact at any size.
        object.__setattr__(self, "n_tokens", checks.integer("n_tokens", self.n_tokens, minimum=1))
        object.__setattr__(self, "q", checks.integer("q", self.q, minimum=1))
        if self.q > self.n_tokens:
            raise checks.reject("q", f"be at most `n_tokens` = {self.n_tokens}", self.q)

    @property
    def dimension(self) -> int:
        """m = 2q."""
        return 2 * self.q

    def keys(self) -> np.ndarray:
        """u_i = (i, i^2, .., i^{2q}) for i = 1..N: (N, 2q) of Python integers, read-only."""
        return _curve(self.n_tokens, self.dimension)

    def query(self, subset: ArrayLike) -> np.ndarray:
        """Coefficients of t, .., t^{2q} in -prod_{j in y} (t - j)^2: (2q,) Python integers; indices count from 0."""
        polynomial = [-1]
        for position in self._positions(subset):
            for _ in range(2):
                polynomial = [
                    high - position * low for high, low in zip([0, *polynomial], [*polynomial, 0], strict=True)
                ]
        return np.array(polynomial[1:], dtype=object)

    def scores(self, subset: ArrayLike) -> np.ndarray:
        """<query, u_i> for every token: (N,) Python integers, equal on the subset and at least 1 less off it."""
        return self.keys() @ self.query(subset)

    def gap(self, subset: ArrayLike) -> int | None:
        """Least difference of a score on the subset and one off it; None if nothing is off it, or scores on it differ.

        At least 1: it is the least prod_j (i - j)^2 over integers i off the subset.
        """
        subset, scores = as_subset("subset", subset, n_tokens=self.n_tokens), self.scores(subset)
        inside, outside = scores[subset], np.delete(scores, subset)
        if outside.size == 0 or inside.min() != inside.max():
            return None
        return int(inside[0] - outside.max())

    def temperature(self, error: float) -> float:
        """tau = ln(2 (N - q)/(q eps)), with which attention is within eps of 1_y/q in L1."""
        return temperature(n_tokens=self.n_tokens, q=self.q, error=error, rho=0.0)

    def attention(self, subset: ArrayLike, *, error: float) -> np.ndarray:
        """Softmax of tau times the scores, whose differences are taken in integers: (N,), within ``error`` of 1_y/q."""
        scores, tau = self.scores(subset), self.temperature(error)
        top = scores.max()
        # Beyond exp(-745) a float64 is zero, and the integers may be too large for one.
        weights = np.array([math.exp(-tau * min(int(top - score), 10_000)) for score in scores])
        return weights / weights.sum()

    def query_bits(self, subset: ArrayLike) -> int:
        """Bits of the query with numbers of their own lengths: for each coefficient its length and a sign."""
        return sum(int(coefficient).bit_length() + 1 for coefficient in self.query(subset))

    def number_bits(self) -> int:
        """Bits p of one number when all have the same: those of the longest coefficient, which the last q tokens have.

        A query of m p bits is about 4 q^2 log2(N) bits; with numbers of their own lengths it is about half of that.
        """
        last = self.query(np.arange(self.n_tokens - self.q, self.n_tokens))
        return max(int(coefficient).bit_length() for coefficient in last) + 1

    def _positions(self, subset: ArrayLike) -> list[int]:
        subset = as_subset("subset", subset, n_tokens=self.n_tokens)
        if subset.size != self.q:
            raise checks.reject("subset", f"hold q = {self.q} indices", subset.size)
        return [int(i) + 1 for i in subset]


@lru_cache(maxsize=4)
def _curve(n_tokens: int, dimension: int) -> np.ndarray:
    # Integers of up to 2q log2(N) bits each.
    size = n_tokens * dimension * (28 + dimension * n_tokens.bit_length() // 16)
    checks.fits_in_memory("n_tokens", size, "list the keys")
    points = np.array([[i**k for k in range(1, dimension + 1)] for i in range(1, n_tokens + 1)], dtype=object)
    points.flags.writeable = False
    return points


def moment_curve(n_tokens: int, q: int) -> MomentCurve:
    """The exact construction of q-sparse averaging over N tokens with m = 2q.

    Examples
    --------
    >>> curve = moment_curve(6, 2)
    >>> curve.scores([1, 4])  # tokens 2 and 5
    array([84, 100, 96, 96, 100, 84], dtype=object)
    >>> curve.gap([1, 4])
    4
    """
    return MomentCurve(n_tokens, q)


def is_face(subset: ArrayLike, *, n_tokens: int, dimension: int) -> bool:
    """Whether the chosen points on the moment curve are the vertices of a face of the hull of all N (Gale's evenness).

    They are when at most ``dimension - q`` of the subset's runs of consecutive positions are odd and touch neither end.
    With dimension 2q there are at most q such runs, and every q-subset is a face; with 2q - 1 it fails for q isolated
    inner points.

    Source: Ziegler, Lectures on Polytopes, Theorem 0.7 and Exercise 0.8.
    """
    n_tokens = checks.integer("n_tokens", n_tokens, minimum=1)
    subset = as_subset("subset", subset, n_tokens=n_tokens)
    dimension = checks.integer("dimension", dimension, minimum=2)
    if n_tokens <= dimension:  # a simplex, or less: every subset is a face
        return True
    runs = np.split(subset, np.flatnonzero(np.diff(subset) > 1) + 1)
    odd = sum(run.size % 2 for run in runs if run[0] > 0 and run[-1] < n_tokens - 1)
    return int(odd) <= dimension - subset.size


def no_face_witness(subset: Sequence[int], *, n_tokens: int) -> tuple[dict[int, Fraction], dict[int, Fraction]] | None:
    """Proof that a q-subset of isolated inner points is no face in dimension 2q - 1: a point of both hulls.

    2q + 1 points of the curve, alternately off and on the subset, have one affine dependency in dimension 2q - 1 and
    its signs alternate (Radon): a convex combination of the subset equals one of points off it, so that no query
    scores all of the subset above all others.

    Returns
    -------
    inside, outside : dict of int to Fraction
        Weights of either combination, each with sum 1, by index from 0. None if the subset is not isolated and inner.
    """
    n_tokens = checks.integer("n_tokens", n_tokens, minimum=1)
    members = as_subset("subset", subset, n_tokens=n_tokens)
    if members[0] == 0 or members[-1] == n_tokens - 1 or (np.diff(members) < 2).any():
        return None
    # Each member, the point before it, and the one after the last.
    kept = sorted({int(i) for i in members} | {int(i) - 1 for i in members} | {int(members[-1]) + 1})
    # A dependency of points t_k on a curve of degree 2q - 1 has the weights of the divided difference of order 2q.
    weights = [Fraction(1, math.prod(a - b for b in kept if b != a)) for a in kept]
    total = sum((abs(weight) for weight in weights), Fraction(0)) / 2
    inside = {point: abs(weight) / total for point, weight in zip(kept, weights, strict=True) if point in members}
    outside = {point: abs(weight) / total for point, weight in zip(kept, weights, strict=True) if point not in members}
    return inside, outside
