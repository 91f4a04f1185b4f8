"""`dynamics.backend.intrinsics` in NumPy: in Python, or compiled by plain `numba.njit`."""

from __future__ import annotations

import numpy as np

from dynamics.backend._plain import primitive


@primitive
def same(value):
    return value


@primitive
def matrix(buffer, rows, columns):
    return buffer.ravel()[: rows * columns].reshape(rows, columns)


@primitive
def float32_of_bits(bits):
    return np.int32(bits).view(np.float32)


@primitive
def float64_of_bits(bits):
    return np.int64(bits).view(np.float64)


as_read_only = borrowed = rank_of = number_of = underflow = same
