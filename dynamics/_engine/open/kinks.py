r"""Surfaces at which a derivative jumps: whether a flow crosses one or slides along it (Filippov).

On the surface g = 0 let f- and f+ be the derivatives on the side that a flow comes from and beyond, and a, b the rates
at which g goes on along them. With b > 0 the flow crosses. With a > 0 > b both push to the surface, and it slides:
its derivative is the mean f- + alpha (f+ - f-) along which g stays zero, alpha = a / (a - b), until a or b is zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dynamics._engine.open.events import Cut

# (s, state) -> its derivative; and -> the number that is zero on a surface.
Field = Callable[[float, np.ndarray], np.ndarray]
Surface = Callable[[float, np.ndarray], float]

# Halvings of the way from a surface to a state beside it, which is then still told from it.
_HALVINGS = 40
# How far from a surface the fields on its sides are taken, and how long differences along them are, both relative.
_BESIDE, _DIFFERENCE = 1e-9, 1e-5
_ALIKE = 1e-6


class Sides(NamedTuple):
    """States on both sides of a surface, as near as they are told apart; the derivatives there, and g's rates along."""

    before: np.ndarray
    beyond: np.ndarray
    field: tuple[np.ndarray, np.ndarray]
    rate: tuple[float, float]

    @property
    def crosses(self) -> bool:
        """Whether the flow goes on beyond."""
        return self.rate[1] > 0

    @property
    def slides(self) -> bool:
        """Whether both sides push to the surface."""
        return self.rate[0] > 0 >= self.rate[1]


def sides_of(cut: Cut, field: Field, surface: Surface, end: float) -> Sides:
    """The two sides of a surface where a step reached it."""
    before = _beside(cut, cut.left, -cut.sign, surface)
    beyond = _beside(cut, cut.right, cut.sign, surface)
    fields = field(cut.s, before), field(cut.s, beyond)
    rates = [cut.sign * rate(surface, cut.s, cut.state, one, end) for one in fields]
    return Sides(before, beyond, (fields[0], fields[1]), (rates[0], rates[1]))


def _beside(cut: Cut, towards: np.ndarray, sign: int, surface: Surface) -> np.ndarray:
    """A state next to a surface, on the way to one whose side is known."""
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
        Of the event.
    sign : int
        Of g on the side that is beyond.
    across : (n,) array
        A direction from before to beyond: f- - f+.
    """

    def __init__(
        self, number: int, sign: int, across: np.ndarray, field: Field, surface: Surface, start: float, end: float
    ) -> None:
        self.number, self.sign, self.start = number, sign, start
        self._across, self._field, self._surface, self._end = across / np.abs(across).max(), field, surface, end

    def beside(self, s: float, state: np.ndarray, side: int) -> np.ndarray:
        """A state beside the surface: before it (-1) or beyond (1)."""
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
        rates = [self.sign * rate(self._surface, s, state, one, self._end) for one in fields]
        return Sides(*states, (fields[0], fields[1]), (rates[0], rates[1]))

    def exits(self, s: float, state: np.ndarray) -> np.ndarray:
        """Two numbers: above zero while the side before, and that beyond, push to the surface."""
        a, b = self.sides(s, state).rate
        return np.array([a, -b])

    def derivative(self, s: float, state: np.ndarray) -> np.ndarray:
        """The mean of both fields along which the flow stays on the surface."""
        sides = self.sides(s, state)
        (before, beyond), (a, b) = sides.field, sides.rate
        # Beyond an exit, where a trial step may come, the mean goes on smoothly.
        alpha = a / (a - b) if a > b else float(a > 0)
        return before + min(max(alpha, -1.0), 2.0) * (beyond - before)


def begins(s: float, state: np.ndarray, field: Field, surface: Surface, end: float) -> tuple[str, np.ndarray]:
    """The start of a flow on a surface: "goes", "slides" or "passes", and where, or the direction across.

    "passes" where the derivative does not jump there.
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
    if a < 0 < b:  # both lead away: the derivative at the start decides
        return "goes", sides.beyond if rate(surface, s, state, field(s, state), end) >= 0 else sides.before
    return "goes", sides.beyond if b > 0 else sides.before
