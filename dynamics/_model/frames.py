"""A layer whose weights are variables of a state: the derivative of the state in one kernel (numba)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dynamics._model import small
from dynamics._model.gradient import kernel_of
from dynamics._model.problem import Problem
from dynamics._model.weights import Weights
from dynamics.backend.compiled import address, call, kernel
from dynamics.support.checks import read_only, read_only_views
from dynamics.support.limits import current

# The kernel below is used up to so many variables, and multiplications of an evaluation. Above, arithmetic outweighs
# the calls between the stages of a step, and Ctrl-C would wait for a step.
_VARIABLES, _WORK = 2**14, 2**18

_OPTIONS: dict[str, Any] = {"fastmath": {"reassoc", "contract"}, "uses": (small,)}


class Frame(NamedTuple):
    """A layer whose weights are variables of a state, as arrays for `derive`.

    Attributes
    ----------
    direct : bool
        Whether the weights are the variables, one after the other: then ``variable`` and ``factor`` have no entries.
    variable : (entries,) int
        The variable of each entry of the weights.
    factor : (entries,)
        Factor of the gradient at an entry; the products are then added up for each variable.
    rate : (variables,)
        Factor of the sum of each variable.
    entries, slopes : (entries or more,)
        The weights at which the gradient is taken, and its array; ``arguments`` has these arrays, or views of them.
    asked : (1,) bool
        True to compute the loss, too; a kernel that has it for free always does.
    gradient : int
        The `address` of a kernel of loss and gradient.
    arguments : tuple
        All arguments of that kernel.
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


def frame_of(
    problem: Problem, views: Callable[[np.ndarray], Weights], variable: np.ndarray, factor: np.ndarray, rate: np.ndarray
) -> Frame | None:
    """The frame of a problem; None if its gradient needs more than one call of the kernel, or a long one.

    ``views`` makes weights of an array, with its entries one after the other.
    """
    if rate.size > _VARIABLES or problem.work > _WORK:
        return None
    entries, slopes, asked = np.zeros(variable.size), np.zeros(variable.size), np.zeros(1, np.bool_)
    arguments = problem.alone(views(read_only(entries.view())), views(slopes))
    if arguments is None:
        return None
    own = small.small_of(problem.batch, problem.rule, arguments[2])
    if own is not None:
        entries, slopes, asked, gradient, arguments = own.entries, own.slopes, own.asked, small.plain_gradient, (own,)
    else:
        gradient = kernel_of(arguments[2], arguments[3])
    direct = np.array_equal(variable, np.arange(rate.size)) and bool((factor == 1).all())
    if direct:
        variable, factor = variable[:0], factor[:0]
    variable, factor, rate = read_only_views((variable.copy(), factor.copy(), rate.copy()))
    where = address(gradient, arguments)
    return Frame(direct, variable, factor, rate, entries, slopes, asked, where, arguments)


@kernel(inner=True, **_OPTIONS)
def derive(frame, at, speed, out):
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
def look(frame, states, losses, slopes):
    """Losses and derivatives at some states (states, variables)."""
    frame.asked[0] = True
    for k in range(states.shape[0]):
        losses[k] = derive(frame, states[k], 1.0, slopes[k])
    frame.asked[0] = False


def looked(frame: Frame, states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Loss and derivative of a frame at each of several states."""
    losses, slopes = np.empty(len(states)), np.empty(states.shape)
    states = read_only(np.ascontiguousarray(states).view())
    size = max(1, current().work // _WORK)
    for lo in range(0, len(states), size):
        rows = slice(lo, lo + size)
        look(frame, states[rows], losses[rows], slopes[rows])
    return losses, slopes
