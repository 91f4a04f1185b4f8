"""The steps of an integrator: DOP853, whose slopes are an object of several kinds, and the methods of scipy."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy  # which imports its integrators, a third of a second, when they are first used

from dynamics._engine.slopes import Bind, Called, Slopes, Within
from dynamics._engine.tableau import STAGES, C
from dynamics.support import raised

# The states (points, size of the state) at points within a step.
Interpolant = Callable[[np.ndarray], np.ndarray]

_SAFETY, _SHRINK, _GROW = 0.9, 0.2, 10.0
# An error of order h^8 tells how the next step should be.
_EXPONENT = -1 / 8
# Hairer's test for stiffness: |h lambda| near the bound of stability, 6.1, in so many steps, not interrupted by so many
# others. Flows that their tolerances bound stay below 2.3, those that stability does have 4.7 to 7.
_STABLE, _AT_THE_BOUND, _WELL_INSIDE = 4.0, 15, 6
# Numbers in a state up to which the Jacobian by differences and its factors take seconds at most.
_DENSE = 1000
_FINEST = 100 * float(np.finfo(np.float64).eps)
NOT_FINITE = "the state is no longer finite"
TOO_SMALL = "Required step size is less than spacing between numbers."


class Steps(Protocol):
    """An integration on its way.

    Attributes
    ----------
    s : float
        How far it came.
    state : (n,) array
        The state there.
    method : str
        What takes the next step.
    trials : int or None
        Steps that were tried, the rejected ones among them; None where a method does not say.
    """

    @property
    def s(self) -> float: ...

    @property
    def state(self) -> np.ndarray: ...

    @property
    def method(self) -> str: ...

    @property
    def trials(self) -> int | None: ...

    def advance(self) -> str | None:
        """Take a step; returns None, or the reason if there is no further step."""

    def interpolate(self, s: np.ndarray) -> np.ndarray:
        """The states at points within the last step: (points, size of the state)."""

    def interpolant(self) -> Interpolant:
        """`interpolate` for several calls before the next step."""


@dataclass
class Inside:
    """States within a step of DOP853, from ``start`` on over ``size``."""

    start: float
    size: float
    within: Within

    def __call__(self, s: np.ndarray) -> np.ndarray:
        return self.within(((s - self.start) / self.size)[:, None])


class Dop853:
    """DOP853 as `scipy.integrate.DOP853` does it, to the last bit with `Called` slopes of a state that is not large.

    Attributes
    ----------
    stiff : bool
        Whether stability has bounded the steps for a while, and not the tolerances.
    trials : int
        Steps that were tried.
    """

    method = "DOP853"

    def __init__(
        self, slopes: Slopes, end: float, initial: np.ndarray, *, rtol: float, atol: float, start: float = 0.0
    ) -> None:
        self.s, self.state, self.trials = start, initial.copy(), 0
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

        The slope at the start comes to the last place of slopes, where a step leaves the slope at its end.
        """
        scale = atol + np.abs(self.state) * rtol
        start, rest = self.s, self._end - self.s
        slope = self._slopes.at(STAGES, start, self.state)
        d0, d1 = (np.linalg.norm(x / scale) / scale.size**0.5 for x in (self.state, slope))
        h0 = min(1e-6 if d0 < 1e-5 or d1 < 1e-5 else 0.01 * d0 / d1, rest)
        ahead = self._slopes.at(1, start + h0, self.state + h0 * slope)
        d2 = np.linalg.norm((ahead - slope) / scale) / scale.size**0.5 / h0
        h1 = max(1e-6, h0 * 1e-3) if d1 <= 1e-15 and d2 <= 1e-15 else (0.01 / max(d1, d2)) ** -_EXPONENT
        return min(100 * h0, h1, rest)

    def advance(self) -> str | None:
        """Take a step; returns None, or the reason if there is no further step."""
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
            except ValueError as refusal:  # of what a schedule or a term returns
                if raised.is_own(refusal):
                    raise
                return str(refusal)
            # Relative to the tolerance, Hairer's mean of two estimates.
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

    def _notice(self, apart: float, turned: float) -> None:
        """Hairer's test of stiffness: the rate of change between the last two arguments of a step, both at its end."""
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
        if self._slopes.ends and (s == self.s).all():  # mostly where a flow ends
            return np.repeat(self.state[None], s.size, axis=0)
        return self.interpolant()(s)

    def interpolant(self) -> Inside:
        """`interpolate` for several calls before the next step."""
        if self._inside is None:
            size, start = self._size, self._start
            self._inside = Inside(start, size, self._slopes.within(start + C * size, size, self._old, self.state))
        return self._inside


class ScipySteps:
    """The steps of a method of `scipy.integrate`, which reports why it cannot go on.

    `scipy.integrate.solve_ivp` would return no state at all then, and would not notice that LSODA steps on the spot.
    """

    _IDLE = 100

    def __init__(
        self,
        method: str,
        bind: Bind,
        end: float,
        initial: np.ndarray,
        options: Mapping[str, float],
        *,
        start: float = 0.0,
    ) -> None:
        self.s, self.state, self.method = start, initial, method
        place, out = np.empty_like(initial), np.empty_like(initial)
        evaluate = bind(place, out)

        def right_hand_side(s: float, state: np.ndarray) -> np.ndarray:
            np.copyto(place, state)
            evaluate(s)
            return out.copy()

        name = method.rpartition(" ")[2]  # "scipy DOP853" is DOP853 there
        self._make = lambda: getattr(scipy.integrate, name)(right_hand_side, start, initial, end, **options)
        self._solver: Any = None

    def advance(self) -> str | None:
        """Take a step; returns None, or the reason if there is no further step."""
        for _ in range(self._IDLE):
            try:
                # The constructors of the implicit methods already form a Jacobian.
                self._solver = self._solver or self._make()
                message = self._solver.step()
            except (ValueError, np.linalg.LinAlgError) as error:  # an implicit method meets nan in its Jacobian
                if raised.is_own(error):
                    raise
                return str(error)
            if self._solver.status == "failed":
                return message or "the step failed"
            if not np.isfinite(self._solver.y).all():  # LSODA steps on with nan
                return NOT_FINITE
            if self._solver.t > self.s:
                self.s, self.state = self._solver.t, self._solver.y
                return None
        return "the step size is too small to advance the time"

    def interpolate(self, s: np.ndarray) -> np.ndarray:
        """The states at points within the last step: (points, size of the state)."""
        return self.interpolant()(s)

    def interpolant(self) -> Interpolant:
        """`interpolate` for several calls before the next step."""
        dense = self._solver.dense_output()
        return lambda s: np.ascontiguousarray(dense(s).T)

    @property
    def trials(self) -> int | None:
        """Steps that were tried, where the method is explicit."""
        stages = getattr(self._solver, "n_stages", None)
        return None if stages is None or self.method == "Radau" else int(self._solver.nfev // stages)


class Switching:
    """DOP853 and, once it finds the problem stiff, LSODA, which then uses backward differences and a Jacobian.

    Only small states switch: a Jacobian by differences costs an evaluation for each number, and memory for each pair.
    Radau and BDF were tried in its place: at eta_Z = 10,000 eta_Y and ln t = 50 they took a hundred times as long.

    Attributes
    ----------
    switched : float or None
        Where LSODA took over.
    """

    def __init__(self, explicit: Dop853, bind: Bind, end: float, *, rtol: float, atol: float) -> None:
        self._explicit = explicit
        self._steps: Steps = explicit
        self._given = (bind, end, {"rtol": rtol, "atol": atol})
        self.switched: float | None = None

    @property
    def s(self) -> float:
        return self._steps.s

    @property
    def state(self) -> np.ndarray:
        return self._steps.state

    @property
    def method(self) -> str:
        return self._steps.method

    def advance(self) -> str | None:
        """Take a step; returns None, or the reason if there is no further step."""
        if self.switched is None and self._explicit.stiff:
            bind, end, options = self._given
            self.switched = self.s
            self._steps = ScipySteps("LSODA", bind, end, self.state.copy(), options, start=self.s)
        return self._steps.advance()

    def interpolate(self, s: np.ndarray) -> np.ndarray:
        """The states at points within the last step: (points, size of the state)."""
        return self._steps.interpolate(s)

    def interpolant(self) -> Interpolant:
        """`interpolate` for several calls before the next step."""
        return self._steps.interpolant()

    @property
    def trials(self) -> int | None:
        """Steps that were tried, where the method is explicit."""
        return self._steps.trials


def steps_of(
    method: str,
    bind: Bind,
    end: float,
    initial: np.ndarray,
    *,
    rtol: float,
    atol: float,
    start: float = 0.0,
    slopes: Slopes | None = None,
) -> Steps:
    """The integration by a method of `dynamics._engine.solver` from ``start``.

    ``slopes`` are those of DOP853 if they are not `Called`.
    """
    if method in ("auto", "DOP853"):
        slopes = Called(bind, initial.size) if slopes is None else slopes
        steps = Dop853(slopes, end, initial, rtol=rtol, atol=atol, start=start)
        return steps if method == "DOP853" else Switching(steps, bind, end, rtol=rtol, atol=atol)
    return ScipySteps(method, bind, end, initial, {"rtol": rtol, "atol": atol}, start=start)
