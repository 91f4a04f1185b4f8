"""Sums over the stages of a step for large states, in one pass over memory (numba)."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynamics.support.compiled import kernel

_OPTIONS: dict[str, Any] = {"fastmath": {"reassoc", "contract"}}
# Numbers that a pass keeps in the processor's cache.
_BLOCK = 2048


@kernel(**_OPTIONS)
def add(slopes, stages, weights, size, state, out):
    """``state + size sum_j weights_j slopes[stages_j]`` into ``out``."""
    quads = stages.size - stages.size % 4
    for lo in range(0, state.size, _BLOCK):
        hi = min(lo + _BLOCK, state.size)
        for i in range(lo, hi):
            out[i] = state[i]
        for j in range(0, quads, 4):
            k0, k1, k2, k3 = slopes[stages[j]], slopes[stages[j + 1]], slopes[stages[j + 2]], slopes[stages[j + 3]]
            w0, w1, w2, w3 = weights[j], weights[j + 1], weights[j + 2], weights[j + 3]
            for i in range(lo, hi):
                out[i] += size * (w0 * k0[i] + w1 * k1[i] + w2 * k2[i] + w3 * k3[i])
        for j in range(quads, stages.size):
            k0, w0 = slopes[stages[j]], size * weights[j]
            for i in range(lo, hi):
                out[i] += w0 * k0[i]


@kernel(**_OPTIONS)
def errors(slopes, stages, fifth, third, old, new, rtol, atol):
    """Sums of squares over the state of both error estimates, each relative to the tolerance of its entry."""
    e5, e3 = np.empty(_BLOCK), np.empty(_BLOCK)
    sum5 = sum3 = 0.0
    for lo in range(0, old.size, _BLOCK):
        n = min(_BLOCK, old.size - lo)
        e5[:], e3[:] = 0.0, 0.0
        for j in range(stages.size):
            k, w5, w3 = slopes[stages[j]], fifth[j], third[j]
            for i in range(n):
                e5[i] += w5 * k[lo + i]
                e3[i] += w3 * k[lo + i]
        for i in range(n):
            scale = 1 / (atol + rtol * max(abs(old[lo + i]), abs(new[lo + i])))
            sum5 += (e5[i] * scale) ** 2
            sum3 += (e3[i] * scale) ** 2
    return sum5, sum3
