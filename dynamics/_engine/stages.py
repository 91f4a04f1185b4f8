"""A step of DOP853 in one kernel, for states so small that calls take longer than arithmetic (numba)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from dynamics._engine import tableau
from dynamics._engine.steps import Bind, Dop853, Interpolant
from dynamics._engine.tableau import E3, E5, EXTENDED, STAGES, A, C, D
from dynamics._model import frames, small
from dynamics._model.frames import Frame
from dynamics.backend.compiled import kernel

_OPTIONS: dict[str, Any] = {"fastmath": {"reassoc", "contract"}, "uses": (tableau, small, frames)}


class Trial(NamedTuple):
    """The numbers of a step, in arrays that a solver keeps.

    Attributes
    ----------
    slopes : (EXTENDED, variables)
    stage, new : (variables,)
        The argument of the last but one evaluation of a step, and of the last, which is its end.
    rtol, atol : float
        Tolerances.
    """

    slopes: np.ndarray
    stage: np.ndarray
    new: np.ndarray
    rtol: float
    atol: float


@kernel(nogil=True, **_OPTIONS)
def take(frame, trial, first, last, size, speed, state):
    """Slopes ``first`` to ``last - 1``: ``speed_k`` times the derivative at ``state + size sum_j A_kj slopes_j``.

    At the end of a step returns the sums of squares of both error estimates, each entry relative to its tolerance, and
    the squares of the distances between its last two arguments and between their slopes; else zeros.
    """
    n, slopes = state.size, trial.slopes
    for k in range(first, last):
        at, out = trial.new if k == STAGES else trial.stage, slopes[k]
        for i in range(n):
            at[i] = 0
        for j in range(k):
            move = A[k, j]
            if move != 0:
                for i in range(n):
                    at[i] += move * slopes[j, i]
        for i in range(n):
            at[i] = state[i] + size * at[i]
        frames.derive(frame, at, speed[k], out)
    fifth = third = apart = turned = 0.0
    if last == STAGES + 1:
        for i in range(n):
            e5 = e3 = 0.0
            for j in range(last):
                e5 += E5[j] * slopes[j, i]
                e3 += E3[j] * slopes[j, i]
            scale = trial.atol + trial.rtol * max(abs(state[i]), abs(trial.new[i]))
            fifth += (e5 / scale) ** 2
            third += (e3 / scale) ** 2
            apart += (trial.new[i] - trial.stage[i]) ** 2
            turned += (slopes[STAGES, i] - slopes[STAGES - 1, i]) ** 2
    return fifth, third, apart, turned


class StagedDop853(Dop853):
    """`Dop853` whose steps are one kernel: the same steps but for rounding, since the kernel adds in another order.

    Parameters
    ----------
    frame : Frame
        The derivative.
    speed : callable
        What multiplies it at an array of moments.
    watch : callable
        Called with the moment and the number of evaluations before these are made.
    """

    def __init__(
        self,
        frame: Frame,
        speed: Callable[[np.ndarray], np.ndarray],
        watch: Callable[[float, int], None],
        bind: Bind,
        end: float,
        initial: np.ndarray,
        *,
        rtol: float,
        atol: float,
    ) -> None:
        self._frame, self._speed, self._watch = frame, speed, watch
        super().__init__(bind, end, initial, rtol=rtol, atol=atol)

    def _bound(self, bind: Bind) -> list[Callable[[float], None]]:
        self._slopes = np.zeros((EXTENDED, self.state.size))
        self._trial = Trial(self._slopes, self._stage, self._new, self._rtol, float(self._atol))
        return [partial(self._one, k) for k in range(EXTENDED)]

    def _one(self, k: int, s: float) -> None:
        """The slope at what is in the place of an argument."""
        self._run(k, k + 1, np.full(EXTENDED, s), 0.0, self._place(k).copy())

    def _run(self, first: int, last: int, moments: np.ndarray, size: float, state: np.ndarray) -> None:
        self._watch(moments[first], last - first)
        self._found = take(self._frame, self._trial, first, last, size, self._speed(moments), state)

    def _squares(self) -> tuple[np.float64, np.float64]:
        return np.float64(self._found[0]), np.float64(self._found[1])

    def _turn(self) -> tuple[np.float64, np.float64]:
        return np.sqrt(self._found[2]), np.sqrt(self._found[3])

    def interpolate(self, s: np.ndarray) -> np.ndarray:
        if s.size == 1 and s[0] == self.s:  # mostly where a flow ends
            return self.state[None]
        return self.interpolant()(s)

    def interpolant(self) -> Interpolant:
        size, start, old = self._size, self._start, self._old
        self._run(STAGES + 1, EXTENDED, start + C * size, size, old)

        def at(s: np.ndarray) -> np.ndarray:
            x = ((s - start) / size)[:, None]
            powers = np.where(_TURNS, 1 - x, x).cumprod(axis=1)  # x, x (1 - x), x^2 (1 - x), ..
            states: np.ndarray = (size * (powers @ _TERMS)) @ self._slopes
            states += old
            return states

        return at


def _terms() -> np.ndarray:
    """Hairer's terms of the states within a step of size one, of which `Dop853.interpolant` makes sums, by slopes."""
    change, (first, last) = A[STAGES], np.eye(EXTENDED)[[0, STAGES]]
    return np.stack([change, first - change, 2 * change - last - first, *D])


_TERMS = _terms()
_TURNS = np.arange(len(_TERMS)) % 2 == 1
