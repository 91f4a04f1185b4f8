"""The clock of a flow, the loop around steps that records at output times, and a guard that gives a flow up."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from dynamics._engine.steps import FlowSteps
from dynamics.support import checks
from dynamics.support.limits import current
from dynamics.support.progress import Progress

# Number of steps after which the pace is judged.
_WINDOW = 1000
# The pace is slow if steps are shorter than this share of the longest one.
_SHRUNK = 1e-3
# A slow flow stops if the rest would need more steps than 1e5 (if the method rejects over 15% of trials, as at jumps
# of the derivative), 1e6 (if it does not report rejections, as LSODA) or 1e7 (else). Smooth and stiff flows need less.
_REJECTED, _MANY, _MORE, _HOPELESS = 0.15, 1e5, 1e6, 1e7
# Number of steps in the search for the cause of a stall.
_SOUGHT = 200
STALL = "steps stall"

# (start, steps) -> None, or the point at which to cut the step.
Within = Callable[[float, Any], float | None]


@dataclass(frozen=True)
class Clock:
    """The map between time t and the variable of integration s: t = t_0 + s, or t = t_0 + exp(s) - 1."""

    start: float
    end: float
    logarithmic: bool

    def variable(self, t: ArrayLike) -> np.ndarray:
        """s at times t."""
        return np.log1p(np.asarray(t) - self.start) if self.logarithmic else np.asarray(t) - self.start

    def time(self, s):
        """t at s, a number or an array; rounding never puts it beyond the end."""
        return np.minimum(self.start + (np.expm1(s) if self.logarithmic else s), self.end)

    def rate(self, s):
        """dt/ds at s, a number or an array."""
        return np.exp(s) if self.logarithmic else np.ones_like(s)

    def output_times(self, times: ArrayLike | None, n_times: int) -> np.ndarray:
        """The arguments ``times`` and ``n_times`` of `gradient_flow` as an array, checked."""
        if times is None:
            n_times = checks.integer("n_times", n_times, minimum=2)
            checks.fits_in_memory("n_times", 8 * n_times, "record times")
            equal: np.ndarray = self.time(np.linspace(0.0, self.variable(self.end), n_times))
            equal[-1] = self.end
            return equal
        times = checks.finite_array("times", times, ndim=1)
        if times.size == 0:
            raise checks.reject("times", "hold at least one time", "none")
        if times[0] < self.start or times[-1] > self.end:
            outside = times[0] if times[0] < self.start else times[-1]
            raise checks.reject("times", f"lie in [{self.start:g}, {self.end:g}]", outside)
        if (np.diff(times) <= 0).any():
            where = int(np.argmax(np.diff(times) <= 0))
            raise checks.reject("times", "increase", f"{times[where + 1]} after {times[where]}")
        return times


class Advancing(Protocol):
    """Steps of any kind: of an integrator, of a random path, of a descent."""

    @property
    def s(self) -> float: ...

    def advance(self) -> str | None: ...

    def interpolate(self, s: np.ndarray) -> Any: ...


class Guard:
    """Watches an integration: counts evaluations of the derivative, reports, and refuses further steps.

    Steps that stall are noticed by their numbers and sizes and by no clock, so that a run stops at the same place.

    Parameters
    ----------
    clock : Clock
    report : Progress, optional
    slope : callable, optional
        (s, state) -> derivative, for the cause of a stall.
    component : callable
        A number of the state in words.
    most, why : float, str
        A further bound on evaluations beside `Limits`, and its reason in words.

    Attributes
    ----------
    end : float
        End of the integration.
    evaluations : int
    """

    def __init__(
        self,
        clock: Clock,
        report: Progress | None = None,
        slope: Callable[[float, np.ndarray], np.ndarray] | None = None,
        component: Callable[[int], str] = str,
        most: float = math.inf,
        why: str = "",
    ) -> None:
        self._clock, self._slope, self._component = clock, slope, component
        self._report = report if report is not None and report.enabled else None
        self.end, self.evaluations = float(clock.variable(clock.end)), 0
        self._most, self._why = min(current().evaluations, most), why
        self._largest, self._steps, self._from, self._trials = 0.0, 0, 0.0, 0

    def reached(self, s: float) -> None:
        """Report the progress of a run."""
        if self._report is not None:
            t = self._clock.time(s)
            self._report.update(s / self.end, f"at t = {t:.4g} of {self._clock.end:g}")

    def timed(self, evaluate: Callable[[float], object], out: np.ndarray) -> Callable[[float], None]:
        """The derivative by the variable of integration; ``evaluate`` writes the derivative by t into ``out``."""
        clock = self._clock

        def at(s: float) -> None:
            self.evaluations += 1
            self.reached(s)
            evaluate(float(clock.time(s)))
            if clock.logarithmic:
                np.multiply(out, clock.rate(s), out=out)

        return at

    def exceeded(self, steps: FlowSteps, size: float) -> str | None:
        """The reason to stop after a step of this size, or None."""
        if self.evaluations > self._most:
            return f"more than {self._most:,} evaluations of the derivative{self._why}"
        if self._slope is None or not self.stalls(steps, size):
            return None
        number, jump = culprit(steps, self._slope)
        return f"{STALL}, and the slope of {self._component(number)} jumps by {jump:.3g} between them"

    def stalls(self, steps: FlowSteps, size: float) -> bool:
        """Count a step of this size; True if the last steps stall."""
        self._largest = max(self._largest, size)
        self._steps += 1
        if self._steps < _WINDOW:
            return False
        pace = max(steps.s - self._from, 0.0) / self._steps
        tried = steps.trials
        # A lower count of trials means that another integrator took over.
        rejected = 0.0 if tried is None or tried < self._trials + _WINDOW else 1 - _WINDOW / (tried - self._trials)
        self._steps, self._from, self._trials = 0, steps.s, tried or 0
        most = _MANY if rejected > _REJECTED else _MORE if tried is None else _HOPELESS
        return pace < _SHRUNK * self._largest and (self.end - steps.s) > most * pace


def culprit(steps: FlowSteps, derivative: Callable[[float, np.ndarray], np.ndarray]) -> tuple[int, float]:
    """Number of the variable whose slope jumps most between steps that stall, and by how much."""
    jumps, before = np.zeros(steps.state.size), derivative(steps.s, steps.state.copy())
    for _ in range(_SOUGHT):
        if steps.advance():
            break
        after = derivative(steps.s, steps.state.copy())
        np.maximum(jumps, np.abs(after - before), out=jumps)
        before = after
    found = int(np.argmax(jumps))
    return found, float(jumps[found])


def drive(
    steps: Advancing,
    times: np.ndarray,
    rows: np.ndarray,
    guard: Callable[[Any, float], str | None] | None = None,
    report: Callable[[float], None] | None = None,
    *,
    within: Within | None = None,
    until: float = -np.inf,
    done: int = 0,
    first: bool = False,
) -> tuple[int, str | None]:
    """Take steps until all of ``times`` is recorded, and to ``until``: advance, watch, record, refuse.

    Parameters
    ----------
    steps : Advancing
    times : (n,) array
        Output times in the variable of integration.
    rows : (n, ..) array
        Receives the states at these times.
    guard : callable, optional
        (steps, size of the last step) -> reason to stop, or None.
    report : callable, optional
        Called with s after each step.
    within : callable, optional
        Called for each step; if it returns a point, the drive ends there.
    done : int
        Number of rows that are recorded already.
    first : bool
        Record outputs at the start before the first step.

    Returns
    -------
    int
        The number of rows.
    str or None
        The reason why there is no further step.
    """
    if first:
        done = _due(steps, times, rows, done, steps.s)
    while done < len(times) or steps.s < until:
        before = steps.s
        reason = steps.advance() or (guard(steps, steps.s - before) if guard else None)
        if reason:
            return done, reason
        cut = None if within is None else within(before, steps)
        done = _due(steps, times, rows, done, steps.s if cut is None else cut)
        if cut is not None:
            break
        if report is not None:
            report(steps.s)
    return done, None


def _due(steps: Advancing, times: np.ndarray, rows: np.ndarray, done: int, end: float) -> int:
    """Record the outputs up to ``end``; returns the number of recorded rows."""
    due = times[done : np.searchsorted(times, end, side="right")]
    if due.size:
        rows[done : done + due.size] = steps.interpolate(due)
    return done + due.size


def taken(steps: FlowSteps, clock: Clock) -> str:
    """The method that integrated, in words."""
    if steps.switched is None:
        return steps.method
    return f"DOP853, from t = {clock.time(steps.switched):.4g} on {steps.method}"
