"""Bags as arrays for the kernels: groups of bags with the same query, next token and tokens."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from dynamics.bags import Bags
from dynamics.support import checks
from dynamics.support.checks import read_only
from dynamics.support.limits import current


class Batch(NamedTuple):
    """Bags in groups. The kernels of SGD take many batches at once: the same arrays, with an axis of steps in front.

    Attributes
    ----------
    query, target : (groups,) int
        Row of Z and next token of each group.
    soft : (groups, C) or (0, 0)
        Distribution over next tokens in place of ``target``; without rows or columns if ``target`` has the next tokens.
    weight : (bags,)
    size : (groups,) int
        Bags of each group.
    indptr : (groups + 1,) int
        Group g has the tokens ``token[indptr[g]:indptr[g + 1]]``.
    token : (nnz,) int
    count : (entries,)
        The counts of each bag, one for each token of its group.
    """

    query: np.ndarray
    target: np.ndarray
    soft: np.ndarray
    weight: np.ndarray
    size: np.ndarray
    indptr: np.ndarray
    token: np.ndarray
    count: np.ndarray  # hides a method of tuples

    @classmethod
    def of(cls, bags: Bags, dtype: np.dtype, smoothing: float = 0.0, multiplicity: np.ndarray | None = None) -> Batch:
        """Each bag as a group of its own, read-only, in the precision of the weights; see `_smoothed`."""
        batch: Batch = bags._once(cls._of, dtype)
        return batch if multiplicity is None or smoothing == 0 else batch._smoothed(smoothing, multiplicity)

    @classmethod
    def _of(cls, bags: Bags, dtype: np.dtype) -> Batch:
        target = bags.target if bags.hard else read_only(np.full(len(bags), -1))
        soft = np.empty((0, 0)) if bags.hard else bags.target
        soft, weight, count = (read_only(array.astype(dtype)) for array in (soft, bags.weight, bags.count))
        alone = read_only(np.ones(len(bags), dtype=np.int64))
        return cls(bags.query, target, soft, weight, alone, bags.indptr, bags.token, count)

    def _smoothed(self, share: float, multiplicity: np.ndarray) -> Batch:
        """The batch with the targets ``(1 - share) target + share / M`` over the columns of Y."""
        columns, dtype = multiplicity.size, self.count.dtype
        checks.fits_in_memory("label_smoothing", self.query.size * columns * dtype.itemsize, "hold targets")
        soft = np.full((self.query.size, columns), share / multiplicity.sum(), dtype)
        if self.soft.shape[0]:
            soft[:, : self.soft.shape[1]] += (1 - share) * self.soft
        else:
            soft[np.arange(self.query.size), self.target] += dtype.type(1 - share)
        return self._replace(target=read_only(np.full(self.query.size, -1)), soft=read_only(soft))

    def alone(self, group: int) -> Batch:
        """A batch of one group, if each group is a single bag."""
        bag, entries = slice(group, group + 1), slice(self.indptr[group], self.indptr[group + 1])
        return Batch(
            self.query[bag],
            self.target[bag],
            self.soft[bag],
            self.weight[bag],
            self.size[bag],
            read_only(np.array([0, entries.stop - entries.start])),
            self.token[entries],
            self.count[entries],
        )

    def parts(self, columns: int) -> list[tuple[Batch, slice]]:
        """Batches of about `Limits.work` and at least one group, each with the slice of its bags.

        ``columns`` is the number of columns of Y: each entry is multiplied with all of them.
        """
        n = 1 + self.count.size * columns // current().work
        if n == 1:
            return [(self, slice(None))]
        bag = np.concatenate([[0], np.cumsum(self.size)])
        entry = np.concatenate([[0], np.cumsum(self.size * np.diff(self.indptr))])
        cuts = np.unique(np.searchsorted(entry, np.linspace(0, entry[-1], n + 1))).tolist()
        parts = []
        for lo, hi in itertools.pairwise(cuts):
            groups, bags = slice(lo, hi), slice(int(bag[lo]), int(bag[hi]))
            part = Batch(
                self.query[groups],
                self.target[groups],
                self.soft[groups],
                self.weight[bags],
                self.size[groups],
                read_only(self.indptr[lo : hi + 1] - self.indptr[lo]),
                self.token[self.indptr[lo] : self.indptr[hi]],
                self.count[entry[lo] : entry[hi]],
            )
            parts.append((part, bags))
        return parts
