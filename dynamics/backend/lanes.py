"""A row of numbers, one of each of `LANES` flows side by side, that kernels calculate with as with one number.

Compiled, a row is a vector of LLVM's, which become as many vector instructions as the processor needs; as Python and
under plain `numba.njit`, it is a NumPy array. Loops over the lanes would not do: the compiler cannot know that the
arrays within do not overlap, and what it does to find out takes longer than the arithmetic (2.5 times, measured). No
instruction of theirs mixes lanes, so that no bit of a flow depends on which lane it is in or on what the others hold.

Kernels that use this name it in ``kernel(uses=..)``.
"""

from __future__ import annotations

from typing import Any

from dynamics.backend.compiled import chosen
from dynamics.backend.modes import LANES as LANES

_own: Any = chosen("rows")
# The modules that the code of these stands in.
USES = (_own,)

# Row ``i`` of an array whose last axis are the lanes; what is stored may be a number.
load: Any = _own.load
store: Any = _own.store
# The row that starts at entry ``i`` of an array of one axis.
load_at: Any = _own.load_at
store_at: Any = _own.store_at
# A row of one number.
filled: Any = _own.filled
# The larger one of two; the second where one of them is nan.
larger: Any = _own.larger
# The second where the first is positive, the third elsewhere.
where: Any = _own.where
sqrt: Any = _own.sqrt
floor: Any = _own.floor
absolute: Any = _own.absolute
# 2^k, for whole k from -1022 to 1023.
power_of_two: Any = _own.power_of_two
# The sum and the largest of a row, half with half, so that they are the same on every processor; the largest heeds no
# nan. They alone mix lanes, and are for kernels whose rows are not flows.
total: Any = _own.total
highest: Any = _own.highest
