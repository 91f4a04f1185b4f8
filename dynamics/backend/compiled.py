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

    Numba compiles a kept kernel anew if its file changed. Here a change in a module of ``uses`` counts, too: name the
    modules of all kernels that become parts of this kernel.

    An ``inner`` kernel can be called by kernels only, and is compiled as a part of each caller. Otherwise numba would
    first optimise it alone, with an entry for Python, and then again in each caller.
    """
    return _way.kernel(inner, [one for module in uses for one in (module, *getattr(module, "USES", ()))], options)


def by_type(kernels: Mapping[type, Any]) -> Any:
    """A kernel that calls one of several inner kernels, chosen by the class of its first argument.

    Numba chooses when it compiles: each class has compiled code of its own, without a branch on the class. The classes
    are named tuples. Each class but the last must have a field that no later class has.
    """
    return _way.by_type(kernels)


# (kernel, arguments) -> the address of its machine code for such arguments, for `call` in another kernel. A kernel that
# is called by its name becomes a part of each caller: it is compiled again there (1.5 s for loss and gradient), and a
# caller that does not name its module keeps the old code when it changes. Called by its address, it exists once. Raises
# `TypeError` if the kernel does not return a float.
address: Any = _way.address
# Calls the kernel at an `address`, only with arguments of the types that the address was made for.
call: Any = _way.call


def chosen(name: str) -> ModuleType:
    """The module of primitives, "views" or "rows", for the way in which this process makes kernels."""
    return import_module(f"dynamics.backend.{'_inside' if _FAST else '_plain'}_{name}")
