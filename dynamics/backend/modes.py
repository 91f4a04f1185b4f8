"""How kernels are made in this process: by numba and its inside, by plain `numba.njit`, or not at all."""

from __future__ import annotations

import os

import numba

# NUMBA_DISABLE_JIT=1: kernels run as the Python that they are written in, a thousand times slower.
IN_PYTHON = bool(numba.config.DISABLE_JIT)
# YZFLOW_PLAIN_NJIT=1: nothing of numba's inside is imported, which a new version of numba may have changed.
PLAIN = not IN_PYTHON and os.environ.get("YZFLOW_PLAIN_NJIT", "0") not in ("", "0")
# In a word, as results record it.
COMPILATION = "off" if IN_PYTHON else "plain njit" if PLAIN else "on"

# Flows side by side in an ensemble.
LANES = 16


def threads() -> int:
    """Threads of numba's parallel kernels."""
    return int(numba.get_num_threads())
