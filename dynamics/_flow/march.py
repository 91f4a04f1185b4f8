"""The loop around the steps of an integrator: what is recorded at which times, and when a flow is given up."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dynamics._flow.clock import Clock
from dynamics._flow.steps import Steps

# Evaluations of the derivative after which a flow is given up: an hour or more, where a flow takes thousands.
MOST_EVALUATIONS = 10_000_000


def march(
    steps: Steps,
    grid: np.ndarray,
    states: np.ndarray,
    exceeded: Callable[[], str | None],
    done: int = 0,
) -> tuple[int, str | None]:
    """Take steps until all of ``grid`` is recorded in the rows of ``states``, from row ``done`` on.

    Returns the number of rows, and why there is no further step, or None.
    """
    while done < len(grid):
        try:
            reason = steps.advance()
        except ValueError as error:  # of a schedule or a term, which may be anybody's function
            reason = str(error)
        reason = reason or exceeded()
        if reason:
            return done, reason
        due = grid[done : np.searchsorted(grid, steps.s, side="right")]
        if due.size:
            states[done : done + due.size] = steps.interpolate(due)
            done += due.size
    return done, None


def taken(steps: Steps, clock: Clock) -> str:
    """What integrated, in words."""
    switched = getattr(steps, "switched", None)
    return steps.method if switched is None else f"DOP853, from t = {clock.time(switched):.4g} on {steps.method}"
