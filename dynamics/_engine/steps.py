"""The steps of an integrator: DOP853 with little Python between its stages, and the methods of scipy."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
import scipy  # which imports its integrators, a third of a second, when they are first used

from dynamics._engine import sums
from dynamics._engine.tableau import E3, E5, EXTENDED, STAGES, A, C, D
from dynamics.support import raised

# Given arrays (state, out), a function that writes the derivative at s, at what ``state`` then holds, into ``out``; a
# third argument takes the place of `System.bound`.
Bind = Callable[..., Callable[[float], None]]
# The states (points, size of the state) at points within a step.
Interpolant = Callable[[np.ndarray], np.ndarray]

# Numbers in a state from which on sums over stages wait for memory rather than for Python.
LARGE = 2**15
_SAFETY, _SHRINK, _GROW = 0.9, 0.2, 10.0
# An error of order h^8 tells how the next step should be.
_EXPONENT = -1 / 8
# Hairer's test for stiffness: |h lambda| near the bound of stability, 6.1, in so many steps, not interrupted by so many
# others. Flows that their tolerances bound stay below 2.3, those that stability does have 4.7 to 7.
_STABLE, _AT_THE_BOUND, _WELL_INSIDE = 4.0, 15, 6
# Numbers in a state up to which the Jacobian by differences and its factors take seconds at most.
_DENSE = 1000
_FINEST = 100 * float(np.finfo(np.float64).eps)
_NOT_FINITE = "the state is no longer finite"


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


class Dop853:
    """DOP853 as `scipy.integrate.DOP853` does it, to the last bit where the state is not large.

    The derivative is always evaluated at the same places in memory, so that whatever is not arithmetic is done once.
    Where the state is large, a sum over stages is one pass over memory without the coefficients that are zero; the last
    bits then differ from scipy's. `_engine.factors` keeps less of the slopes than numbers of the state;
    `_engine.stages` takes a step of a small state in one kernel.

    Attributes
    ----------
    stiff : bool
        Whether stability has bounded the steps for a while, and not the tolerances.
    trials : int
        Steps that were tried.
    """

    method = "DOP853"

    def __init__(
        self, bind: Bind, end: float, initial: np.ndarray, *, rtol: float, atol: float, start: float = 0.0
    ) -> None:
        self.s, self.state, self.trials = start, initial.copy(), 0
        self._end, self._atol = end, atol
        if rtol < _FINEST:
            warnings.warn(f"rtol = {rtol:g} is finer than numbers are: {_FINEST:.2g} is used", stacklevel=2)
        self._rtol = max(rtol, _FINEST)
        n = initial.size
        self._old, self._stage, self._new, self._sum = (np.empty(n) for _ in range(4))
        self._large = n >= LARGE
        self._evaluate = self._bound(bind)
        self.stiff, self._bounded, self._free = False, 0, 0
        self._start, self._size, self._next_size = start, 0.0, self._first_size()

    def _bound(self, bind: Bind) -> list[Callable[[float], None]]:
        """Make room for the slopes; what evaluates each."""
        self._slopes = np.empty((EXTENDED, self.state.size))
        self._before = [self._slopes[:k].T for k in range(EXTENDED)]
        return [bind(self._place(k), row) for k, row in enumerate(self._slopes)]

    def _place(self, k: int) -> np.ndarray:
        """Where the argument of an evaluation is."""
        return self._new if k == STAGES else self._stage

    def _slope(self, k: int) -> np.ndarray:
        """The slope at a stage."""
        return self._slopes[k]

    def _first_size(self) -> float:
        """The first step to try: Hairer, Norsett, Wanner, Section II.4.

        The slope at the start comes to the last row of slopes, where a step leaves the slope at its end.
        """
        scale = self._atol + np.abs(self.state) * self._rtol
        np.copyto(self._new, self.state)
        start, rest = self.s, self._end - self.s
        self._evaluate[STAGES](start)
        slope = self._slope(STAGES)
        d0, d1 = (np.linalg.norm(x / scale) / scale.size**0.5 for x in (self.state, slope))
        h0 = min(1e-6 if d0 < 1e-5 or d1 < 1e-5 else 0.01 * d0 / d1, rest)
        np.add(self.state, h0 * slope, out=self._stage)
        self._evaluate[1](start + h0)
        d2 = np.linalg.norm((self._slope(1) - slope) / scale) / scale.size**0.5 / h0
        h1 = max(1e-6, h0 * 1e-3) if d1 <= 1e-15 and d2 <= 1e-15 else (0.01 / max(d1, d2)) ** -_EXPONENT
        return min(100 * h0, h1, rest)

    def advance(self) -> str | None:
        """Take a step; returns None, or the reason if there is no further step."""
        smallest = 10 * abs(math.nextafter(self.s, math.inf) - self.s)
        size, rejected = max(self._next_size, smallest), False
        self._begin()
        while size >= smallest:
            s = min(self.s + size, self._end)
            size = s - self.s
            self.trials += 1
            moments = self.s + C * size
            moments[STAGES] = s
            self._run(1, STAGES + 1, moments, size, self.state)
            error = self._error(size)
            if error < 1:
                if not np.isfinite(self._new).all():
                    return _NOT_FINITE
                grow = _GROW if error == 0 else min(_GROW, _SAFETY * error**_EXPONENT)
                self._next_size = size * (min(1, grow) if rejected else grow)
                self._start, self._size, self.s = self.s, size, s
                if self._new.size <= _DENSE and not self.stiff:
                    self._notice(size)
                self._old, self.state = self.state, self._old
                np.copyto(self.state, self._new)
                return None
            size *= max(_SHRINK, _SAFETY * error**_EXPONENT)
            rejected = True
        return "Required step size is less than spacing between numbers."

    def _begin(self) -> None:
        """The slope at the end of the last step is that at the start of the next."""
        np.copyto(self._slopes[0], self._slopes[STAGES])

    def _run(self, first: int, last: int, moments: np.ndarray, size: float, state: np.ndarray) -> None:
        """Slopes ``first`` to ``last - 1``, at their ``moments``, of a step from ``state``."""
        for k in range(first, last):
            self._add(k, size, state, self._place(k))
            self._evaluate[k](moments[k])

    def _notice(self, size: float) -> None:
        """Hairer's test of stiffness: the rate of change between the last two arguments of a step, both at its end."""
        apart, turned = self._turn()
        rate = turned / apart if apart > 0 else 0.0
        if size * rate > _STABLE:
            self._bounded, self._free = self._bounded + 1, 0
            self.stiff = self._bounded == _AT_THE_BOUND
        else:
            self._free += 1
            if self._free == _WELL_INSIDE:
                self._bounded = 0

    def _turn(self) -> tuple[np.float64, np.float64]:
        """How far the last two arguments of a step are apart, and their slopes."""
        return _norm(self._new - self._stage), _norm(self._slopes[STAGES] - self._slopes[STAGES - 1])

    def _add(self, k: int, size: float, state: np.ndarray, out: np.ndarray) -> None:
        """``state + size sum_j A_kj slope_j`` into ``out``."""
        if self._large:
            sums.add(self._slopes, *SPARSE[k], size, state, out)
            return
        np.dot(self._before[k], _BEFORE[k], self._sum)  # the order of scipy
        np.multiply(self._sum, size, self._sum)
        np.add(state, self._sum, out)

    def _error(self, size: float) -> float:
        """The error of a step relative to the tolerance, Hairer's mean of two estimates."""
        fifth, third = self._squares()
        if fifth == 0 and third == 0:
            return 0.0
        return size * fifth / np.sqrt((fifth + 0.01 * third) * self.state.size)

    def _squares(self) -> tuple[np.float64, np.float64]:
        """Sums of squares of both error estimates of a step of size one, each relative to the tolerance."""
        if self._large:
            sides = (self.state, self._new, self._rtol, self._atol)
            fifth, third = map(np.float64, sums.errors(self._slopes, *ERRORS, *sides))
            return fifth, third
        scale = self._atol + np.maximum(np.abs(self.state), np.abs(self._new)) * self._rtol
        slopes = self._slopes[: STAGES + 1].T
        fifth, third = (_norm(np.dot(slopes, weights) / scale) ** 2 for weights in (E5, E3))
        return fifth, third

    def _means(self, weights: np.ndarray) -> np.ndarray:
        """``sum_j weights_ij slope_j``: (rows of weights, size of the state)."""
        return np.dot(weights, self._slopes)

    def interpolate(self, s: np.ndarray) -> np.ndarray:
        """The states at points within the last step: (points, size of the state)."""
        if self._large and (s == self.s).all():  # mostly where a flow ends
            return np.repeat(self.state[None], s.size, axis=0)
        return self.interpolant()(s)

    def interpolant(self) -> Interpolant:
        """`interpolate` for several calls before the next step."""
        size, start = self._size, self._start
        self._run(STAGES + 1, EXTENDED, self._start + C * size, size, self._old)
        change = self.state - self._old
        first, last = self._slope(0), self._slope(STAGES)
        terms = [change, size * first - change, 2 * change - size * (last + first)]
        terms += list(size * self._means(D))

        def at(s: np.ndarray) -> np.ndarray:
            x = ((s - start) / size)[:, None]
            states = np.zeros((s.size, change.size))
            for i, term in enumerate(reversed(terms)):
                states += term
                states *= 1 - x if i % 2 else x
            states += self._old
            return states

        return at


def _sparse(*rows: np.ndarray) -> tuple[np.ndarray, ...]:
    """Where any of some rows of coefficients is not zero, and the coefficients there."""
    stages = np.flatnonzero(np.any(rows, axis=0))
    return stages, *(row[stages] for row in rows)


def _norm(x: np.ndarray) -> np.float64:
    """`numpy.linalg.norm` of a vector, which takes longer than the arithmetic of a small one."""
    return np.sqrt(x.dot(x))


_BEFORE = [row[:k] for k, row in enumerate(A)]
SPARSE = [_sparse(row) for row in A]
ERRORS = _sparse(E5, E3)


# Makes the steps of DOP853 as its arguments say: `Dop853`, or a class under it with what else it needs.
Explicit = Callable[..., Dop853]


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
                return _NOT_FINITE
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
    explicit: Explicit = Dop853,
    start: float = 0.0,
) -> Steps:
    """The integration by a method of `dynamics._engine.solver` from ``start``; ``explicit`` makes the steps of DOP853.

    Only `Dop853` itself starts elsewhere than at 0.
    """
    own = {} if start == 0 else {"start": start}
    if method in ("auto", "DOP853"):
        steps = explicit(bind, end, initial, rtol=rtol, atol=atol, **own)
        return steps if method == "DOP853" else Switching(steps, bind, end, rtol=rtol, atol=atol)
    return ScipySteps(method, bind, end, initial, {"rtol": rtol, "atol": atol}, **own)
