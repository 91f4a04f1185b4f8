"""The setting of a flow, and a field as an integrator sees it: a vector, its derivative, and observations."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

import numpy as np

from dynamics._model.objective import Objective
from dynamics._model.small import Frame
from dynamics.bags import Bags
from dynamics.layer import Layer, States
from dynamics.optimizers.optimizer import Optimizer
from dynamics.trajectory import Trajectory


@dataclass(frozen=True)
class FlowSetting:
    """The data, the layer and the options of a flow.

    Attributes
    ----------
    bags : Bags
    start : Layer
    init : Layer, Trajectory or None
        The argument of `gradient_flow` that ``start`` was made of.
    rates : mapping
        Learning rates, by the names of the arguments of `gradient_flow`.
    objective : Objective
    optimizer : Optimizer, optional
        Whose flow it is, if not that of plain steps.
    order : str
        Of momentum, as in `Solver`.
    span : pair of floats
        When the flow starts and ends.
    """

    bags: Bags
    start: Layer
    init: Layer | Trajectory | None
    rates: Mapping[str, float]
    objective: Objective
    optimizer: Optimizer | None = None
    order: str = "second order"
    span: tuple[float, float] = (0.0, math.inf)

    def recorded_h(self) -> np.ndarray | None:
        """h of each bag at the start, if ``init`` is a trajectory that has it."""
        if isinstance(self.init, Trajectory) and "h" in self.init.dataset:
            return self.init.dataset["h"].values[-1]
        return None


class Observed(NamedTuple):
    """Observations of a flow at some times.

    Attributes
    ----------
    states : States
        The layers.
    velocity : (times, queries, tokens) array
        dZ/dt.
    loss : (times,) array or None
        The expected loss, if it was found on the way.
    """

    states: States
    velocity: np.ndarray
    loss: np.ndarray | None


class Bound(NamedTuple):
    """Evaluations of the derivative after which a flow is given up, and why so many would be needed, in words."""

    most: float = math.inf
    why: str = ""


class System(Protocol):
    """A system that `gradient_flow` integrates: a vector, its derivative, and what can be observed of it.

    Attributes
    ----------
    setting : FlowSetting
    initial : (n,) array
        The state at the start.
    reduction : str
        The reduction in words, or "none".
    compact : bool
        Whether attention and loss of a state are found without the whole Y, as `FullOrbits` finds them.
    evaluations : Bound
        A bound of its own on evaluations.
    fast : tuple of str
        Fast paths that the very class declares, "kernel" or "factors"; those of a base are not inherited.
    """

    fast: ClassVar[tuple[str, ...]] = ()
    setting: FlowSetting
    initial: np.ndarray
    compact: bool = False
    evaluations: Bound = Bound()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.fast = vars(cls).get("fast", ())

    @property
    def reduction(self) -> str: ...

    def derivative(self, state: np.ndarray) -> np.ndarray:
        """Its rate of change per SGD step: a new array."""

    def bound(self, state: np.ndarray, out: np.ndarray) -> Callable[[], float]:
        """A function that writes the derivative at what ``state`` then holds into ``out``.

        It returns the loss, or nan where the loss is not found on the way. Its caller keeps both arrays, so that
        views of their parts are made once.
        """

    def layer(self, state: np.ndarray) -> Layer:
        """The layer at a state."""

    def observe(self, states: np.ndarray) -> Observed:
        """Observations of states, with an axis of times before theirs."""

    def extra(self, states: np.ndarray) -> dict[str, tuple]:
        """Variables of the trajectory beside those that every simulator records."""

    def z_places(self, query: np.ndarray, token: np.ndarray) -> np.ndarray:
        """Where in a state the logits z[query, token] are."""

    def component(self, number: int) -> str:
        """A number of the state in words."""
        return f"variable {number}"

    @property
    def frame(self) -> Frame | None:
        """The derivative in the form of the kernel that takes whole steps, or None where it cannot or need not be."""
        return None

    @property
    def own_frame(self) -> Frame | None:
        """``frame`` where the very class declares "kernel", which a class that inherits a frame need not."""
        return self.frame if "kernel" in self.fast else None


def copied(system: System, state: np.ndarray, out: np.ndarray) -> Callable[[], float]:
    """`System.bound` where nothing is gained by views."""

    def evaluate() -> float:
        out[:] = system.derivative(state)
        return float("nan")

    return evaluate
