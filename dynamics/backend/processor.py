"""The processor that kernels are compiled for."""

from __future__ import annotations

import os
import platform

import llvmlite.binding

X86 = platform.machine().lower() in ("x86_64", "amd64", "i386", "i686")


def processor() -> str:
    """Its name, as LLVM knows it."""
    return os.environ.get("NUMBA_CPU_NAME") or llvmlite.binding.get_host_cpu_name()
