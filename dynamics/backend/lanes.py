"""A row is a SIMD vector with one number from each of `LANES` flows. Kernels use a row like a float.

Compiled, a row is an LLVM vector, which becomes as many vector instructions as the processor needs; in Python and under
plain `numba.njit` it is a NumPy array. Loops over the lanes would be slower: the compiler cannot know that the arrays
do not overlap, and its checks take longer than the arithmetic (2.5 times, measured). Operations act lane by lane, so
that no bit of a flow depends on its lane or on the other flows.

Kernels that use this name it in ``kernel(uses=..)``.
"""

from __future__ import annotations

from typing import Any

from dynamics.backend.compiled import chosen
from dynamics.backend.modes import LANES as LANES

_own: Any = chosen("rows")
# The modules with the code, whose files `kernel` watches.
USES = (_own,)

# Load or store row ``i`` of an array whose last axis are the lanes; `store` also takes a number.
load: Any = _own.load
store: Any = _own.store
# Load or store the row that starts at entry ``i`` of an array of one axis.
load_at: Any = _own.load_at
store_at: Any = _own.store_at
# A row with one number in every lane.
filled: Any = _own.filled
# The larger of two, lane by lane; the second if one of them is nan.
larger: Any = _own.larger
# (mask, a, b) -> a where the mask is positive, b elsewhere.
where: Any = _own.where
sqrt: Any = _own.sqrt
floor: Any = _own.floor
absolute: Any = _own.absolute
# 2^k, for whole k from -1022 to 1023.
power_of_two: Any = _own.power_of_two
# Sum and largest entry of a row, by joining halves, so that they are the same on every processor; `highest` does not
# handle nan. Only these two mix lanes: they are for kernels whose rows are not flows.
total: Any = _own.total
highest: Any = _own.highest
