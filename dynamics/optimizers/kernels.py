"""Numba kernels of the optimizers with compiled steps: each operation has a kernel for each class of `table.Update`."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynamics.backend.compiled import by_type, kernel
from dynamics.optimizers.table import Moments, Velocity

_OPTIONS: dict[str, Any] = {"fastmath": {"reassoc", "contract"}}
# After so many steps without a gradient, Adam moves no more: its first moment fell by 0.9^400 = 5e-19, its second by
# 0.67.
_FORGOTTEN = 400


# When a row catches up, products are rounded before they are added, as in an expression of arrays; numba compiles a
# loop faster than such an expression. Without this option the kernel would get the options of its caller.
_ROUNDED: dict[str, Any] = {"fastmath": False}


@kernel(inner=True, **_ROUNDED)
def _shrink(numbers, factor):
    for i in range(numbers.size):
        numbers[i] *= factor


@kernel(inner=True, **_OPTIONS)
def _kept_velocity(update, parameter):
    return update.momentum


@kernel(inner=True, **_OPTIONS)
def _ascend_velocity(update, parameter, slope, first, second, rate, step):
    for i in range(parameter.size):
        parameter[i] += rate * first[i]


@kernel(inner=True, **_ROUNDED)
def _catch_up_velocity(update, parameter, slope, first, second, rate, missed, step):
    momentum = update.momentum
    decay = momentum ** parameter.dtype.type(missed)
    path = rate * momentum * (1 - decay) / (1 - momentum)
    for i in range(parameter.size):
        parameter[i] += path * first[i]
    _shrink(first, decay)


@kernel(inner=True, **_OPTIONS)
def _kept_moments(update, parameter):
    return parameter.dtype.type(0)


@kernel(inner=True, **_OPTIONS)
def _ascend_moments(update, parameter, slope, first, second, rate, step):
    # Weights of the new gradient, written out: 1 - 0.999 in single precision would be off by 1e-5.
    new1, new2 = parameter.dtype.type(0.1), parameter.dtype.type(0.001)
    small = parameter.dtype.type(1e-8)
    scale1 = parameter.dtype.type(1 / (1 - 0.9**step))
    scale2 = parameter.dtype.type(1 / (1 - 0.999**step))
    for i in range(parameter.size):
        first[i] += new1 * (slope[i] - first[i])
        second[i] += new2 * (slope[i] * slope[i] - second[i])
        parameter[i] += rate * (first[i] * scale1) / (np.sqrt(second[i] * scale2) + small)


@kernel(inner=True, **_OPTIONS)
def _catch_up_moments(update, parameter, slope, first, second, rate, missed, step):
    for i in range(slope.size):
        slope[i] = 0
    whole = _FORGOTTEN if missed > _FORGOTTEN else missed
    for k in range(whole):
        _ascend_moments(update, parameter, slope, first, second, rate, step - missed + k + 1)
    _shrink(first, parameter.dtype.type(0.9 ** (missed - whole)))
    _shrink(second, parameter.dtype.type(0.999 ** (missed - whole)))


# The factor of the earlier velocity when the next gradient is added.
kept = by_type({Velocity: _kept_velocity, Moments: _kept_moments})
# One step of gradient ascent along the velocity ``first``, or of Adam with its usual constants.
ascend = by_type({Velocity: _ascend_velocity, Moments: _ascend_moments})
# Steps ``step - missed + 1`` to ``step`` of a row without a gradient.
catch_up_row = by_type({Velocity: _catch_up_velocity, Moments: _catch_up_moments})


@kernel(inner=True)
def _gather_velocity(update, slope, first):
    for i in range(first.size):
        first[i] = update.momentum * first[i] + slope[i]


@kernel(inner=True)
def _gather_nothing(update, slope, first):
    pass


# Adds a gradient to the velocity, before `ascend`.
_gather = by_type({Velocity: _gather_velocity, Moments: _gather_nothing})


@kernel()
def follow(update, parameter, slope, first, second, rate, step):
    """Move every entry along its ``slope``, as `sgd_steps` does if all rows have a gradient."""
    _gather(update, slope, first)
    ascend(update, parameter, slope, first, second, rate, step)
