"""How a gradient becomes a step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dynamics.support import checks

OPTIMIZERS = ("sgd", "adam")
MOMENTUM = 0.9


@dataclass(frozen=True)
class Optimizer:
    """How `sgd` makes a step of a gradient.

    "sgd" has the velocity ``v <- momentum v + gradient`` and the step ``eta v``; "adam" (Kingma and Ba 2015) has beta =
    (0.9, 0.999), epsilon = 1e-8 and bias correction, both as the usual deep-learning libraries define them.

    Parameters
    ----------
    name : "sgd" or "adam"
    momentum : float
        In [0, 1); not used by "adam".

    Raises
    ------
    ValueError
        If an argument is invalid.
    """

    name: str = "sgd"
    momentum: float = MOMENTUM

    def __post_init__(self) -> None:
        checks.one_of("optimizer", self.name, OPTIMIZERS)
        object.__setattr__(self, "momentum", checks.below("momentum", self.momentum, 1))

    @property
    def parameters(self) -> dict[str, str | float]:
        """What a trajectory records."""
        return {"momentum": self.momentum, "optimizer": self.name}


def as_optimizer(optimizer: str | Optimizer, momentum: float) -> Optimizer:
    """The arguments ``optimizer`` and ``momentum`` of `sgd` as one."""
    if not isinstance(optimizer, Optimizer):
        return Optimizer(optimizer, momentum)
    if momentum not in (MOMENTUM, optimizer.momentum):
        raise checks.reject("momentum", "be left out beside an Optimizer, which has its own", momentum)
    return optimizer


class Update(NamedTuple):
    """An optimiser as the kernels take it.

    Attributes
    ----------
    adam : bool
    momentum : float
    rates : 4 floats
        The learning rate of each of the first four `Weights`.
    """

    adam: bool
    momentum: np.floating
    rates: tuple[np.floating, ...]
