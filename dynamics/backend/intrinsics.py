"""Additions to numba's language: views that are not counted, bits of numbers, the treatment of what underflows.

Kernels that use this name it in ``kernel(uses=..)``.
"""

from __future__ import annotations

from typing import Any

from dynamics.backend.compiled import chosen

_own: Any = chosen("views")
# The modules that the code of these stands in.
USES = (_own,)

# The same array, not to be written to, so that a kernel compiles once whether its caller may write or not.
as_read_only: Any = _own.as_read_only
# The same array without a share in its memory, of whose parts no references are counted: a tenth of a run of SGD with
# ten queries. Somebody else must hold the array meanwhile, as a caller does.
borrowed: Any = _own.borrowed
# (buffer, rows, columns) -> its start as a matrix, `borrowed`: of a local buffer, for use where that is used again.
matrix: Any = _own.matrix
# An integer that is larger where a number is, and the number of such an integer; without numba's inside the number.
rank_of: Any = _own.rank_of
number_of: Any = _own.number_of
# The float whose bits are those of an int32, or of an int64.
float32_of_bits: Any = _own.float32_of_bits
float64_of_bits: Any = _own.float64_of_bits
# Chooses whether numbers below the normal ones are zero in this thread, and returns what was chosen before. Where
# softmax saturates, all of a gradient may lie there in single precision, and processors take a hundred cycles for each
# operation on such a number. Those that are not x86 go on as they are, and so do all without numba's inside.
underflow: Any = _own.underflow
