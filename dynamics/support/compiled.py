"""How kernels are compiled: by numba, where its cache may not work, or not at all."""

from __future__ import annotations

import multiprocessing
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import config, njit
from numba.core.caching import FunctionCache

# NUMBA_DISABLE_JIT=1: kernels run as the Python that they are written in, a thousand times slower.
IN_PYTHON = bool(config.DISABLE_JIT)


def kernel(**options: Any) -> Callable[[Callable], Callable]:
    """``numba.njit(cache=True, error_model="numpy", **options)`` as a decorator that runs wherever Python does.

    Where numba has no folder for its cache (a read-only installation and no home) or cannot write to it (a full disk),
    kernels are compiled in each process, and standard error says so once.
    """

    def decorate(function: Callable) -> Callable:
        if IN_PYTHON:
            # As ``error_model="numpy"``: a division by zero gives inf or nan, and integers wrap around.
            return np.errstate(all="ignore")(function)
        compiled = njit(error_model="numpy", **options)(function)
        try:
            compiled._cache = _Cache(function)
        except RuntimeError as error:  # no locator available
            _tell(str(error))
        return compiled

    return decorate


class _Cache(FunctionCache):
    """A cache on disk that may be full."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except OSError as error:
            _tell(str(error))
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except OSError as error:
            _tell(str(error))


def _tell(reason: str) -> None:
    """Say once, and not in every worker, what goes wrong."""
    global _told
    if not _told and multiprocessing.parent_process() is None:
        warnings.warn(
            f"numba cannot keep compiled kernels on disk ({reason}): every process compiles its own, which takes up to "
            "a minute; set NUMBA_CACHE_DIR to a folder that can be written to",
            stacklevel=2,
        )
    _told = True


_told = False
