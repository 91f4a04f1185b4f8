r"""Surfaces at which a derivative jumps: a flow crosses them or slides along them (Filippov).

At a surface g = 0 let f- and f+ be the derivatives before and beyond it, and a, b the rates of g along them. With b > 0
the flow crosses. With a > 0 > b both derivatives push to the surface, and the flow slides: its derivative is the mean
f- + alpha (f+ - f-), alpha = a / (a - b), along which g stays zero. It slides until a or b is zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dynamics._engine.open.events import Cut

# (s, state) -> derivative; and (s, state) -> the number g, zero on a surface.
Field = Callable[[float, np.ndarray], np.ndarray]
Surface = Callable[[float, np.ndarray], float]

# Most halvings of the way from a surface to a state beside it; after these the two still differ.
_HALVINGS = 40
# Relative distance from a surface at which its sides are evaluated, and relative length of differences.
_BESIDE, _DIFFERENCE = 1e-9, 1e-5
_ALIKE = 1e-6


class Sides(NamedTuple):
    """Nearest distinct states on both sides of a surface, with their derivatives and the rates of g along these."""

    before: np.ndarray
    beyond: np.ndarray
    field: tuple[np.ndarray, np.ndarray]
    rate: tuple[float, float]

    @property
    def crosses(self) -> bool:
        """True if the flow crosses the surface."""
        return self.rate[1] > 0

    @property
    def slides(self) -> bool:
        """True if both sides push to the surface."""
        return self.rate[0] > 0 >= self.rate[1]


def sides_of(cut: Cut, field: Field, surface: Surface, end: float) -> Sides:
    """The two sides of a surface at the point where a step reached it."""
    before = _beside(cut, cut.left, -cut.sign, surface)
    beyond = _beside(cut, cut.right, cut.sign, surface)
    fields = field(cut.s, before), field(cut.s, beyond)
    rates = [cut.sign * rate(surface, cut.s, cut.state, slope, end) for slope in fields]
    return Sides(before, beyond, (fields[0], fields[1]), (rates[0], rates[1]))


def _beside(cut: Cut, towards: np.ndarray, sign: int, surface: Surface) -> np.ndarray:
    """A state close to a surface, on the way to a state with a known side."""
    for halvings in range(_HALVINGS, 0, -1):
        state = cut.state + 0.5**halvings * (towards - cut.state)
        if np.sign(surface(cut.s, state)) == sign:
            return state
    return towards


def rate(surface: Surface, s: float, state: np.ndarray, slope: np.ndarray, end: float) -> float:
    """The rate of change of a surface's number along a slope, by a difference over a short time within [0, end]."""
    fastest = np.abs(slope).max()
    h = min(_DIFFERENCE * (1 + np.abs(state).max()) / fastest if fastest > 0 else np.inf, _DIFFERENCE * end)
    low, high = max(s - h, 0.0), min(s + h, end)
    numbers = [surface(at, state + (at - s) * slope) for at in (low, high)]
    return (numbers[1] - numbers[0]) / (high - low)


class Slide:
    """The flow along a surface.

    Parameters
    ----------
    number : int
        Index of the event.
    sign : int
        Sign of g beyond the surface.
    across : (n,) array
        A direction from before to beyond: f- - f+.
    """

    def __init__(
        self, number: int, sign: int, across: np.ndarray, field: Field, surface: Surface, start: float, end: float
    ) -> None:
        self.number, self.sign, self.start = number, sign, start
        self._across, self._field, self._surface, self._end = across / np.abs(across).max(), field, surface, end

    def beside(self, s: float, state: np.ndarray, side: int) -> np.ndarray:
        """A state beside the surface: before it (-1) or beyond it (1)."""
        apart = _BESIDE * (1 + np.abs(state).max())
        for _ in range(_HALVINGS):
            there = state + side * apart * self._across
            if np.sign(self._surface(s, there)) == side * self.sign:
                return there
            apart *= 2
        return there

    def sides(self, s: float, state: np.ndarray) -> Sides:
        """Both sides at a state on the surface."""
        states = self.beside(s, state, -1), self.beside(s, state, 1)
        fields = self._field(s, states[0]), self._field(s, states[1])
        rates = [self.sign * rate(self._surface, s, state, slope, self._end) for slope in fields]
        return Sides(*states, (fields[0], fields[1]), (rates[0], rates[1]))

    def exits(self, s: float, state: np.ndarray) -> np.ndarray:
        """Two numbers, one for each side, positive while the side pushes to the surface."""
        a, b = self.sides(s, state).rate
        return np.array([a, -b])

    def derivative(self, s: float, state: np.ndarray) -> np.ndarray:
        """The mean of both derivatives along which g stays zero."""
        sides = self.sides(s, state)
        (before, beyond), (a, b) = sides.field, sides.rate
        # Beyond an exit the mean continues smoothly, since trial steps may get there.
        alpha = a / (a - b) if a > b else float(a > 0)
        return before + min(max(alpha, -1.0), 2.0) * (beyond - before)


def begins(s: float, state: np.ndarray, field: Field, surface: Surface, end: float) -> tuple[str, np.ndarray]:
    """Kind of start on a surface, "goes", "slides" or "passes", with a state or the direction across.

    "passes" means that the derivative does not jump.
    """
    gradient = np.empty_like(state)
    h = _DIFFERENCE * (1 + np.abs(state).max())
    for i in range(state.size):
        ahead, behind = state.copy(), state.copy()
        ahead[i] += h
        behind[i] -= h
        gradient[i] = surface(s, ahead) - surface(s, behind)
    if not gradient.any():
        return "passes", state
    slide = Slide(0, 1, gradient, field, surface, s, end)
    sides = slide.sides(s, state)
    (before, beyond), (a, b) = sides.field, sides.rate
    if np.allclose(before, beyond, rtol=_ALIKE, atol=_ALIKE * np.abs(before).max()):
        return "passes", state
    if a > 0 > b:
        return "slides", before - beyond
    if a < 0 < b:  # both sides lead away, so the derivative at the start decides
        return "goes", sides.beyond if rate(surface, s, state, field(s, state), end) >= 0 else sides.before
    return "goes", sides.beyond if b > 0 else sides.before
