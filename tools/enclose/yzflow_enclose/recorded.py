"""Predicates of a certificate: their margins, and mistakes in a file's claims about them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from flint import arb

from dynamics.support import checks
from yzflow_enclose.decisions import always
from yzflow_enclose.formulas import Predicate, replayed, slack
from yzflow_enclose.stepping import Step, above

# The radius for recording a predicate, in radii of the steps: room for a checker with wider balls.
_WIDER = 4.0
# Room of a margin: in radii, fewer than those for recording, and relative to its size.
_RADII, _ROOM = 2.5, 2.0**-20

_Moments = Callable[[float, float], Any]


def widened(steps: Sequence[Step]) -> list[Step]:
    """The steps for recording a predicate."""
    return [replace(step, radius=step.radius * _WIDER) for step in steps]


def _slacks(made: Predicate, steps: Sequence[Step], moment: _Moments) -> list[arb]:
    """The `slack` at the ends of the steps if the predicate is true, at the last time if it is false."""
    ends = [made.times[1]] if made.times else [end for _, end in _spans(made, steps)]
    return [slack(made.says, moment(end, end)) for end in ends]


def _spans(made: Predicate, steps: Sequence[Step]) -> list[tuple[float, float]]:
    if made.times:
        return [made.times]
    return [(step.start, min(step.end, made.until)) for step in steps if step.start < made.until]


def with_margin(made: Predicate, steps: Sequence[Step], moment: _Moments) -> Predicate:
    """A predicate with its margin: the smallest slack, or the largest if it is false.

    The margin leaves room for a checker with wider balls.

    Raises
    ------
    ValueError
        If the predicate is not defined there.
    """
    values = _slacks(made, steps, moment)
    if not all(value.is_finite() for value in values):
        rule = "have a value at the end of each step, and where it is false, to be written down"
        raise checks.reject("predicate", rule, "one that is not defined there")
    pairs = [(value.mid(), value.rad() * _RADII + abs(value.mid()) * _ROOM) for value in values]
    if made.times:
        return replace(made, margin=max(above(middle + room) for middle, room in pairs))
    return replace(made, margin=min(-above(room - middle) for middle, room in pairs))


def fault(made: Predicate, steps: Sequence[Step], moment: _Moments) -> str:
    """Words for a mistake in a file's claims about a predicate; "" if there is none."""
    if made.times and made.times[1] > [step for step in steps if step.start <= made.times[0]][-1].end:
        return f"is said to be false for {made.times[0]} < t <= {made.times[1]}, but these leave their step"
    good = always(lambda a, b: replayed(made.says, moment(a, b)), _spans(made, steps), made.verdict)
    slacks = _slacks(made, steps, moment) if good else []
    if good and all(value >= made.margin if made.verdict else value <= made.margin for value in slacks):
        return ""
    return f"is not {str(made.verdict).lower()}, or not by the margin that it claims"
