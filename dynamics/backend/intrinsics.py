"""Additions to numba's language: views without reference counts, bits of numbers, the treatment of subnormal numbers.

Kernels that use this name it in ``kernel(uses=..)``.
"""

from __future__ import annotations

from typing import Any

from dynamics.backend.compiled import chosen

_own: Any = chosen("views")
# The modules with the code, whose files `kernel` watches.
USES = (_own,)

# The array as read-only, so that a kernel compiles once for writable and for read-only arguments.
as_read_only: Any = _own.as_read_only
# The array without reference counting: this saves a tenth of a run of SGD with ten queries. The caller must keep the
# array alive.
borrowed: Any = _own.borrowed
# (buffer, rows, columns) -> the start of the buffer as a matrix, `borrowed`. A local buffer must be used again later,
# or it is freed.
matrix: Any = _own.matrix
# An integer with the same order as a float, and the float of such an integer; plain `njit` takes the float itself.
rank_of: Any = _own.rank_of
number_of: Any = _own.number_of
# The float with the bits of an int32, or of an int64.
float32_of_bits: Any = _own.float32_of_bits
float64_of_bits: Any = _own.float64_of_bits
# Chooses whether subnormal numbers are zero in this thread, and returns the choice before. When softmax saturates, a
# whole gradient may be subnormal in single precision, and each operation on such a number takes a hundred cycles.
# Without effect on processors that are not x86, and with plain `njit`.
underflow: Any = _own.underflow
