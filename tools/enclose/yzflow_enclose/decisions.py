"""Claims for all times of an enclosure, from the first step to the last."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from yzflow_enclose.quantities import Claim
from yzflow_enclose.stepping import Step

# Parts of a step for the first try of a predicate, and how often a part is halved before the claim is left open.
_PARTS = 2
_DEPTH = 14
# How often the gap between a proved and a refuted time is cut.
_SHARPER = 12
# How often a checker halves a step, and the most spans on which it tries a predicate: more than in recording, so that
# it decides again all that was recorded.
_DEEPER, _CHECKED = 16, 60_000
RECORDED = 20_000

_Asked = Callable[[float, float], Claim]


@dataclass(frozen=True)
class Decision:
    """Result of `Enclosure.decide`.

    Attributes
    ----------
    value : bool or None
        True: at every time. False: not at the times of ``times``. None: open at ``times``.
    times : (float, float) or None
        A span of time, or twice one time.
    parts : int
        Number of spans and times on which the predicate was evaluated.
    reached : float
        The claim is proved for every t with 0 < t <= ``reached``.
    """

    value: bool | None
    times: tuple[float, float] | None
    parts: int
    reached: float


def decide(claim: _Asked, steps: Sequence[Step], last: float, most: float = math.inf) -> Decision:
    """Decide a claim for all times 0 < t <= ``last``, on at most ``most`` spans of time, each within a step."""
    parts = 0
    for step in steps:
        if step.start >= last:
            break
        stop = min(step.end, last)
        edges = np.linspace(step.start, stop, _PARTS + 1).tolist()
        edges[-1] = stop
        waiting = [(a, b, 0) for a, b in itertools.pairwise(edges)][::-1]
        while waiting:
            start, end, depth = waiting.pop()
            parts += 1
            found = claim(start, end).value
            if found is True:
                continue
            if found is False:
                return Decision(False, (start, end), parts, start)
            parts += 1
            if claim(end, end).value is False:
                return _sharpened(claim, start, end, parts)
            middle = start + (end - start) / 2
            if depth == _DEPTH or parts > most or not start < middle < end:
                return Decision(None, (start, end), parts, start)
            waiting += [(middle, end, depth + 1), (start, middle, depth + 1)]
    reached = steps[-1].end if steps else 0.0
    if reached < last:
        return Decision(None, (reached, last), parts, reached)
    return Decision(True, None, parts, last)


def always(claim: _Asked, spans: Sequence[tuple[float, float]], wanted: bool) -> bool:
    """True if a claim is true, or false, on all of some spans of time, each within a step."""
    waiting = [(start, end, 0) for start, end in spans]
    for _ in range(_CHECKED):
        if not waiting:
            return True
        start, end, depth = waiting.pop()
        found, middle = claim(start, end).value, start + (end - start) / 2
        if found is (not wanted) or (found is None and (depth == _DEEPER or not start < middle < end)):
            return False
        waiting += [] if found is wanted else [(start, middle, depth + 1), (middle, end, depth + 1)]
    return False


def _sharpened(claim: _Asked, start: float, end: float, parts: int) -> Decision:
    """Decision on a claim that is proved until ``start`` and false at ``end``; both are moved towards each other."""
    for _ in range(_SHARPER):
        for share in (0.5, 0.25, 0.125):  # a short span may be decided when a long one is not
            middle = start + (end - start) * share
            parts += 2
            if not start < middle < end:
                continue
            if claim(middle, middle).value is False:
                end = middle
                break
            if claim(start, middle).value is True:
                start = middle
                break
        else:
            break
    return Decision(False, (end, end), parts, start)
