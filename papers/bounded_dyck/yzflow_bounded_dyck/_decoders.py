"""A linear decoder that reads the last unmatched bracket from features that are the stack."""

from __future__ import annotations

import numpy as np

from dynamics.support import checks
from yzflow_bounded_dyck import DyckLanguage

# Rest of a matched pair after rounding, as a share of one of its brackets: two exponentials, their products, a sum.
_LEFT_BY_ROUNDING = 4 * np.finfo(float).eps


def closing_weights(coordinates: np.ndarray, language: DyckLanguage) -> np.ndarray:
    """Weights (k, D) of the pairs; with them the last unmatched bracket outweighs all others, at each query.

    Level by level: the least weight that outweighs any other type's brackets at lower levels, times 1 + 1/D.
    ``coordinates`` has the contribution of an unmatched bracket, (states, k D).

    Raises
    ------
    ValueError
        If the rounding error of one matched pair could outweigh the last bracket.
    """
    k, D = language.n_types, language.max_depth
    weights, types = np.ones((k, D)), np.arange(k)
    if k == 1:
        return weights
    levels = []
    for level in range(D):
        at = [language.open(types, level + 1), *([language.close(types, level + 1)] if level < D - 1 else [])]
        rows = coordinates[np.concatenate(at)].reshape(-1, k, D)
        levels.append(rows)
        below = (rows[:, :, :level] * weights[:, :level]).sum(axis=2)
        for kind in types[: k * (level > 0)]:
            asked = [kind, *range(k, len(rows))]  # it is the last one after itself, and after any closed bracket
            most = np.delete(below[asked], kind, axis=1).max(axis=1)
            weights[kind, level] = (1 + 1 / D) * (most / rows[asked, kind, level]).max()
    for level, rows in enumerate(levels):
        ahead = (rows[:, :, level] * weights[:, level]).min(axis=1) / (D + 1)
        if (ahead <= _LEFT_BY_ROUNDING * (rows * weights).max(axis=(1, 2))).any():
            rule = "be shallower, or `scale` smaller, for float64 (with decoder=False `exact_head` reads the stack)"
            raise checks.reject("language", rule, language)
    return weights
