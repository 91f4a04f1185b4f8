"""How kernels are made in this process, and for which processor.

Kernels are made by numba's internals, by plain `numba.njit`, or as plain Python.
"""

from __future__ import annotations

import os
import platform

import llvmlite.binding
import numba

# NUMBA_DISABLE_JIT=1: kernels run as plain Python, a thousand times slower.
IN_PYTHON = bool(numba.config.DISABLE_JIT)
# YZFLOW_PLAIN_NJIT=1: numba's internals, which a new version may have changed, are not imported.
PLAIN = not IN_PYTHON and os.environ.get("YZFLOW_PLAIN_NJIT", "0") not in ("", "0")
# The word that results record.
COMPILATION = "off" if IN_PYTHON else "plain njit" if PLAIN else "on"

# Flows side by side in an ensemble.
LANES = 16


def threads() -> int:
    """Threads of numba's parallel kernels."""
    return int(numba.get_num_threads())


X86 = platform.machine().lower() in ("x86_64", "amd64", "i386", "i686")


def processor() -> str:
    """The name of the processor that kernels are compiled for, as LLVM knows it."""
    return os.environ.get("NUMBA_CPU_NAME") or llvmlite.binding.get_host_cpu_name()
