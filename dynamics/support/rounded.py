"""Numbers beside a threshold, written with as many digits as it takes to stay on their side of it."""

from __future__ import annotations

from collections.abc import Callable

_EXACT_DIGITS = 17


def faithful(value: float, holds: Callable[[float], bool], digits: int = 3) -> str:
    """A number in words that are true of the same side of a threshold as the number is.

    Parameters
    ----------
    value : float
    holds : callable
        (number) -> whether it is on the good side. What is printed is asked, too.
    digits : int
        Significant digits, or more where rounding would cross the threshold.
    """
    for places in range(digits, _EXACT_DIGITS):
        words = f"{value:.{places}g}"
        if holds(float(words)) == holds(value):
            return words
    return f"{value:.{_EXACT_DIGITS}g}"


def margin(value: float, digits: int = 3) -> str:
    """A margin of an assumption, which holds from one on: one that fails is never rounded to one."""
    return faithful(value, lambda number: number >= 1, digits)
