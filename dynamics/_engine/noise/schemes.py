"""Schemes for stochastic differential equations dx = a(x) dt + B(x) dW in the sense of Ito."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np


class Equation(Protocol):
    """A stochastic differential equation.

    Attributes
    ----------
    noises : int
        Columns of B.
    """

    noises: int

    def drift(self, state: np.ndarray) -> np.ndarray:
        """a, a new array."""

    def column(self, k: int, state: np.ndarray) -> np.ndarray:
        """Column k of B."""

    def columns(self, state: np.ndarray) -> np.ndarray:
        """B."""

    def kick(self, state: np.ndarray, normal: np.ndarray) -> np.ndarray:
        """B times a vector."""


def euler_maruyama(equation: Equation, state: np.ndarray, h: float, rng: np.random.Generator) -> np.ndarray:
    """One step of weak order 1 (strong order 1/2)."""
    kick = equation.kick(state, rng.standard_normal(equation.noises))
    return state + h * equation.drift(state) + np.sqrt(h) * kick


def runge_kutta(equation: Equation, state: np.ndarray, h: float, rng: np.random.Generator) -> np.ndarray:
    """One step of Roessler's stochastic Runge-Kutta method RI1, of weak order 2 and, without noise, order 3.

    Its integrals take few values: I_k = 0 or +-sqrt(3 h), and I_(k,l) = (I_k I_l -+ sqrt(h) J)/2 with a sign J.
    Source: A. Roessler, SIAM J. Numer. Anal. 47, 1713 (2009).
    """
    m, root = equation.noises, np.sqrt(h)
    single = root * np.sqrt(3) * rng.choice([-1.0, 0.0, 1.0], m, p=[1 / 6, 2 / 3, 1 / 6])
    sign = root * rng.choice([-1.0, 1.0], m)
    slope = equation.drift(state)
    B = equation.columns(state) if m else np.zeros((state.size, 0))
    second = equation.drift(state + 2 / 3 * h * slope + B @ single)
    third = equation.drift(state - 1 / 3 * h * slope + h * second)
    total = state + h * (slope + 2 * second + third) / 4
    for k in range(m):
        # I_(k,l) has the sign J_l for l < k and -J_k for l > k; l = k takes no part.
        double = 0.5 * (single[k] * single + root * np.where(np.arange(m) < k, sign, -sign[k]))
        double[k] = 0.0
        own, moved, other = 0.5 * (single[k] ** 2 - h), state + h * slope, B @ double / root
        up, down = (equation.column(k, moved + side * root * B[:, k]) for side in (1, -1))
        near, far = (equation.column(k, state + side * other) for side in (1, -1))
        total += (up + down + near + far) / 4 * single[k]
        total += (up - down) / 2 * own / root + (near - far) / 2 * root
    return total


# Name -> one step.
SCHEMES: dict[str, Callable[[Equation, np.ndarray, float, np.random.Generator], np.ndarray]] = {
    "euler-maruyama": euler_maruyama,
    "runge-kutta": runge_kutta,
}
