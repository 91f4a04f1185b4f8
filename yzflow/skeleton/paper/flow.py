"""The simulated system: attention between two tokens, one of them right."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np


class Climb:
    r"""The logit of the right token: dz/dt = eta (1 - p), with its attention p = 1/(1 + e^{-z}).

    Parameters
    ----------
    rate : float
        eta, per step; positive.

    Raises
    ------
    ValueError
        If the rate is not positive.
    """

    def __init__(self, rate: float = 1.0) -> None:
        if isinstance(rate, bool) or not isinstance(rate, (int, float)) or not 0 < rate < float("inf"):
            raise ValueError(f"`rate` must be a positive finite number, but got {rate!r}")
        self.rate = float(rate)
        self.initial = {"z": np.array(0.0)}

    def derivative(self, t: float, state: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Rate of change of the logit, per step."""
        return {"z": self.rate / (1.0 + np.exp(state["z"]))}

    def config(self) -> dict[str, float]:
        """The arguments that make it again, for files."""
        return {"rate": self.rate}
