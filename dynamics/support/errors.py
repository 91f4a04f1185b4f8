"""Errors of simulations that do not reach their end.

Their attributes have types of the floors above, which are not named.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


class IntegrationError(RuntimeError):
    """The integrator could not reach the end.

    Attributes
    ----------
    time : float
        The time that it reached, in SGD steps.
    layer : Layer
        The state at that time; None for `integrate`.
    trajectory : Trajectory or None
        The record until then.
    state : dict
        For `integrate`: the state at that time, name -> array.
    run : Run or None
        For `integrate`: the record until then.
    """

    def __init__(
        self,
        message: str,
        time: float,
        layer: Any,
        trajectory: Any,
        state: Mapping[str, np.ndarray] | None = None,
        run: Any = None,
    ) -> None:
        super().__init__(message)
        self.time = time
        self.layer = layer
        self.trajectory = trajectory
        self.state = dict(state or {})
        self.run = run

    def __reduce__(self) -> tuple:
        # The default hands only the message to __init__, and an error in a worker process would break its pool.
        return type(self), (str(self), self.time, self.layer, self.trajectory, self.state, self.run)


class DivergenceError(RuntimeError):
    """The loss stopped being finite.

    Attributes
    ----------
    step : int
        Number of the step (from 0) whose loss is not finite.
    trajectory : Trajectory
        The record before that step.
    """

    def __init__(self, message: str, step: int, trajectory: Any) -> None:
        super().__init__(message)
        self.step = step
        self.trajectory = trajectory

    def __reduce__(self) -> tuple:
        # The default hands only the message to __init__, and an error in a worker process would break its pool.
        return type(self), (str(self), self.step, self.trajectory)


class NotReducibleError(Exception):
    """The start lacks the symmetry of the population, or the plain system refuses it and says why."""
