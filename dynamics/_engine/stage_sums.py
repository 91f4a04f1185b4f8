"""Sums over the stages of a step for large states, in one pass over memory (numba)."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynamics._engine.tableau import E3, E5, A
from dynamics.backend.compiled import kernel

_OPTIONS: dict[str, Any] = {"fastmath": {"reassoc", "contract"}}
# Numbers that a pass keeps in the processor's cache.
_BLOCK = 2048


@kernel(inner=True, **_OPTIONS)
def _add(slopes, stages, weights, lo, start, out):
    """Write ``start + sum_j weights_j slopes[stages_j, lo:]`` into ``out``, at most a block long."""
    quads, hi = stages.size - stages.size % 4, lo + out.size
    for i in range(out.size):
        out[i] = start[i]
    for j in range(0, quads, 4):
        k0, k1 = slopes[stages[j]][lo:hi], slopes[stages[j + 1]][lo:hi]
        k2, k3 = slopes[stages[j + 2]][lo:hi], slopes[stages[j + 3]][lo:hi]
        w0, w1, w2, w3 = weights[j], weights[j + 1], weights[j + 2], weights[j + 3]
        for i in range(out.size):
            out[i] += w0 * k0[i] + w1 * k1[i] + w2 * k2[i] + w3 * k3[i]
    for j in range(quads, stages.size):
        k0, w0 = slopes[stages[j]][lo:hi], weights[j]
        for i in range(out.size):
            out[i] += w0 * k0[i]


@kernel(inner=True, **_OPTIONS)
def _squares(e5, e3, old, new, rtol, atol):
    """Sums of squares of both error estimates, each relative to the tolerance of its entry."""
    sum5 = sum3 = 0.0
    for i in range(old.size):
        scale = 1 / (atol + rtol * max(abs(old[i]), abs(new[i])))
        sum5 += (e5[i] * scale) ** 2
        sum3 += (e3[i] * scale) ** 2
    return sum5, sum3


@kernel(**_OPTIONS)
def add(slopes, stages, weights, size, state, out):
    """Write ``state + size sum_j weights_j slopes[stages_j]`` into ``out``."""
    scaled = np.empty(stages.size)
    for j in range(stages.size):
        scaled[j] = size * weights[j]
    for lo in range(0, state.size, _BLOCK):
        _add(slopes, stages, scaled, lo, state[lo : lo + _BLOCK], out[lo : lo + _BLOCK])


@kernel(**_OPTIONS)
def errors(slopes, stages, fifth, third, old, new, rtol, atol):
    """Sums of squares over the state of both error estimates, each relative to the tolerance of its entry."""
    e5, e3, zero = np.empty(_BLOCK), np.empty(_BLOCK), np.zeros(_BLOCK)
    sum5 = sum3 = 0.0
    for lo in range(0, old.size, _BLOCK):
        x, y = old[lo : lo + _BLOCK], new[lo : lo + _BLOCK]
        _add(slopes, stages, fifth, lo, zero, e5[: x.size])
        _add(slopes, stages, third, lo, zero, e3[: x.size])
        more5, more3 = _squares(e5, e3, x, y, rtol, atol)
        sum5 += more5
        sum3 += more3
    return sum5, sum3


@kernel(**_OPTIONS)
def add_products(bags, factors, residuals, stages, weights, size, state, out):
    """Write ``state + size sum_j weights_j factors[stages_j] residuals[stages_j]`` for tokens of a single bag."""
    indptr, token, row = bags
    weighted = np.empty(stages.size)
    for bag in range(indptr.size - 1):
        for entry in range(indptr[bag], indptr[bag + 1]):
            if row[entry] < 0:
                for j in range(stages.size):
                    weighted[j] = size * weights[j] * factors[stages[j], entry]
                _add(residuals[bag], stages, weighted, 0, state[token[entry]], out[token[entry]])


@kernel(**_OPTIONS)
def errors_of_products(bags, factors, residuals, stages, fifth, third, old, new, rtol, atol):
    """The sums of `errors` over the rows of tokens of a single bag."""
    indptr, token, row = bags
    own5, own3 = np.empty(stages.size), np.empty(stages.size)
    e5, e3, zero = np.empty(old.shape[1]), np.empty(old.shape[1]), np.zeros(old.shape[1])
    sum5 = sum3 = 0.0
    for bag in range(indptr.size - 1):
        for entry in range(indptr[bag], indptr[bag + 1]):
            if row[entry] < 0:
                for j in range(stages.size):
                    own5[j] = fifth[j] * factors[stages[j], entry]
                    own3[j] = third[j] * factors[stages[j], entry]
                _add(residuals[bag], stages, own5, 0, zero, e5)
                _add(residuals[bag], stages, own3, 0, zero, e3)
                more5, more3 = _squares(e5, e3, old[token[entry]], new[token[entry]], rtol, atol)
                sum5 += more5
                sum3 += more3
    return sum5, sum3


def _sparse(*rows: np.ndarray) -> tuple[np.ndarray, ...]:
    """Columns in which some row of coefficients is not zero, and the coefficients in them."""
    stages = np.flatnonzero(np.any(rows, axis=0))
    return stages, *(row[stages] for row in rows)


SPARSE = [_sparse(row) for row in A]
ERRORS = _sparse(E5, E3)
