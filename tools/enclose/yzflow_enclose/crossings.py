"""Zeros of a function of an enclosed flow: a short span with exactly one zero, or the reason why none is proved."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from yzflow_enclose.quantities import Quantity

# How often a span is halved before its signs are left open, and how often the span of the zero is shortened.
_DEPTH, _SHARPER = 16, 120


@dataclass(frozen=True)
class Crossing:
    """Result of `Enclosure.crossing`.

    Attributes
    ----------
    times : (float, float) or None
        A span with exactly one zero, the only one of the bracket.
    rising : bool or None
        Whether the function goes from negative to positive there.
    reason : str
        Why there is no span; empty if there is one.
    """

    times: tuple[float, float] | None
    rising: bool | None = None
    reason: str = ""

    @property
    def width(self) -> float | None:
        """The length of the span."""
        return None if self.times is None else self.times[1] - self.times[0]


@dataclass
class _Part:
    """A span on which a function has one sign, or is monotone."""

    start: float
    end: float
    sign: int  # 0 if open
    slope: int


def locate(value: Callable[[float, float], Quantity], edges: Sequence[float], rising: bool | None) -> Crossing:
    """The only zero of a quantity in (edges[0], edges[-1]]; each span between two edges lies within one step."""
    parts: list[_Part] = []
    waiting = [(a, b, 0) for a, b in itertools.pairwise(edges)][::-1]
    while waiting:
        start, end, depth = waiting.pop()
        found = value(start, end)
        sign = _sign(found)
        slope = 0 if sign else _sign(found.rate)
        if not sign and not slope:
            middle = start + (end - start) / 2
            if depth == _DEPTH or not start < middle < end:
                return Crossing(
                    None, reason=f"neither its sign nor that of its rate is proved from t = {start!r} to {end!r}"
                )
            waiting += [(middle, end, depth + 1), (start, middle, depth + 1)]
            continue
        if parts and not sign and not parts[-1].sign and parts[-1].slope == slope:
            parts[-1].end = end
        else:
            parts.append(_Part(start, end, sign, slope))
    signed = _with_ends(value, parts)
    if isinstance(signed, str):
        return Crossing(None, reason=signed)
    zeros = [part for part, before, after in signed if before != after]
    if not zeros:
        word = "positive" if signed[-1][2] > 0 else "negative"
        return Crossing(None, reason=f"it has no zero there: it is {word} at the end, and no sign changes")
    if len(zeros) > 1:
        times = " and ".join(f"[{part.start:.6g}, {part.end:.6g}]" for part in zeros)
        return Crossing(None, reason=f"it has {len(zeros)} zeros there, in {times}")
    (part,) = zeros
    if rising is not None and rising != (part.slope > 0):
        word = "rises" if part.slope > 0 else "falls"
        return Crossing(None, reason=f"its one zero, in [{part.start:.6g}, {part.end:.6g}], is one where it {word}")
    return Crossing(_sharpened(value, part), part.slope > 0)


def _sign(quantity: Quantity) -> int:
    if (quantity > 0).value:
        return 1
    return -1 if (quantity < 0).value else 0


def _with_ends(value: Callable[[float, float], Quantity], parts: list[_Part]) -> list[tuple[_Part, int, int]] | str:
    """The monotone parts with the signs at both of their ends; or words on the time at which a sign is open.

    If a function is monotone on a span, unequal signs at its ends mean one zero within, and equal signs none.
    """
    found = []
    for part in parts:
        if part.sign:
            found.append((part, part.sign, part.sign))
            continue
        before, after = (_sign(value(time, time)) for time in (part.start, part.end))
        if not before or not after:
            return f"its sign at t = {part.end if before else part.start!r} is not proved"
        found.append((part, before, after))
    return found


def _sharpened(value: Callable[[float, float], Quantity], part: _Part) -> tuple[float, float]:
    """A shorter span of the zero of a monotone part: times with a proved sign move towards each other."""
    start, end = part.start, part.end
    for _ in range(_SHARPER):
        for share in (0.5, 0.375, 0.625, 0.125, 0.875):  # a time at the zero itself has no sign
            middle = start + (end - start) * share
            sign = _sign(value(middle, middle)) if start < middle < end else 0
            if sign == part.slope:
                end = middle
                break
            if sign:
                start = middle
                break
        else:
            break
    return start, end
