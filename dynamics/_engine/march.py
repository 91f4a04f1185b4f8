"""The loop around the steps of an integrator: what is recorded at which times, and when a flow is given up."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dynamics._engine.clock import Clock
from dynamics._engine.steps import Interpolant, Steps
from dynamics.support import raised

# Steps over which a pace is taken, and at whose end it is judged.
_WINDOW = 1000
# A pace is slow where steps are this much shorter than the longest one was, ..
_SHRUNK = 1e-3
# .. and the rest would take more steps than these: of a method that rejects this share of its trials, as where the
# derivative jumps within a step; of one that does not say, as LSODA; of any. Smooth flows, stiff ones too, have less.
_REJECTED, _MANY, _MORE, _HOPELESS = 0.15, 1e5, 1e6, 1e7
# Steps over which the cause of a stall is looked for.
_SOUGHT = 200

# The fate of a step from ``start`` to ``end``, which ends before where that returns a place.
Within = Callable[[float, Interpolant, float], float | None]


class Guard:
    """Notices steps that stall, by their numbers and sizes and by no clock, so that a run stops at the same place.

    Parameters
    ----------
    end : float
        Where the integration ends.
    """

    def __init__(self, end: float) -> None:
        self._end, self._largest = end, 0.0
        self._steps, self._from, self._trials = 0, 0.0, 0

    def stalls(self, steps: Steps, size: float) -> bool:
        """Take note of a step of some size; whether the last ones lead nowhere."""
        self._largest = max(self._largest, size)
        self._steps += 1
        if self._steps < _WINDOW:
            return False
        pace = max(steps.s - self._from, 0.0) / self._steps
        tried = steps.trials
        # Fewer than before: another integrator took over.
        rejected = 0.0 if tried is None or tried < self._trials + _WINDOW else 1 - _WINDOW / (tried - self._trials)
        self._steps, self._from, self._trials = 0, steps.s, tried or 0
        most = _MANY if rejected > _REJECTED else _MORE if tried is None else _HOPELESS
        return pace < _SHRUNK * self._largest and (self._end - steps.s) > most * pace


def culprit(steps: Steps, derivative: Callable[[float, np.ndarray], np.ndarray]) -> tuple[int, float]:
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


def march(
    steps: Steps,
    grid: np.ndarray,
    states: np.ndarray,
    exceeded: Callable[[Steps, float], str | None],
    done: int = 0,
    *,
    within: Within | None = None,
    until: float = -np.inf,
) -> tuple[int, str | None]:
    """Take steps until all of ``grid`` is recorded in the rows of ``states``, from row ``done`` on, and to ``until``.

    Parameters
    ----------
    exceeded : callable
        Of the steps and the size of the last one, why there is to be no further one, or None.
    within : callable, optional
        Asked of each step; where it returns a place, the march ends with what is due up to there.

    Returns
    -------
    int
        The number of rows.
    str or None
        Why there is no further step.
    """
    while done < len(grid) or steps.s < until:
        before = steps.s
        try:
            reason = steps.advance()
        except ValueError as error:  # of what a schedule or a term returns
            if raised.is_own(error):
                raise
            reason = str(error)
        reason = reason or exceeded(steps, steps.s - before)
        if reason:
            return done, reason
        inside = steps.interpolate if within is None else steps.interpolant()
        cut = None if within is None else within(before, inside, steps.s)
        due = grid[done : np.searchsorted(grid, steps.s if cut is None else cut, side="right")]
        if due.size:
            states[done : done + due.size] = inside(due)
            done += due.size
        if cut is not None:
            break
    return done, None


def taken(steps: Steps, clock: Clock) -> str:
    """The method that integrated, in words."""
    switched = getattr(steps, "switched", None)
    return steps.method if switched is None else f"DOP853, from t = {clock.time(switched):.4g} on {steps.method}"
