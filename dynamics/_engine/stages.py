"""A step of DOP853 in one kernel, for states so small that calls take longer than arithmetic (numba)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from dynamics._engine import tableau
from dynamics._engine.steps import Bind, Dop853, Interpolant
from dynamics._engine.tableau import E3, E5, EXTENDED, STAGES, A, C, D
from dynamics._model import small
from dynamics._model.gradient import kernel_of
from dynamics._model.problem import Problem
from dynamics._model.weights import Weights
from dynamics.backend.compiled import address, call, kernel
from dynamics.support.checks import read_only

# Variables, and multiplications of an evaluation, up to which calls between the stages take longer than arithmetic, and
# a step so short that nobody waits for Ctrl-C; and states that are looked at in one call.
_VARIABLES, _WORK, _A_CALL = 2**14, 2**18, 2**10

_OPTIONS: dict[str, Any] = {"fastmath": {"reassoc", "contract"}, "uses": (tableau, small)}


class Frame(NamedTuple):
    """A layer whose weights are variables of a state, in the form that the kernel takes it.

    Attributes
    ----------
    direct : bool
        Whether the weights are the variables, one after the other: then ``variable`` and ``factor`` have no entries.
    variable : (entries,) int
        Which variable each entry of the weights is.
    factor : (entries,)
        What the gradient at an entry is multiplied by, before those of a variable are added up.
    rate : (variables,)
        What the sum is multiplied by.
    entries, slopes : (entries or more,)
        The weights that the gradient sees, and where it is added up: what ``arguments`` have, or views of them.
    asked : (1,) bool
        Whether the loss is asked for, too; where it is free it is always found.
    gradient : int
        The `address` of a kernel of loss and gradient.
    arguments : tuple
        All of its arguments.
    """

    direct: bool
    variable: np.ndarray
    factor: np.ndarray
    rate: np.ndarray
    entries: np.ndarray
    slopes: np.ndarray
    asked: np.ndarray
    gradient: int
    arguments: tuple


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


def frame_of(
    problem: Problem, views: Callable[[np.ndarray], Weights], variable: np.ndarray, factor: np.ndarray, rate: np.ndarray
) -> Frame | None:
    """The frame of a problem, or None where its gradient is more than a call of the kernel, or the call takes long.

    ``views`` are the weights whose entries, one after the other, an array has.
    """
    if rate.size > _VARIABLES or problem.work > _WORK:
        return None
    entries, slopes, asked = np.zeros(variable.size), np.zeros(variable.size), np.zeros(1, np.bool_)
    arguments = problem.alone(views(read_only(entries.view())), views(slopes))
    if arguments is None:
        return None
    own = problem.small(arguments[2])
    if own is not None:
        entries, slopes, asked, gradient, arguments = own.entries, own.slopes, own.asked, small.plain_gradient, (own,)
    else:
        gradient = kernel_of(arguments[2], arguments[3])
    direct = np.array_equal(variable, np.arange(rate.size)) and bool((factor == 1).all())
    if direct:
        variable, factor = variable[:0], factor[:0]
    variable, factor, rate = (read_only(array.copy()) for array in (variable, factor, rate))
    where = address(gradient, arguments)
    return Frame(direct, variable, factor, rate, entries, slopes, asked, where, arguments)


@kernel(inner=True, **_OPTIONS)
def _derive(frame, at, speed, out):
    """``speed`` times the derivative at ``at`` into ``out``; returns the loss if it was asked for."""
    n, variable, rate, slopes = at.size, frame.variable, frame.rate, frame.slopes
    if frame.direct:
        for i in range(n):
            frame.entries[i] = at[i]
    for i in range(variable.size):
        frame.entries[i] = at[variable[i]]
    for i in range(slopes.size):
        slopes[i] = 0
    loss = call(frame.gradient, frame.arguments)
    if frame.direct:
        for i in range(n):
            out[i] = slopes[i] * (rate[i] * speed)
        return loss
    for i in range(n):
        out[i] = 0
    for i in range(variable.size):
        out[variable[i]] += frame.factor[i] * slopes[i]
    for i in range(n):
        out[i] *= rate[i] * speed
    return loss


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
        _derive(frame, at, speed[k], out)
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


@kernel(nogil=True, **_OPTIONS)
def look(frame, states, losses, slopes):
    """Losses and derivatives at some states (states, variables)."""
    frame.asked[0] = True
    for k in range(states.shape[0]):
        losses[k] = _derive(frame, states[k], 1.0, slopes[k])
    frame.asked[0] = False


def looked(frame: Frame, states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The loss and the derivative of a frame at each of some states."""
    losses, slopes = np.empty(len(states)), np.empty(states.shape)
    states = read_only(np.ascontiguousarray(states).view())
    for lo in range(0, len(states), _A_CALL):
        part = slice(lo, lo + _A_CALL)
        look(frame, states[part], losses[part], slopes[part])
    return losses, slopes


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
