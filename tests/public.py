"""The public names, found from the stubs: all that a user can call with an argument."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

PACKAGES = ("dynamics", "theory", "yzflow")
# Methods of Python's own protocols that take what the user has at hand.
SPECIAL = {f"__{name}__" for name in (
    "call", "getitem", "contains", "and", "or", "add", "sub", "mul", "truediv", "pow", "lt", "le", "gt", "ge",
    "rsub", "rtruediv", "rpow",
)}  # fmt: skip


def stubs(*packages: str) -> Iterator[tuple[str, str]]:
    """Package and name of each import of each stub, but of what other distributions bring."""
    for package in sorted(packages):
        folder = Path(importlib.import_module(package).__file__ or "").parent
        for path in sorted(folder.rglob("__init__.pyi")):
            owner = ".".join(path.parent.relative_to(folder.parent).parts)
            for line in ast.parse(path.read_text(encoding="utf-8")).body:
                assert isinstance(line, ast.ImportFrom), f"{path} has more than imports"
                if line.module == "_elsewhere":
                    continue
                yield from ((owner, alias.asname or alias.name) for alias in line.names)


def public(*packages: str) -> dict[str, Any]:
    """Every function, class and method of these packages in a stub that takes an argument, by where it is defined.

    Stubs are theirs, and that of the public face.

    A module's are those of its ``__all__``, or those that it defines. A method stands beside the class that a user has
    in hand, wherever it is inherited from; so does the setter of a property. Protocols have nothing to call, and errors
    are raised and not made.
    """
    found: dict[str, Any] = {}
    for owner, name in stubs(*{*packages, "yzflow"}):
        _add(found, getattr(importlib.import_module(owner), name), packages)
    return found


def in_modules(*packages: str, inner: re.Pattern[str]) -> dict[str, Any]:
    """Functions and classes of all modules but ``inner`` ones, and their methods that take an argument."""
    found = {}
    for package in packages:
        for info in pkgutil.walk_packages(importlib.import_module(package).__path__, package + "."):
            if inner.search(info.name):
                continue
            module = importlib.import_module(info.name)
            for name in getattr(module, "__all__", vars(module)):
                thing = getattr(module, name)
                if name.startswith("_") or getattr(thing, "__module__", None) != module.__name__ or not callable(thing):
                    continue
                key = f"{info.name}.{name}".split(".", 1)[1]
                found[key] = thing
                for method_name, method in vars(thing).items() if inspect.isclass(thing) else ():
                    method = getattr(method, "__func__", method)
                    private = method_name.startswith("_") and method_name != "__call__"
                    if inspect.isfunction(method) and not private and _takes(method, but=1):
                        found[f"{key}.{method_name}"] = method
    return found


def callables(*things: Any, packages: tuple[str, ...] = PACKAGES) -> dict[str, Any]:
    """Callables of modules, classes and functions."""
    found: dict[str, Any] = {}
    for thing in things:
        _add(found, thing, packages)
    return found


def _add(found: dict[str, Any], thing: Any, packages: tuple[str, ...]) -> None:
    if isinstance(thing, ModuleType):
        for name in _names(thing):
            _add(found, getattr(thing, name), packages)
    elif callable(thing) and _package(thing) in packages and name_of(thing) not in found:
        if getattr(thing, "_is_protocol", False) or (inspect.isclass(thing) and issubclass(thing, BaseException)):
            return
        if not inspect.isclass(thing):
            if _takes(thing):
                found[name_of(thing)] = thing
            return
        found[name_of(thing)] = thing
        found.update({f"{name_of(thing)}.{name}": method for name, method in _methods(thing, packages)})


def _names(module: ModuleType) -> list[str]:
    """The names that a module says are public, or defines; of a package with a stub nothing, since the stub is read."""
    own = hasattr(module, "__path__") and Path(module.__file__ or "").with_suffix(".pyi").exists()
    if own:
        return []
    if hasattr(module, "__all__"):
        return list(module.__all__)
    return [
        name
        for name, thing in vars(module).items()
        if not name.startswith("_") and getattr(thing, "__module__", None) == module.__name__
    ]


def _methods(kind: type, packages: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    for name in dir(kind):
        owner = next((one for one in kind.__mro__ if name in vars(one)), object)
        method = vars(owner).get(name)
        if _package(owner) not in {*PACKAGES, *packages} or (name.startswith("_") and name not in SPECIAL):
            continue
        if isinstance(method, property):
            if method.fset is not None:
                yield name, method.fset
            continue
        bound = isinstance(method, staticmethod)
        inner = getattr(method, "__func__", method)
        if isinstance(inner, FunctionType) and _takes(inner, but=not bound):
            yield name, inner


def _takes(function: Any, *, but: int = 0) -> bool:
    """Whether it has parameters, ``but`` so many."""
    return len(inspect.signature(function).parameters) > but


def _package(thing: Any) -> str:
    return (getattr(thing, "__module__", None) or "").split(".")[0]


def name_of(thing: Any) -> str:
    """Module and name, less the package."""
    return f"{thing.__module__}.{thing.__qualname__}".split(".", 1)[1]
