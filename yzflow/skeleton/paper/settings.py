"""Settings at which the statements are checked."""

from __future__ import annotations

from dataclasses import dataclass

import yzflow as yz
from yzflow.skeleton.paper.flow import Climb


@dataclass(frozen=True)
class Setting:
    """A rate, inside or outside the assumptions.

    Attributes
    ----------
    name : str
    rate : float
        eta, per step.
    """

    name: str
    rate: float

    def simulate(self, level: str, *, seed: int) -> yz.Run:
        """The flow, or steps of gradient descent; time is in steps."""
        end = 40.0 / self.rate
        if level == "flow":
            return yz.integrate(Climb(self.rate), t_end=end, n_times=50)
        if level == "steps":  # of one unit of the flow's time each
            return yz.descend(Climb(self.rate), rate=1.0, steps=int(end), seed=seed)
        raise ValueError(f"`level` must be 'flow' or 'steps', but got {level!r}")


def settings(*, quick: bool) -> list[Setting]:
    """Rates inside the assumption and outside it."""
    chosen = [Setting("eta = 0.05", 0.05), Setting("eta = 2", 2.0)]
    return chosen if quick else [*chosen, Setting("eta = 0.01", 0.01)]
