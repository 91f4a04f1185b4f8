"""Kernels by plain `numba.njit`, or as plain Python: slower than those of `_inside`.

Nothing is kept on disk: numba's cache would take these kernels for those of `_inside`, and would not notice a change in
a module that a kernel uses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any

import numba
import numpy as np

from dynamics.backend.modes import IN_PYTHON


def kernel(inner: bool, uses: Iterable[ModuleType], options: Mapping[str, Any]) -> Callable[[Callable], Any]:
    """`dynamics.backend.compiled.kernel`; here Python can call inner kernels, too."""
    if IN_PYTHON:
        # As ``error_model="numpy"``: a division by zero gives inf or nan, and integers wrap around.
        return np.errstate(all="ignore")
    return numba.njit(error_model="numpy", **options)


def primitive(function: Callable) -> Any:
    """A function that kernels call."""
    return function if IN_PYTHON else numba.njit(error_model="numpy")(function)


def by_type(kernels: Mapping[type, Any]) -> Any:
    """`dynamics.backend.compiled.by_type`, by the fields of the classes, since numba compiles no branch on None."""
    if IN_PYTHON:
        return lambda first, *rest: kernels[type(first)](first, *rest)
    (kind, own), *others = kernels.items()
    if not others:
        return own
    names = [set(getattr(other, "_fields", ())) for other, _ in others]
    field = next(name for name in getattr(kind, "_fields", ()) if not any(name in known for known in names))
    rest_of_them = by_type(dict(others))

    @numba.njit
    def decide(there, first, *rest):
        if there is None:
            return rest_of_them(first, *rest)
        return own(first, *rest)

    @numba.njit
    def choose(first, *rest):
        return decide(getattr(first, field, None), first, *rest)

    return choose


def address(called: Any, arguments: tuple) -> Any:
    """The kernel itself, which other kernels can call."""
    return called


@primitive
def call(function, arguments):
    """`dynamics.backend.compiled.call`."""
    return function(*arguments)
