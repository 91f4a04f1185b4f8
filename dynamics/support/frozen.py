"""Objects that stay as they were made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, NoReturn, TypeVar

import numpy as np

from dynamics.support.checks import read_only

_Value = TypeVar("_Value")


class Frozen:
    """A base of classes whose attributes are set while an object is made, by `vars`, and never after.

    Results are kept by the identity of such objects, and kernels trust the indices in their arrays. Copied and
    unpickled objects have writable arrays, which `__setstate__` makes read-only again.
    """

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{self!r} cannot be changed: make a new {type(self).__name__} with another `{name}`")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{self!r} cannot be changed: `{name}` stays")

    def _once(self, make: Callable[..., Any], *what: Any) -> Any:
        """``make(self, *what)``, kept on this object, which never changes. Copies do not have the kept results."""
        cache = vars(self).setdefault("_kept", {})
        if (make, what) not in cache:
            cache[make, what] = make(self, *what)
        return cache[make, what]

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if name != "_kept"}

    def __setstate__(self, state: dict[str, object]) -> None:
        for value in state.values():
            if isinstance(value, np.ndarray):
                read_only(value)
        vars(self).update(state)


def changed(value: _Value, **attributes: object) -> _Value:
    """A copy of a frozen dataclass with other attributes, which are known to be right: nothing is checked again."""
    copy = object.__new__(type(value))
    own = {field.name: getattr(value, field.name) for field in fields(value)}  # type: ignore[arg-type]
    vars(copy).update(own | attributes)
    return copy
