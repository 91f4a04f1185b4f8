"""DOP853: one control of steps, and two kinds of slopes: each by a call, or all of a step in one kernel (numba).

A step of size h from the state y has the slopes k_i = f(s + C_i h, y + h sum_j A_ij k_j). The last is the slope at the
step's end. The interpolant needs three more. `_engine.factors` has slopes for large layers.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from dynamics._engine import stage_sums, tableau
from dynamics._engine.tableau import E3, E5, EXTENDED, STAGES, A, C, D
from dynamics._model import small
from dynamics._model.small import Frame
from dynamics.backend.compiled import kernel
from dynamics.support import raised

# (state, out) -> function of s that writes the derivative at the current values of ``state`` into ``out``. A third
# argument replaces `System.bound`.
Bind = Callable[..., Callable[[float], None]]
# Points within a step -> states (points, size of the state); and the same for shares of the step, (points, 1).
Interpolant = Callable[[np.ndarray], np.ndarray]
Within = Callable[[np.ndarray], np.ndarray]
# The four numbers of `take`.
Found = tuple[float, float, float, float]

# In states of at least this size, sums over stages wait for memory rather than for Python.
LARGE = 2**15
_SAFETY, _SHRINK, _GROW = 0.9, 0.2, 10.0
# The error has the order h^8, which gives the next step's size.
_EXPONENT = -1 / 8
# Hairer's test for stiffness: stiff after 15 steps with |h lambda| > 4 (stability ends at 6.1); 6 calm steps in a row
# reset the count. Flows whose steps are bounded by tolerances stay below 2.3, by stability they have 4.7 to 7.
_STABLE, _AT_THE_BOUND, _WELL_INSIDE = 4.0, 15, 6
# Up to this size of a state, a Jacobian by differences and its factors take seconds at most.
_DENSE = 1000
_FINEST = 100 * float(np.finfo(np.float64).eps)
NOT_FINITE = "the state is no longer finite"
NOT_FINITE_AT_START = "the derivative is not finite at the start"
TOO_SMALL = "Required step size is less than spacing between numbers."
_OPTIONS: dict[str, Any] = {"fastmath": {"reassoc", "contract"}, "uses": (tableau, small)}


@dataclass
class Inside:
    """States within a step of DOP853, from ``start`` on over ``size``."""

    start: float
    size: float
    within: Within

    def __call__(self, s: np.ndarray) -> np.ndarray:
        return self.within(((s - self.start) / self.size)[:, None])


class Dop853:
    """The steps of `scipy.integrate.DOP853`, with the same bits for `Called` slopes of states that are not large.

    Attributes
    ----------
    stiff : bool
        True if stability, not the tolerances, has bounded the steps for a while.
    trials : int or None
        Number of tried steps, rejected ones included; None if the method does not report it.
    method : str
        Method of the next step.
    switched : float or None
        The point at which another method took over.

    Parameters
    ----------
    implicit : callable, optional
        (s, state) -> steps that take over once the problem is found stiff. Only small states switch, since a Jacobian
        by differences costs an evaluation for each number, and memory for each pair.
    """

    def __init__(
        self,
        slopes: Slopes,
        end: float,
        initial: np.ndarray,
        *,
        rtol: float,
        atol: float,
        start: float = 0.0,
        implicit: Callable[[float, np.ndarray], Any] | None = None,
    ) -> None:
        self.s, self.state, self.trials, self.method = start, initial.copy(), 0, "DOP853"
        self.switched: float | None = None
        self._implicit = implicit
        self._after: Any = None  # the method for stiff problems, once it has taken over
        self._slopes, self._old = slopes, np.empty(initial.size)
        if rtol < _FINEST:
            warnings.warn(f"rtol = {rtol:g} is finer than numbers are: {_FINEST:.2g} is used", stacklevel=2)
        rtol, self._end = max(rtol, _FINEST), end
        self._inside: Inside | None = None
        slopes.tolerate(rtol, atol)
        self.stiff, self._bounded, self._free = False, 0, 0
        self._start, self._size, self._next_size = start, 0.0, self._first_size(rtol, atol)

    def _first_size(self, rtol: float, atol: float) -> float:
        """The first step to try: Hairer, Norsett, Wanner, Section II.4.

        The slope at the start is put in the last row of slopes, where a step leaves the slope at its end.
        """
        scale = atol + np.abs(self.state) * rtol
        start, rest = self.s, self._end - self.s
        slope = self._slopes.at(STAGES, start, self.state)
        if not np.isfinite(slope).all():
            return math.nan
        d0, d1 = (np.linalg.norm(x / scale) / scale.size**0.5 for x in (self.state, slope))
        h0 = min(1e-6 if d0 < 1e-5 or d1 < 1e-5 else 0.01 * d0 / d1, rest)
        ahead = self._slopes.at(1, start + h0, self.state + h0 * slope)
        d2 = np.linalg.norm((ahead - slope) / scale) / scale.size**0.5 / h0
        h1 = max(1e-6, h0 * 1e-3) if d1 <= 1e-15 and d2 <= 1e-15 else (0.01 / max(d1, d2)) ** -_EXPONENT
        return min(100 * h0, h1, rest)

    def advance(self) -> str | None:
        """Take a step; returns None, or the reason if there is no further step."""
        if self.stiff and self._implicit is not None:
            return self._hand_over(self._implicit)
        if math.isnan(self._next_size):
            return NOT_FINITE_AT_START
        slopes = self._slopes
        smallest = 10 * abs(math.nextafter(self.s, math.inf) - self.s)
        size, rejected = max(self._next_size, smallest), False
        slopes.begin()
        while size >= smallest:
            s = min(self.s + size, self._end)
            size = s - self.s
            self.trials += 1
            moments = self.s + C * size
            moments[STAGES] = s
            try:
                fifth, third = slopes.step(moments, size, self.state)
            except ValueError as refusal:  # a schedule or a term returned a forbidden value
                if raised.is_own(refusal):
                    raise
                return str(refusal)
            # Hairer's mean of both estimates, relative to the tolerance.
            error = size * fifth / np.sqrt((fifth + 0.01 * third) * self.state.size) if fifth or third else 0.0
            if error < 1:
                if not np.isfinite(slopes.new).all():
                    return NOT_FINITE
                grow = _GROW if error == 0 else min(_GROW, _SAFETY * error**_EXPONENT)
                self._next_size = size * (min(1, grow) if rejected else grow)
                self._start, self._size, self.s = self.s, size, s
                if self.state.size <= _DENSE and not self.stiff:
                    self._notice(*slopes.turn())
                self._old, self.state = self.state, self._old
                np.copyto(self.state, slopes.new)
                self._inside = None
                return None
            size *= max(_SHRINK, _SAFETY * error**_EXPONENT)
            rejected = True
        return TOO_SMALL

    def _hand_over(self, implicit: Callable[[float, np.ndarray], Any]) -> str | None:
        """Take a step of the method for stiff problems."""
        if self._after is None:
            self.switched, self._after = self.s, implicit(self.s, self.state.copy())
        reason: str | None = self._after.advance()
        self.s, self.state = self._after.s, self._after.state
        self.method, self.trials = self._after.method, self._after.trials
        return reason

    def _notice(self, apart: float, turned: float) -> None:
        """Hairer's test of stiffness, from the last two arguments of a step, both at its end, and their slopes."""
        rate = turned / apart if apart > 0 else 0.0
        if self._size * rate > _STABLE:
            self._bounded, self._free = self._bounded + 1, 0
            self.stiff = self._bounded == _AT_THE_BOUND
        else:
            self._free += 1
            if self._free == _WELL_INSIDE:
                self._bounded = 0

    def interpolate(self, s: np.ndarray) -> np.ndarray:
        """The states at points within the last step: (points, size of the state)."""
        if self._slopes.ends and self._after is None and (s == self.s).all():  # usual at the end of a flow
            return np.repeat(self.state[None], s.size, axis=0)
        return self.interpolant()(s)

    def interpolant(self) -> Any:
        """`interpolate` for several calls before the next step."""
        if self._after is not None:
            return self._after.interpolant()
        if self._inside is None:
            size, start = self._size, self._start
            self._inside = Inside(start, size, self._slopes.within(start + C * size, size, self._old, self.state))
        return self._inside


class Slopes(Protocol):
    """The slopes of a step, in arrays that all steps reuse.

    Attributes
    ----------
    new : (n,) array
        The state at the end of a step.
    ends : bool
        True if ``new`` may be used as the state at the end, in place of `within`.
    """

    new: np.ndarray
    ends: bool

    def tolerate(self, rtol: float, atol: float) -> None:
        """Take the tolerances of an integration before its first step."""

    def at(self, k: int, s: float, state: np.ndarray) -> np.ndarray:
        """Slope k at a state, which becomes the one that a step has in its place."""

    def begin(self) -> None:
        """Make the slope at the end of the last step that at the start of the next."""

    def step(self, moments: np.ndarray, size: float, state: np.ndarray) -> tuple[float, float]:
        """Compute ``new`` and the slopes; returns sums of squares of both error estimates for a step of size one.

        Entries are relative to the tolerances of `tolerate`.
        """

    def turn(self) -> tuple[float, float]:
        """Distances between the last two arguments of a step, and between their slopes."""

    def within(self, moments: np.ndarray, size: float, old: np.ndarray, state: np.ndarray) -> Within:
        """The states within a step from ``old`` to ``state``, before the next step."""


class Called:
    """Full slopes, each by a call, added in scipy's order.

    The derivative always reads and writes the same arrays, so that their views are made once. For large states, each
    stage sum is one pass over memory that skips zero coefficients, so the last bits differ from scipy's.
    """

    def __init__(self, bind: Bind, size: int, *, large: bool | None = None) -> None:
        self.stage, self.new, self._sum = (np.empty(size) for _ in range(3))
        self._rows = np.empty((EXTENDED, size))
        self.last = self._rows[STAGES]
        self.ends = self._large = size >= LARGE if large is None else large
        self._before = [self._rows[:k].T for k in range(EXTENDED)]
        self.evaluate = [bind(place(self, k), row) for k, row in enumerate(self._rows)]

    def tolerate(self, rtol: float, atol: float) -> None:
        self._tolerances = (rtol, atol)

    def at(self, k: int, s: float, state: np.ndarray) -> np.ndarray:
        np.copyto(place(self, k), state)
        self.evaluate[k](s)
        return self._rows[k]

    def begin(self) -> None:
        np.copyto(self._rows[0], self._rows[STAGES])

    def add(self, k: int, size: float, state: np.ndarray) -> None:
        """Write ``state + size sum_j A_kj slope_j`` into the argument of slope k."""
        out = place(self, k)
        if self._large:
            stage_sums.add(self._rows, *stage_sums.SPARSE[k], size, state, out)
            return
        np.dot(self._before[k], _BEFORE[k], self._sum)
        np.multiply(self._sum, size, self._sum)
        np.add(state, self._sum, out)

    def step(self, moments: np.ndarray, size: float, state: np.ndarray) -> tuple[float, float]:
        run(self, 1, STAGES + 1, moments, size, state)
        if self._large:
            found: tuple[float, float] = stage_sums.errors(
                self._rows, *stage_sums.ERRORS, state, self.new, *self._tolerances
            )
            return found
        rtol, atol = self._tolerances
        scale = atol + np.maximum(np.abs(state), np.abs(self.new)) * rtol
        rows = self._rows[: STAGES + 1].T
        fifth, third = (_norm(np.dot(rows, weights) / scale) ** 2 for weights in (E5, E3))
        return fifth, third

    def turn(self) -> tuple[float, float]:
        return _norm(self.new - self.stage), _norm(self._rows[STAGES] - self._rows[STAGES - 1])

    def within(self, moments: np.ndarray, size: float, old: np.ndarray, state: np.ndarray) -> Within:
        run(self, STAGES + 1, EXTENDED, moments, size, old)
        return Polynomial(size, old, state, self._rows[0], self.last, np.dot(D, self._rows))


class ByCalls(Protocol):
    """Slopes by calls, one after the other: the parts of `Called` that `run` needs."""

    stage: np.ndarray
    new: np.ndarray
    evaluate: list[Callable[[float], None]]

    def add(self, k: int, size: float, state: np.ndarray) -> None: ...


def place(slopes: ByCalls, k: int) -> np.ndarray:
    """The array for the argument of slope k."""
    return slopes.new if k == STAGES else slopes.stage


def run(slopes: ByCalls, first: int, last: int, moments: np.ndarray, size: float, state: np.ndarray) -> None:
    """Compute slopes ``first`` to ``last - 1``, at their ``moments``, of a step from ``state``."""
    for k in range(first, last):
        slopes.add(k, size, state)
        slopes.evaluate[k](moments[k])


class Polynomial:
    """Hairer's polynomial of order 7 within a step, from its ends, their slopes, and ``D`` times all slopes.

    Attributes
    ----------
    terms : list of (n,) arrays
        Coefficients of x, x (1 - x), x^2 (1 - x), ..
    """

    def __init__(
        self, size: float, old: np.ndarray, state: np.ndarray, first: np.ndarray, last: np.ndarray, dense: np.ndarray
    ) -> None:
        change, self._old = state - old, old
        self.terms = [change, size * first - change, 2 * change - size * (last + first), *(size * dense)]

    def __call__(self, x: np.ndarray) -> np.ndarray:
        states = np.zeros((len(x), self._old.size))
        for i, term in enumerate(reversed(self.terms)):
            states += term
            states *= 1 - x if i % 2 else x
        states += self._old
        return states


def _norm(x: np.ndarray) -> float:
    """Norm of a vector; for a small one, `numpy.linalg.norm` would take longer than the arithmetic."""
    norm: float = np.sqrt(x.dot(x))
    return norm


_BEFORE = [row[:k] for k, row in enumerate(A)]


class Trial(NamedTuple):
    """The numbers of a step, in arrays that a solver keeps.

    Attributes
    ----------
    slopes : (EXTENDED, variables)
    stage, new : (variables,)
        Arguments of the last two evaluations of a step; ``new`` is its end.
    rtol, atol : float
        Tolerances.
    """

    slopes: np.ndarray
    stage: np.ndarray
    new: np.ndarray
    rtol: float
    atol: float


@kernel(nogil=True, **_OPTIONS)
def take(frame, trial, first, last, size, speed, state):
    """Slopes ``first`` to ``last - 1``: ``speed_k`` times the derivative at ``state + size sum_j A_kj slopes_j``.

    At the end of a step returns the sums of squares of both error estimates, each entry relative to its tolerance, and
    the squares of the distances between its last two arguments and between their slopes; else zeros.
    """
    n, slopes = state.size, trial.slopes
    for k in range(first, last):
        at, out = trial.new if k == STAGES else trial.stage, slopes[k]
        for i in range(n):
            at[i] = 0
        for j in range(k):
            move = A[k, j]
            if move != 0:
                for i in range(n):
                    at[i] += move * slopes[j, i]
        for i in range(n):
            at[i] = state[i] + size * at[i]
        small.derive(frame, at, speed[k], out)
    fifth = third = apart = turned = 0.0
    if last == STAGES + 1:
        for i in range(n):
            e5 = e3 = 0.0
            for j in range(last):
                e5 += E5[j] * slopes[j, i]
                e3 += E3[j] * slopes[j, i]
            scale = trial.atol + trial.rtol * max(abs(state[i]), abs(trial.new[i]))
            fifth += (e5 / scale) ** 2
            third += (e3 / scale) ** 2
            apart += (trial.new[i] - trial.stage[i]) ** 2
            turned += (slopes[STAGES, i] - slopes[STAGES - 1, i]) ** 2
    return fifth, third, apart, turned


class Counter(Protocol):
    """A holder of a count of evaluations."""

    evaluations: int


class InKernel:
    """All slopes of a step in one kernel, for small states, where calls take longer than arithmetic.

    The kernel adds in another order, so the steps differ from `Called` by rounding.

    Parameters
    ----------
    frame : Frame
        The derivative.
    size : int
        Size of a state.
    counter : Counter
        Counts the evaluations.
    speed : callable, optional
        Factor of the derivative at each of some moments.
    """

    ends = True

    def __init__(
        self,
        frame: Frame,
        size: int,
        counter: Counter,
        speed: Callable[[np.ndarray], np.ndarray] | None = None,
    ) -> None:
        self._frame, self._counter, self._speed = frame, counter, speed
        self.new, self._rows = np.empty(size), np.zeros((EXTENDED, size))

    def tolerate(self, rtol: float, atol: float) -> None:
        self._trial = Trial(self._rows, np.empty(self.new.size), self.new, rtol, float(atol))

    def _take(self, first: int, last: int, moments: np.ndarray, size: float, state: np.ndarray) -> Found:
        self._counter.evaluations += last - first
        speed = _ONES if self._speed is None else self._speed(moments)
        found: Found = take(self._frame, self._trial, first, last, size, speed, state)
        return found

    def at(self, k: int, s: float, state: np.ndarray) -> np.ndarray:
        self._take(k, k + 1, np.full(EXTENDED, s), 0.0, state)
        return self._rows[k]

    def begin(self) -> None:
        np.copyto(self._rows[0], self._rows[STAGES])

    def step(self, moments: np.ndarray, size: float, state: np.ndarray) -> tuple[float, float]:
        self._found = self._take(1, STAGES + 1, moments, size, state)
        return self._found[:2]

    def turn(self) -> tuple[float, float]:
        return math.sqrt(self._found[2]), math.sqrt(self._found[3])

    def within(self, moments: np.ndarray, size: float, old: np.ndarray, state: np.ndarray) -> Within:
        self._take(STAGES + 1, EXTENDED, moments, size, old)

        def at(x: np.ndarray) -> np.ndarray:
            powers = np.where(_TURNS, 1 - x, x).cumprod(axis=1)  # x, x (1 - x), x^2 (1 - x), ..
            states: np.ndarray = (size * (powers @ _TERMS)) @ self._rows
            states += old
            return states

        return at


def _terms() -> np.ndarray:
    """Hairer's terms of the states within a step of size one, by slopes; `InKernel.within` sums them."""
    change, (first, last) = A[STAGES], np.eye(EXTENDED)[[0, STAGES]]
    return np.stack([change, first - change, 2 * change - last - first, *D])


_TERMS = _terms()
_TURNS = np.arange(len(_TERMS)) % 2 == 1
_ONES = np.ones(EXTENDED)
