"""Numbers near a threshold, written with so many digits that they stay on their side of it."""

from __future__ import annotations

from collections.abc import Callable

_EXACT_DIGITS = 17


def faithful(value: float, holds: Callable[[float], bool], digits: int = 3) -> str:
    """A number as text that is on the same side of a threshold as the number.

    Parameters
    ----------
    value : float
    holds : callable
        (number) -> whether it is on the good side; also called with the printed number.
    digits : int
        Significant digits, or more where rounding would cross the threshold.
    """
    for places in range(digits, _EXACT_DIGITS):
        words = f"{value:.{places}g}"
        if holds(float(words)) == holds(value):
            return words
    return f"{value:.{_EXACT_DIGITS}g}"


def margin(value: float, digits: int = 3) -> str:
    """The margin of an assumption, which holds from margin one on; a smaller margin is never rounded to one."""
    return faithful(value, lambda number: number >= 1, digits)
