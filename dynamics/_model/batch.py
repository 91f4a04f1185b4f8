"""Bags in the form that the kernels take them: groups of bags that share query, next token and tokens."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dynamics.bags import Bags
from dynamics.support.checks import read_only


class Batch(NamedTuple):
    """Bags in groups. The kernels of SGD take many at once: the same arrays, with an axis of steps before the others.

    Attributes
    ----------
    query, target : (groups,) int
        Row of Z and next token of each group.
    soft : (groups, C) or (0, 0)
        Distribution over next tokens in place of ``target``; without rows, or without columns, next tokens are given.
    weight : (bags,)
    size : (groups,) int
        Bags of each group.
    indptr : (groups + 1,) int
        Group g has the tokens ``token[indptr[g]:indptr[g + 1]]``.
    token : (nnz,) int
    count : (entries,)
        A row of counts, one for each token of its group, for each bag.
    """

    query: np.ndarray
    target: np.ndarray
    soft: np.ndarray
    weight: np.ndarray
    size: np.ndarray
    indptr: np.ndarray
    token: np.ndarray
    count: np.ndarray  # in place of a method of tuples

    @classmethod
    def of(cls, bags: Bags, dtype: np.dtype) -> Batch:
        """Each bag as a group of its own, read-only, in the precision of the weights."""
        target = bags.target if bags.hard else read_only(np.full(len(bags), -1))
        soft = np.empty((0, 0)) if bags.hard else bags.target
        soft, weight, count = (read_only(array.astype(dtype)) for array in (soft, bags.weight, bags.count))
        alone = read_only(np.ones(len(bags), dtype=np.int64))
        return cls(bags.query, target, soft, weight, alone, bags.indptr, bags.token, count)
