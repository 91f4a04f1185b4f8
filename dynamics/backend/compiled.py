"""Decorator and helpers of kernels, whichever way this process makes them; see docs/howto/numba.md."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

from dynamics.backend.modes import IN_PYTHON, PLAIN

_FAST = not (IN_PYTHON or PLAIN)
_way: Any = import_module("dynamics.backend._inside" if _FAST else "dynamics.backend._plain")


def kernel(*, inner: bool = False, uses: Iterable[ModuleType] = (), **options: Any) -> Callable[[Callable], Callable]:
    """``numba.njit(cache=True, error_model="numpy", **options)`` as a decorator that runs wherever Python does.

    Where numba has no folder for its cache (a read-only installation and no home) or cannot write to it (a full disk),
    kernels are compiled in each process, and standard error says so once.

    Numba compiles anew what it kept on disk where the file of the kernel changed, and here also where those of the
    modules changed that it ``uses``: whose kernels become parts of it.

    An ``inner`` kernel is for other kernels alone, and is compiled as a part of each of them: numba would make of every
    function an optimised program of its own with an entry for Python, before it optimises all again where it is called.
    """
    return _way.kernel(inner, [one for module in uses for one in (module, *getattr(module, "USES", ()))], options)


def by_type(kernels: Mapping[type, Any]) -> Any:
    """A kernel that calls one of several inner ones, by the class of its first argument.

    Numba chooses where it compiles, so that each class has compiled code of its own, and no class is a branch in it.
    The classes are named tuples, of which each but the last has a field that none after it has.
    """
    return _way.by_type(kernels)


def address(called: Any, arguments: tuple) -> Any:
    """Where the instructions of a kernel for such arguments are, for `call` in another kernel.

    What kernels call by its name becomes a part of each of them: compiled again there (1.5 s for loss and gradient),
    and, unless they name its module, what it was in their caches when it changes. This way there is one of it.

    Raises
    ------
    TypeError
        If it returns another thing than a float.
    """
    return _way.address(called, arguments)


# Calls what is at an `address`; only with arguments of the types that it was asked for with.
call: Any = _way.call


def chosen(name: str) -> ModuleType:
    """The module of primitives ``name``, "views" or "rows", as this process makes them."""
    return import_module(f"dynamics.backend.{'_inside' if _FAST else '_plain'}_{name}")
