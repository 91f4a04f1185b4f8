"""The table of optimizers: for each its step, the flow that steps tend to, and its rule in optax.

An optimizer is an entry of `RULES`. A field that an entry lacks is refused, never taken from another optimizer: without
``flow`` `gradient_flow` refuses the optimizer, without ``direction`` `sgd` does, without ``optax`` `deep.train` does;
without ``kernel`` SGD takes its steps in numpy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np


class Constants(Protocol):
    """The constants of an `Optimizer` that functions of the table read."""

    @property
    def momentum(self) -> float: ...

    @property
    def betas(self) -> tuple[float, float]: ...

    @property
    def epsilon(self) -> float: ...


Direction: TypeAlias = Callable[[Constants, np.ndarray, np.ndarray, np.ndarray, int], np.ndarray]


class Velocity(NamedTuple):
    """Constants of steps along a velocity, for the kernels.

    Attributes
    ----------
    momentum : float
    rates : tuple of float
        The learning rate of each of the first four `Weights`.
    """

    momentum: np.floating
    rates: tuple[np.floating, ...]


class Moments(NamedTuple):
    """Constants of Adam's steps with the usual betas and epsilon, for the kernels; ``rates`` as in `Velocity`."""

    rates: tuple[np.floating, ...]


Update: TypeAlias = "Velocity | Moments"


@dataclass(frozen=True)
class UpdateRule:
    """The part of an optimizer that differs from other optimizers; all share clipping, weight decay and schedules.

    Attributes
    ----------
    direction : callable, optional
        (optimizer, gradient, first, second, step) -> the change of the weights of one array for each unit of learning
        rate, in step number ``step``, from 0; changes velocity or moments in place. None: it takes no steps.
    flow : callable, optional
        (optimizer, gradient or velocity) -> the same direction in the limit of small learning rates. Default: no flow
        is known.
    gathers : bool
        Whether momentum makes the flow 1/(1 - momentum) times as fast if the velocity is not a variable of the flow.
    moments : bool
        Whether two moments of the gradient are kept, with ``betas`` and ``epsilon``.
    stiff : bool
        Whether the flow turns at once where an entry of the gradient changes its sign.
    kernel : callable, optional
        (momentum, rates) -> the `Update` that selects the compiled steps in `dynamics.optimizers.kernels`, for an
        optimizer without further options. Default: its steps are those of ``direction``.
    optax : callable, optional
        optimizer -> a list of optax transformations that make the same steps, to train transformers. Default: none is
        known.
    decay : float
        Weight decay by default.
    decoupled : bool
        Whether weight decay is decoupled from the gradient by default.
    """

    direction: Direction | None
    flow: Callable[[Constants, np.ndarray], np.ndarray] | None = None
    gathers: bool = False
    moments: bool = False
    stiff: bool = False
    kernel: Callable[[np.floating, tuple[np.floating, ...]], Update] | None = None
    optax: Callable[[Constants], list[Any]] | None = None
    decay: float = 0.0
    decoupled: bool = False


def _heavy_ball(
    optimizer: Constants, gradient: np.ndarray, first: np.ndarray, second: np.ndarray, step: int
) -> np.ndarray:
    first *= optimizer.momentum
    first += gradient
    return first


def _sign(optimizer: Constants, gradient: np.ndarray, first: np.ndarray, second: np.ndarray, step: int) -> np.ndarray:
    return np.sign(_heavy_ball(optimizer, gradient, first, second, step))


def _adam(optimizer: Constants, gradient: np.ndarray, first: np.ndarray, second: np.ndarray, step: int) -> np.ndarray:
    beta1, beta2 = optimizer.betas
    first += (1 - beta1) * (gradient - first)
    second += (1 - beta2) * (gradient * gradient - second)
    scale = math.sqrt(1 - beta2 ** (step + 1))
    return (first / (1 - beta1 ** (step + 1))) / (np.sqrt(second) / scale + optimizer.epsilon)


def _along(optimizer: Constants, direction: np.ndarray) -> np.ndarray:
    return direction


def _along_signs(optimizer: Constants, direction: np.ndarray) -> np.ndarray:
    return np.sign(direction)


def _normalised(optimizer: Constants, direction: np.ndarray) -> np.ndarray:
    return direction / (np.abs(direction) + optimizer.epsilon)


# Imported where they are called: optax belongs to an extra.
def _optax_heavy_ball(optimizer: Constants) -> list[Any]:
    import optax

    return [optax.trace(decay=optimizer.momentum)]


def _optax_adam(optimizer: Constants) -> list[Any]:
    import optax

    return [optax.scale_by_adam(*optimizer.betas, eps=optimizer.epsilon)]


def _optax_sign(optimizer: Constants) -> list[Any]:
    import jax
    import optax

    sign = optax.stateless(lambda slopes, _: jax.tree.map(jax.numpy.sign, slopes))
    return [*_optax_heavy_ball(optimizer), sign]


RULES: dict[str, UpdateRule] = {
    "sgd": UpdateRule(_heavy_ball, _along, gathers=True, kernel=Velocity, optax=_optax_heavy_ball),
    "adam": UpdateRule(
        _adam, _normalised, moments=True, stiff=True, kernel=lambda _, rates: Moments(rates), optax=_optax_adam
    ),
    # The default of PyTorch's AdamW.
    "adamw": UpdateRule(_adam, _normalised, moments=True, stiff=True, optax=_optax_adam, decay=0.01, decoupled=True),
    "sign": UpdateRule(_sign, _along_signs, stiff=True, optax=_optax_sign),
}
