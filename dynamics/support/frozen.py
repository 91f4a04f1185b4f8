"""Objects that stay as they were made."""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from dynamics.support.checks import read_only


class Frozen:
    """A base of classes whose attributes are set while an object is made, by `vars`, and never after.

    Results are kept by the identity of such objects, and kernels trust the indices in their arrays. Copies and what is
    unpickled come with writable arrays, which become read-only again here.
    """

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{self!r} cannot be changed: make a new {type(self).__name__} with another `{name}`")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{self!r} cannot be changed: `{name}` stays")

    def __setstate__(self, state: dict[str, object]) -> None:
        for value in state.values():
            if isinstance(value, np.ndarray):
                read_only(value)
        vars(self).update(state)
