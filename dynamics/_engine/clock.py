"""The time of a flow, and its output times."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynamics.support import checks


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
