"""Covariance of small fluctuations about the path without noise, step by step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dynamics._engine.noise.field import DrawnField
from dynamics.support.progress import Progress

_STEP = 1e-4


class Fluctuations(NamedTuple):
    """The path without noise at some steps, and moments of the fluctuations for the first entries of the state.

    Attributes
    ----------
    states : (times, state)
        The path.
    shift : (times, entries)
        T - 1 times the shift of the mean by finite sequences.
    between, within : (times, entries, entries)
        Batch size times the covariance from the draw of classes; and, with a factor T - 1, from the draw of tokens.
    """

    states: np.ndarray
    shift: np.ndarray
    between: np.ndarray
    within: np.ndarray


def jacobian(field: DrawnField, state: np.ndarray) -> np.ndarray:
    """The derivative of the mean step for T -> infinity, by central differences: exact to about 1e-8 of it."""
    out = np.empty((state.size, state.size))
    moved = state.copy()
    for i in range(state.size):
        moved[i] = state[i] + _STEP
        ahead = field.system.derivative(moved)
        moved[i] = state[i] - _STEP
        out[:, i] = (ahead - field.system.derivative(moved)) / (2 * _STEP)
        moved[i] = state[i]
    return out


@np.errstate(over="ignore", invalid="ignore", divide="ignore")  # the caller checks the result
def fluctuations(field: DrawnField, steps: np.ndarray, entries: int, report: Progress) -> Fluctuations:
    """Covariances after given numbers of steps.

    The path is x_(k+1) = x_k + a(x_k). With A the derivative of a at x_k, a deviation becomes (1 + A) dx_k + noise, so
    C_(k+1) = (1 + A) C_k (1 + A)^T + B B^T, exact to first order in 1/batch size and in 1/T.
    """
    state, size = field.system.initial.copy(), field.size
    shift, covariance = np.zeros(size), np.zeros((2, size, size))
    seen, last = [], int(steps[-1])
    for k in range(last + 1):
        if k in steps:
            seen.append((state.copy(), shift[:entries].copy(), *covariance[:, :entries, :entries].copy()))
        if k == last:
            break
        A, factors = jacobian(field, state), field.factors(state)
        bias = field.bias(state, field.share) if field.positions else 0.0
        shift = shift + A @ shift + bias
        for matrix, B in zip(covariance, factors, strict=True):
            matrix += A @ matrix
            matrix += matrix @ A.T
            matrix += B @ B.T
        state = state + field.system.derivative(state)
        if not np.isfinite(state).all():
            seen.append((state, shift[:entries], *covariance[:, :entries, :entries]))
            break
        report.update((k + 1) / last, f"step {k + 1} of {last}")
    return Fluctuations(*(np.stack(parts) for parts in zip(*seen, strict=True)))
