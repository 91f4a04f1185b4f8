"""Errors of simulations that come to no end. What they carry are objects of the floors above, so no type names them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


class IntegrationError(RuntimeError):
    """The integrator could not reach the end.

    Attributes
    ----------
    time : float
        How far it came, in SGD steps.
    layer : Layer
        The state there; of `integrate` None.
    trajectory : Trajectory or None
        What was recorded until then.
    state : dict
        Of `integrate`: the state there, name -> array.
    run : Run or None
        Of `integrate`: what was recorded until then.
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
        What was recorded before.
    """

    def __init__(self, message: str, step: int, trajectory: Any) -> None:
        super().__init__(message)
        self.step = step
        self.trajectory = trajectory

    def __reduce__(self) -> tuple:
        # The default hands only the message to __init__, and an error in a worker process would break its pool.
        return type(self), (str(self), self.step, self.trajectory)


class NotReducibleError(Exception):
    """The start lacks the symmetry of the population, or is one that the plain system refuses and says why."""
