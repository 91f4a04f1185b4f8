"""The prefixes of (16) and (17): open brackets, then a matched pair; the query is its closing bracket."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from dynamics import Layer
from yzflow_bounded_dyck import DyckLanguage, balance


def stacks(language: DyckLanguage) -> Iterator[tuple[int, int, list[list[int]]]]:
    """(j, d, prefixes): for each query close (j, d), the prefixes w, open j, close j for all w of d open brackets."""
    kinds = range(language.n_types)
    for j, d in itertools.product(kinds, range(1, language.max_depth)):
        yield j, d, [[2 * kind for kind in w] + [2 * j, 2 * j + 1] for w in itertools.product(kinds, repeat=d)]


def sums(layer: Layer, language: DyckLanguage, prefixes: Sequence[Sequence[int]]) -> np.ndarray:
    """u, the sums before LN (16), after prefixes of one length: (prefixes, width)."""
    u = balance.contributions(layer, language)
    states = np.array([language.state_sequence(prefix) for prefix in prefixes])
    return u[states[:, -1], states.T].sum(axis=0)


def nearest(sums: np.ndarray, prefixes: Sequence[Sequence[int]]) -> tuple[int, int]:
    """w* and w' of (17), by index: the smallest sum, and the smallest with another last unmatched type."""
    norms, last = np.linalg.norm(sums, axis=1), np.array([prefix[-3] for prefix in prefixes])
    first = int(norms.argmin())
    return first, int(np.where(last != last[first], norms, np.inf).argmin())
