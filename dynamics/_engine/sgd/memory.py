"""Memory of a run from step to step, which is taken from the system only where it is written to."""

from __future__ import annotations

import math
import mmap
from collections.abc import Sequence
from itertools import zip_longest
from typing import NamedTuple

import numpy as np

from dynamics._model.weights import Weights

# Bytes of a matrix that is not looked through as a whole while it is trained.
LARGE = 2**24
# Entries of large matrices that are looked through at once.
_NUMBERS_A_CHECK = 2**19


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
        """A copy of all arrays, in which what is one array stays one."""
        first, second, slopes = copy_of(self.first), copy_of(self.second), self.slopes
        slopes = first if slopes is self.first else copy_of(slopes)
        return Memory(slopes, first, second, tuple(np.copy(array) for array in self.last))


def copy_of(weights: Weights) -> Weights:
    """A copy of each array."""
    return Weights(*(np.copy(array) for array in weights))


def zeros(shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
    """Zeros that take memory where they are written to."""
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
