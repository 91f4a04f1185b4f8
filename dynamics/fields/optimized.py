"""The flow that the steps of an optimizer tend to as learning rates fall."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import cast

import numpy as np

from dynamics.fields.full import Full
from dynamics.fields.system import Bound, Observed, System, copied
from dynamics.fields.theory import Theory
from dynamics.layer import Layer
from dynamics.optimizers.optimizer import Optimizer, Schedule, function_of, velocity
from dynamics.support import checks
from dynamics.support.checks import read_only
from dynamics.trajectory import Trajectory


def check_flow(
    optimizer: Optimizer, decoder: str, init: Layer | Trajectory | None, order: str, *, reduced: bool
) -> None:
    """Check the argument ``optimizer`` of `gradient_flow`.

    ``order`` is that of momentum, as in `Setting`; ``reduced`` as in `dynamics.fields.table.Entry`.

    Raises
    ------
    ValueError
        If it is none, or has no flow, or the decoder or the start does not go with it.
    """
    checks.instance("optimizer", optimizer, Optimizer)
    function_of(optimizer, "flow")
    if reduced:
        # Its decoder is a number a class and has no gradient that could be clipped, or decay.
        for name, usual in (("name", "sgd"), ("momentum", 0.0), ("weight_decay", 0.0), ("clip", None)):
            own = getattr(optimizer, name)
            if own != usual:
                name = "optimizer" if name == "name" else name
                raise checks.reject(name, f"be {usual!r} for decoder={decoder!r}", repr(own))
    if _second(optimizer, order) and isinstance(init, Trajectory):
        raise checks.reject("init", "be a Layer with momentum, for a trajectory has no velocities", repr(init))


def _second(optimizer: Optimizer, order: str) -> bool:
    return optimizer.momentum > 0 and not optimizer.rule.moments and order == "second order"


# Evaluations of the derivative after which a flow along signs, or nearly so, is given up: smooth pieces take some 100.
_MOST_OF_SIGN = 5_000


class Optimized(System):
    """A system whose weights move by the rule of an optimizer.

    State: that of the system; then a velocity for each entry, where momentum is followed to second order; then the
    time, where there is a schedule, since the derivative depends on it.
    """

    def __init__(self, system: Full | Theory, optimizer: Optimizer, order: str, *, reduced: bool) -> None:
        self.system, self.setting, self.optimizer, self.reduced = system, system.setting, optimizer, reduced
        self.second = _second(optimizer, order)
        self.size = n = system.initial.size
        start = [] if optimizer.schedule is None else [self.setting.span[0]]
        self.initial = np.concatenate([system.initial, np.zeros(n * self.second), start])
        if optimizer.rule.stiff:
            rounded = f" (epsilon = {optimizer.epsilon:g} rounds it off)" if optimizer.rule.moments else ""
            why = ", as where an entry of the gradient stays at zero and its sign has no limit"
            self.evaluations = Bound(_MOST_OF_SIGN, why + rounded)

    @property
    def reduction(self) -> str:
        """The reduction of the system, in words."""
        return self.system.reduction

    def own(self, state: np.ndarray) -> np.ndarray:
        """The state of the system."""
        return state[: self.size]

    def time(self, state: np.ndarray) -> float:
        """The time at a state, where a schedule is asked.

        An own one is asked before the end alone, as in SGD, whose last step is the one before it: it may be a table.
        A derivative by differences, or a rounding, asks beyond.
        """
        (start, end), time = self.setting.span, float(state[-1])
        return (
            time if isinstance(self.optimizer.schedule, Schedule) else min(max(time, start), math.nextafter(end, start))
        )

    def derivative(self, state: np.ndarray) -> np.ndarray:
        """Its rate of change per SGD step: a new array."""
        system, optimizer, n = self.system, self.optimizer, self.size
        time = 0.0 if optimizer.schedule is None else self.time(state)
        out = np.ones_like(state)  # of the time
        if self.reduced:  # which takes nothing but a schedule
            out[:n] = optimizer.factor(time) * system.derivative(self.own(state))
            return out
        system = cast(Full, system)
        momenta = system.split(read_only(state[n : 2 * n].copy())) if self.second else None
        weights, slopes = system.weights(self.own(state)), system.split(system.gradient_at(self.own(state)))
        mass = self.setting.start.multiplicity
        moved, pushed = velocity(optimizer, weights, slopes, momenta, rates=system.rates, multiplicity=mass, t=time)
        out[:n] = np.concatenate([part.ravel() for part in moved])
        if pushed is not None:
            out[n : 2 * n] = np.concatenate([part.ravel() for part in pushed])
        return out

    def layer(self, state: np.ndarray) -> Layer:
        """The layer at a state."""
        return self.system.layer(self.own(state))

    def z_places(self, query: np.ndarray, token: np.ndarray) -> np.ndarray:
        """Where in a state the logits z[query, token] are."""
        return self.system.z_places(query, token)

    def bound(self, state: np.ndarray, out: np.ndarray) -> Callable[[], float]:
        """A function that writes the derivative at what ``state`` then holds into ``out``."""
        return copied(self, state, out)

    def observe(self, states: np.ndarray) -> Observed:
        """Observations of states: the system's layers, and how fast the optimizer moves Z."""
        seen = self.system.observe(np.ascontiguousarray(states[:, : self.size]))
        velocity = [self.system.velocity_of(self.own(state), self.own(self.derivative(state))) for state in states]
        return seen._replace(velocity=np.stack(velocity))

    def extra(self, states: np.ndarray) -> dict[str, tuple]:
        """Variables of the system beside those that every simulator records."""
        return self.system.extra(states[:, : self.size])
