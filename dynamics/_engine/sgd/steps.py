"""Numba kernels that take many steps of SGD: only the rows of a batch's tokens move, and the others catch up later.

Their memory is taken from the system only where it is written to.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np

from dynamics._model import kernels
from dynamics._model.batch import Batch
from dynamics._model.gradient import kernel_of
from dynamics._model.kernels import first_integers
from dynamics._model.weights import Rule, Weights
from dynamics.backend import intrinsics
from dynamics.backend.compiled import address, call, kernel
from dynamics.backend.intrinsics import as_read_only, borrowed, matrix, underflow
from dynamics.optimizers import kernels as updates
from dynamics.optimizers.kernels import ascend, catch_up_row, kept
from dynamics.support.checks import read_only_views

# Bytes of a matrix that is not looked through as a whole while it is trained.
LARGE = 2**24
# Entries of large matrices that are looked through at once.
_NUMBERS_A_CHECK = 2**19

_OPTIONS: dict[str, Any] = {"fastmath": {"reassoc", "contract"}, "uses": (intrinsics, kernels, updates)}


class Memory(NamedTuple):
    """Arrays that the kernels keep beside the weights.

    Attributes
    ----------
    slopes : Weights
        Where gradients are added up; without Adam the velocity itself.
    first, second : Weights
        The velocity, or Adam's moments.
    last : 4 arrays of int
        The step that each row of Z, Y, V and the hidden layer was brought to; or each entry of Z, where that has as
        many.
    """

    slopes: Weights
    first: Weights
    second: Weights
    last: tuple[np.ndarray, ...]

    def copy(self) -> Memory:
        """A copy of all arrays; an array that stands in two places is copied once."""
        first, second, slopes = copy_of(self.first), copy_of(self.second), self.slopes
        slopes = first if slopes is self.first else copy_of(slopes)
        return Memory(slopes, first, second, tuple(np.copy(array) for array in self.last))


def copy_of(weights: Weights) -> Weights:
    """A copy of each array."""
    return Weights(*(np.copy(array) for array in weights))


def blank(shapes: Sequence[Sequence[int]], dtype: np.dtype, n: int) -> list[Weights]:
    """``n`` times zeros of these shapes that take memory where they are written to."""
    return [Weights(*(_zeros(shape, dtype) for shape in shapes)) for _ in range(n)]


def _zeros(shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
    size = math.prod(shape) * dtype.itemsize
    if size <= LARGE or not hasattr(mmap, "MADV_NOHUGEPAGE"):
        return np.zeros(shape, dtype)
    # Huge pages hold many rows, and would take them all with the first.
    # Shared memory, the default, is taken by reading, too.
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_NOHUGEPAGE)
    return np.ndarray(shape, dtype, memory)


def bounded(weights: Weights, last: Sequence[np.ndarray] | None, since: int) -> bool:
    """Whether the weights are finite and far from overflow.

    Parameters
    ----------
    weights : Weights
    last : 4 arrays of int, optional
        `Memory.last`, to look only through rows that moved after step ``since``. Default: all.
    since : int
    """
    limit = np.finfo(weights.Y.dtype).max / (4 * len(weights.Y))
    for array, moved_at in zip_longest(weights, last or ()):
        if moved_at is not None:
            moved = np.flatnonzero(moved_at > since)
            by_row = array.reshape(max(1, moved_at.size), -1)
            for part in np.array_split(moved, 1 + moved.size * by_row.shape[1] // _NUMBERS_A_CHECK):
                if not np.abs(by_row[part]).max(initial=0) < limit:
                    return False
        elif not np.abs(array).max(initial=0) < limit:
            return False
    return True


@kernel(inner=True, **_OPTIONS)
def _touch(index, now, rows, last, parameter, slope, first, second, rate, update):
    """Make the rows of ``index`` ready for the gradient of step ``now``, and list them once each; their number."""
    n = 0
    for row in index:
        if last[row] == now:
            continue
        if 0 < last[row] < now - 1:
            missed = now - 1 - last[row]
            catch_up_row(update, parameter[row], slope[row], first[row], second[row], rate, missed, now - 1)
        last[row] = now
        rows[n] = row
        n += 1
        before = kept(update, parameter)
        for i in range(slope.shape[1]):
            slope[row, i] *= before
    return n


@kernel(inner=True, **_OPTIONS)
def _lent(weights):
    """The same weights, `borrowed`."""
    Z, Y, V, hidden = borrowed(weights.Z), borrowed(weights.Y), borrowed(weights.V), borrowed(weights.hidden)
    return Weights(Z, Y, V, hidden, borrowed(weights.keys), borrowed(weights.queries), borrowed(weights.values))


@kernel(inner=True, **_OPTIONS)
def _in_rows(weights, last):
    """Z as so many rows as ``last`` has, which are its rows or its entries, and the others as they are."""
    n = last[0].size
    return matrix(weights.Z, n, weights.Z.size // max(1, n)), weights.Y, weights.V, weights.hidden


@kernel(nogil=True, **_OPTIONS)
def catch_up(weights, memory, update, now):
    """Bring every row to step ``now``, as if it had taken every step."""
    x, slopes, last = _in_rows(weights, memory.last), _in_rows(memory.slopes, memory.last), memory.last
    first, second = _in_rows(memory.first, last), _in_rows(memory.second, last)
    for k in range(4):
        for row in range(last[k].size):
            if 0 < last[k][row] < now:
                x_k, g, m, v = x[k][row], slopes[k][row], first[k][row], second[k][row]
                catch_up_row(update, x_k, g, m, v, update.rates[k], now - last[k][row], now)
                last[k][row] = now


def gradient_of(batches: Batch, weights: Weights, rule: Rule, slopes: Weights) -> int:
    """Address of loss and gradient for `sgd_steps` with such arguments; ``weights`` are read-only.

    Compiled once for all optimizers and flows.
    """
    batch = Batch(*read_only_views(array[0] for array in batches))
    return address(kernel_of(weights, rule), (batch, 0, weights, rule, slopes, np.empty((0, 0), weights.Z.dtype), True))


@kernel(nogil=True, **_OPTIONS)
def sgd_steps(gradient, batches, groups, weights, rule, memory, update, done, losses):
    """Take ``losses.size`` steps from step ``done``; returns how many gave a finite loss, and stops at the first other.

    ``gradient`` is from `gradient_of`. ``batches`` is a `Batch` of arrays with a row for every step, or a single row
    for all steps; only the first ``groups`` groups count. The first four ``weights`` move by the rule ``update`` and
    the velocity or moments in ``memory``. A step touches only the rows of its queries and tokens, or the entries of Z.
    ``memory.last`` has the last step of each row or entry, and `catch_up` brings all to the same step.
    """
    before = underflow(True)
    finite = _sgd_steps(gradient, batches, groups, weights, rule, memory, update, done, losses)
    underflow(before)
    return finite


@kernel(inner=True, **_OPTIONS)
def _sgd_steps(gradient, batches, groups, weights, rule, memory, update, done, losses):
    """`sgd_steps` with subnormal numbers taken for zero in gradients and weights."""
    query, target, soft, weight = (
        borrowed(batches[0]), borrowed(batches[1]), borrowed(batches[2]), borrowed(batches[3]),
    )  # fmt: skip
    size, indptr, token, count = (
        borrowed(batches[4]), borrowed(batches[5]), borrowed(batches[6]), borrowed(batches[7]),
    )  # fmt: skip
    weights, slopes = _lent(weights), _lent(memory.slopes)
    first, second = _lent(memory.first), _lent(memory.second)
    Z, Y, V, H = weights.Z, weights.Y, weights.V, weights.hidden
    rates, last = update.rates, memory.last
    last = (borrowed(last[0]), borrowed(last[1]), borrowed(last[2]), borrowed(last[3]))
    own = (_in_rows(weights, last), _in_rows(slopes, last), _in_rows(first, last), _in_rows(second, last))
    # As `gradient_flow` passes them.
    keys, queries, values = as_read_only(weights.keys), as_read_only(weights.queries), as_read_only(weights.values)
    seen = Weights(as_read_only(Z), as_read_only(Y), as_read_only(V), as_read_only(H), keys, queries, values)
    nothing, always = np.empty((0, 0), Z.dtype), losses.size > 0  # a literal True would be a type of its own
    n = max(Y.shape[0], V.shape[0], H.shape[0])
    every, cells = first_integers(n), np.empty(token.shape[1], np.int64)
    rows = (np.empty(cells.size, np.int64), np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64))
    touched = np.zeros(4, np.int64)
    for step in range(losses.size):
        s, now = min(step, query.shape[0] - 1), done + step + 1
        tokens, n = token[s][: indptr[s][groups[s]]], groups[s]
        for g in range(groups[s] if last[0].size > Z.shape[0] else 0):
            n = indptr[s, g + 1]
            for i in range(indptr[s, g], n):
                cells[i] = query[s, g] * Z.shape[1] + token[s, i]
        of_z = cells[:n] if last[0].size > Z.shape[0] else query[s][:n]
        of_y = tokens if V.shape[0] + H.shape[0] == 0 and not rule.residual else every[: Y.shape[0]]
        for k in range(4):
            index = (of_z, of_y, tokens[: tokens.size * min(1, V.shape[0])], every[: H.shape[0]])[k]
            x, g, m, v = own[0][k], own[1][k], own[2][k], own[3][k]
            touched[k] = _touch(index, now, rows[k], last[k], x, g, m, v, rates[k], update)
        batch = Batch(
            as_read_only(query[s]), as_read_only(target[s]), as_read_only(soft[s]), as_read_only(weight[s]),
            as_read_only(size[s]), as_read_only(indptr[s]), as_read_only(token[s]), as_read_only(count[s]),
        )  # fmt: skip
        losses[step] = call(gradient, (batch, groups[s], seen, rule, slopes, nothing, always))
        if not np.isfinite(losses[step]):
            return step
        for k in range(4):
            x, g, m, v = own[0][k], own[1][k], own[2][k], own[3][k]
            if touched[k] == last[k].size:
                ascend(update, x.ravel(), g.ravel(), m.ravel(), v.ravel(), rates[k], now)
                continue
            for row in rows[k][: touched[k]]:
                ascend(update, x[row], g[row], m[row], v[row], rates[k], now)
    return losses.size
