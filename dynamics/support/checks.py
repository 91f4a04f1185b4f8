"""Checks of user input, in one grammar of error messages.

Every check raises ``ValueError`` with the argument's name, the rule and the value, for example
"`eta_y` must be positive, but got -0.5", and returns the value in the type that the caller computes with.
"""

from __future__ import annotations

import numbers
from collections.abc import Collection

import numpy as np


def reject(name: str, rule: str, value: object) -> ValueError:
    """The error to raise for an argument that breaks a rule."""
    return ValueError(f"`{name}` must {rule}, but got {value}")


def real(name: str, value: object, *, rule: str = "be a finite number") -> float:
    """A finite real number, returned as ``float``."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (numbers.Real, np.ndarray)):
        raise reject(name, rule, repr(value))
    if isinstance(value, np.ndarray) and (value.ndim != 0 or value.dtype.kind not in "iuf"):
        raise reject(name, rule, repr(value))
    try:
        number = float(value)
    except OverflowError:  # an integer above the largest float
        number = np.inf
    if not np.isfinite(number):
        raise reject(name, rule, number)
    return number


def positive(name: str, value: object) -> float:
    """A finite number above zero."""
    number = real(name, value, rule="be a positive finite number")
    if number <= 0:
        raise reject(name, "be positive", value)
    return number


def non_negative(name: str, value: object) -> float:
    """A finite number at or above zero."""
    number = real(name, value, rule="be a non-negative finite number")
    if number < 0:
        raise reject(name, "be non-negative", value)
    return number


def below(name: str, value: object, bound: float) -> float:
    """A number at or above zero, and below ``bound``."""
    number = non_negative(name, value)
    if number >= bound:
        raise reject(name, f"be below {bound:g}", value)
    return number


def integer(name: str, value: object, *, minimum: int) -> int:
    """An integer not below ``minimum``."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Integral):
        raise reject(name, "be an integer", repr(value))
    if value < minimum:
        raise reject(name, f"be at least {minimum}", value)
    return int(value)


def one_of(name: str, value: object, options: Collection[str]) -> str:
    """One of the given words."""
    if not isinstance(value, str) or value not in options:
        raise reject(name, "be one of " + ", ".join(repr(option) for option in options), repr(value))
    return value


def finite_array(name: str, value: object, *, ndim: int | None = None, dtype=np.float64) -> np.ndarray:
    """A C-contiguous array of finite numbers with ``ndim`` axes (any number if None).

    It is new, unless ``value`` is one already that owns its memory and cannot be written to.
    """
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "iufb":
            raise TypeError
        fixed = not (isinstance(array.base, np.ndarray) or array.flags.writeable)
        array = np.array(array, dtype=dtype, order="C", copy=None if fixed else True)
    except (TypeError, ValueError):
        raise reject(name, "be an array of numbers", _brief(value)) from None
    if ndim is not None and array.ndim != ndim:
        raise reject(name, f"have {ndim} {'axis' if ndim == 1 else 'axes'}", f"shape {array.shape}")
    # Without a temporary array of the same size: minimum and maximum of nan are nan.
    if array.size and not (np.isfinite(array.min()) and np.isfinite(array.max())):
        bad = ~np.isfinite(array)
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        raise reject(name, "hold finite numbers", f"{array[where]} at index {_index(where)}")
    return array


def non_negative_array(name: str, value: object, *, ndim: int | None = None) -> np.ndarray:
    """An array of finite numbers at or above zero."""
    array = finite_array(name, value, ndim=ndim)
    if (array < 0).any():
        where = tuple(int(i) for i in np.argwhere(array < 0)[0])
        raise reject(name, "be non-negative", f"{array[where]} at index {_index(where)}")
    return array


def index_array(name: str, value: object, *, upper: int | None = None) -> np.ndarray:
    """A new one-dimensional int64 array of indices in ``[0, upper)``."""
    try:
        array = np.asarray(value)
    except ValueError:  # rows of different lengths
        raise reject(name, "be an array of integers", _brief(value)) from None
    if array.ndim != 1:
        raise reject(name, "have 1 axis", f"shape {array.shape}")
    if array.size and array.dtype.kind not in "iu":
        raise reject(name, "hold integers", f"dtype {array.dtype}")
    array = np.array(array, dtype=np.int64)
    limit = np.inf if upper is None else upper
    bad = (array < 0) | (array >= limit)
    if bad.any():
        where = int(np.argmax(bad))
        rule = "hold indices of at least 0" if upper is None else f"hold indices in [0, {upper})"
        raise reject(name, rule, f"{array[where]} at index {where}")
    return array


def _index(where: tuple[int, ...]) -> str:
    return str(where[0]) if len(where) == 1 else str(where)


def _brief(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def read_only(array: np.ndarray) -> np.ndarray:
    """Make ``array`` read-only and return it.

    Kernels take their inputs read-only and their outputs writable: numba compiles a kernel anew for each
    combination, so one convention means one compilation.
    """
    array.flags.writeable = False
    return array
