"""Right-hand sides of the gradient flow: the full, the modified and the theory's decoder."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from dynamics._flow.stages import Frame, frame_of
from dynamics._model import decoder_kernels as reduced
from dynamics._model import modified
from dynamics._model.batch import Batch
from dynamics._model.modified import Features
from dynamics._model.objective import Objective, add_terms
from dynamics._model.optimizer import Optimizer
from dynamics._model.weights import RATES, Weights
from dynamics.bags import Bags
from dynamics.layer import Layer, Problem, moved
from dynamics.support import checks
from dynamics.support.checks import read_only
from dynamics.trajectory import States, Trajectory


@dataclass(frozen=True)
class Setting:
    """What a flow is of.

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
    time : float
        Of the start.
    """

    bags: Bags
    start: Layer
    init: Layer | Trajectory | None
    rates: Mapping[str, float]
    objective: Objective
    optimizer: Optimizer | None = None
    order: str = "second order"
    time: float = 0.0

    def recorded_h(self) -> np.ndarray | None:
        """h of each bag at the start, if ``init`` is a trajectory that has it."""
        if isinstance(self.init, Trajectory) and "h" in self.init.dataset:
            return self.init.dataset["h"].values[-1]
        return None


class Observed(NamedTuple):
    """What is seen of a flow at some times.

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


class System(Protocol):
    """What `gradient_flow` integrates: a vector, its derivative, and what can be observed of it.

    Attributes
    ----------
    setting : Setting
    initial : (n,) array
        The state at the start.
    reduction : str
        What was reduced to what, in words, or "none".
    """

    setting: Setting
    initial: np.ndarray

    @property
    def reduction(self) -> str: ...

    def derivative(self, state: np.ndarray) -> np.ndarray:
        """Its rate of change per SGD step: a new array."""

    def bound(self, state: np.ndarray, out: np.ndarray) -> Callable[[], float]:
        """A function that writes the derivative at what ``state`` then holds into ``out``.

        What it returns is the loss, or nan where that is not found on the way. Its caller keeps both arrays, so that
        views of their parts are made once.
        """

    def layer(self, state: np.ndarray) -> Layer:
        """The layer at a state."""

    def observe(self, states: np.ndarray) -> Observed:
        """What is recorded of states, an axis of times before theirs."""

    def extra(self, states: np.ndarray) -> dict[str, tuple]:
        """Variables of the trajectory beside those that every simulator records."""

    def z_places(self, query: np.ndarray, token: np.ndarray) -> np.ndarray:
        """Where in a state the logits z[query, token] are."""


class Framed(Protocol):
    """A system that declares "kernel" by ``fast``."""

    def frame(self) -> Frame | None:
        """The derivative in the form of the kernel that takes whole steps, or None where it cannot or need not be."""


def copied(system: System, state: np.ndarray, out: np.ndarray) -> Callable[[], float]:
    """`System.bound` where nothing is gained by views."""

    def evaluate() -> float:
        out[:] = system.derivative(state)
        return float("nan")

    return evaluate


class Full:
    """State: the weights of the layer, one array after the other."""

    fast = ("kernel", "factors")
    reduction = "none"
    # Whether `gradient` returns the loss.
    finds_loss = True

    def __init__(self, setting: Setting) -> None:
        self.setting, self.like = setting, setting.start
        self.problem = Problem(setting.bags, setting.start, setting.objective)
        arrays = setting.start.weights
        self.shapes = [array.shape for array in arrays]
        self.bounds = np.cumsum([0] + [array.size for array in arrays]).tolist()
        self.rates = rates = [setting.rates.get(name, 0.0) for name in RATES]
        parts = zip(self.bounds[:-1], self.bounds[1:], rates, strict=True)
        self.moving = [(lo, hi, rate) for lo, hi, rate in parts if lo < hi and rate != 1]
        # Most parts have no entries in most layers, and views of nothing took a fifth of the time of small flows.
        nothing = [np.empty(shape if 0 in shape else 0) for shape in self.shapes]
        self.empty = {True: nothing, False: [read_only(array.copy()) for array in nothing]}
        self.initial = np.concatenate([array.ravel() for array in arrays]).astype(np.float64)

    def split(self, state: np.ndarray) -> Weights:
        """Views of the parts of a vector."""
        empty = self.empty[state.flags.writeable]
        parts = zip(self.bounds[:-1], self.bounds[1:], self.shapes, empty, strict=True)
        return Weights(*[state[lo:hi].reshape(shape) if lo < hi else nothing for lo, hi, shape, nothing in parts])

    def weights(self, state: np.ndarray) -> Weights:
        """The weights at a state."""
        return self.split(read_only(state.view()))

    def slopes(self, out: np.ndarray) -> Weights:
        """Arrays for the gradient of each weight, in ``out``; of Z and V beside it if they follow from an embedding."""
        weights = self.split(out)
        if self.like.embedding is None:
            return weights
        beside = self.problem.zeros()
        return weights._replace(Z=beside.Z, V=beside.V)

    def scaled(self, out: np.ndarray) -> np.ndarray:
        """The gradients in ``out``, each times its learning rate, in place."""
        for lo, hi, rate in self.moving:
            out[lo:hi] *= rate
        return out

    def layer(self, state: np.ndarray) -> Layer:
        """The layer at a state."""
        return moved(self.like, self.weights(state))

    def component(self, number: int) -> str:
        """A number of the state in words."""
        part = int(np.searchsorted(self.bounds, number, side="right")) - 1
        place = np.unravel_index(number - self.bounds[part], self.shapes[part])
        return f"{Weights._fields[part]}[{', '.join(map(str, place))}]"

    def weighed(self, weight: np.ndarray, count: np.ndarray | None = None) -> Full:
        """The same system of bags with other weights, of any sign, in which its derivative is linear; other counts."""
        other = copy.copy(self)
        other.problem = self.problem.weighed(weight, count)
        return other

    def gradient(self, weights: Weights, slopes: Weights) -> float:
        """The loss, with the gradient of each weight added into ``slopes``."""
        return self.problem.loss_and_gradient(weights, slopes)

    def gradient_at(self, state: np.ndarray) -> np.ndarray:
        """The gradient of each weight at a state: a new array."""
        out = np.zeros_like(state)
        self.gradient(self.weights(state), self.slopes(out))
        return out

    def bound(self, state: np.ndarray, out: np.ndarray) -> Callable[[], float]:
        """A function that writes the derivative at what ``state`` then holds into ``out``, and returns the loss."""
        weights, beside = self.weights(state), self.like.embedding is not None
        slopes = self.split(out)

        def evaluate() -> float:
            out.fill(0.0)
            loss = self.gradient(weights, self.slopes(out) if beside else slopes)
            self.scaled(out)
            return loss

        return evaluate

    def frame(self) -> Frame | None:
        """The derivative in the form of the kernel that takes whole steps, where that pays."""
        rate = np.repeat(self.rates, np.diff(self.bounds))
        return frame_of(self.problem, self.split, np.arange(rate.size), np.ones(rate.size), rate)

    def derivative(self, state: np.ndarray) -> np.ndarray:
        """The gradient of each weight, each times its learning rate."""
        out = np.empty_like(state)
        self.bound(state, out)()
        return out

    def observe(self, states: np.ndarray) -> Observed:
        """What is recorded of states, with the loss where the objective is no more than that."""
        bounds = zip(self.bounds[:-1], self.bounds[1:], self.shapes, strict=True)
        arrays = [np.ascontiguousarray(states[:, lo:hi]).reshape(len(states), *shape) for lo, hi, shape in bounds]
        velocity, loss = np.empty((len(states), *self.like.Z.shape)), np.empty(len(states))
        state, out = np.empty(states.shape[1]), np.empty(states.shape[1])
        evaluate, weights, slopes = self.bound(state, out), self.weights(state), self.split(out)
        for i, found in enumerate(states):
            state[:] = found
            loss[i] = evaluate()
            velocity[i] = slopes.Z if self.like.embedding is None else self._through(weights, slopes)
        objective = self.setting.objective
        known = loss if self.finds_loss and not (objective.contrast or objective.label_smoothing) else None
        return Observed(States.of(self.like, Weights(*arrays)), velocity, known)

    def z_places(self, query: np.ndarray, token: np.ndarray) -> np.ndarray:
        """Where in a state the logits z[query, token] are: Z comes first."""
        return query * self.like.Z.shape[1] + token

    def velocity_of(self, state: np.ndarray, derivative: np.ndarray) -> np.ndarray:
        """dZ/dt from the derivative of the state."""
        slopes = self.split(derivative)
        return slopes.Z if self.like.embedding is None else self._through(self.weights(state), slopes)

    def _through(self, weights: Weights, slopes: Weights) -> np.ndarray:
        """dZ/dt from the weights of an embedding and their rates of change."""
        assert self.like.embedding is not None
        vectors = self.like.embedding.vectors
        parts = (weights.keys, weights.queries, slopes.keys, slopes.queries)
        keys, queries, d_keys, d_queries = (vectors @ part.T for part in parts)
        return d_queries @ keys.T + queries @ d_keys.T

    def extra(self, states: np.ndarray) -> dict[str, tuple]:
        """Nothing beside what every simulator records."""
        return {}


class Modified(Full):
    """As Full, with the decoder gradient of Lemma 3."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        modified.check_inverse(self.problem.batch, setting.start, setting.objective, "modified", reduced=False)

    def gradient(self, weights: Weights, slopes: Weights) -> float:
        """The loss, with the gradient of Z, and the decoder's of Lemma 3, added into ``slopes``."""
        problem = self.problem
        within = problem.view.beneath(slopes)
        loss = modified.gradient(problem.batch, problem.view.forward(weights), problem.rule, within)
        problem.view.backward(weights, within, slopes)
        add_terms(self.setting.objective, weights, slopes)
        return loss


class Theory:
    """State: Z, then x_n = M h_n for each bag, which is of order one at any M and so suits an absolute tolerance."""

    reduction = "none"

    def __init__(self, setting: Setting) -> None:
        bags, layer = setting.bags, setting.start
        if not bags.hard:
            raise checks.reject("data", "have one next token a bag for decoder='theory'", "distributions")
        self.batch = Batch.of(bags, np.dtype(np.float64))
        modified.check_inverse(self.batch, layer, setting.objective, "theory", reduced=True)
        self.setting = setting
        self.vocab_size = layer.vocab_size
        self.multiplicity = layer.multiplicity
        self.eta_y, self.eta_z = setting.rates["eta_y"], setting.rates["eta_z"]
        self.shape, self.size = layer.Z.shape, layer.Z.size
        h = setting.recorded_h()
        if h is not None:
            scaled = h * self.vocab_size
            if scaled.size != len(bags):
                raise checks.reject("init", f"have h for each of {len(bags)} bags", scaled.size)
        elif (layer.Y != 0).any():
            raise checks.reject("init", "have Y = 0 for decoder='theory', where Y follows from h", repr(layer))
        else:
            scaled = np.zeros(len(bags))
        self.initial = np.concatenate([layer.Z.ravel(), scaled]).astype(np.float64)

    def split(self, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Z, and x of each bag, as views of a vector."""
        return state[: self.size].reshape(self.shape), state[self.size :]

    def weighed(self, weight: np.ndarray, count: np.ndarray | None = None) -> Theory:
        """The same system of classes with other weights, of any sign, in which its derivative is linear."""
        other = copy.copy(self)
        new = {"weight": weight, "count": self.batch.count if count is None else count}
        other.batch = self.batch._replace(**{name: read_only(a.astype(np.float64)) for name, a in new.items()})
        return other

    def derivative(self, state: np.ndarray) -> np.ndarray:
        """dZ/dt by (10) with Theorem 1, and M dh/dt (44)."""
        bags, weight = self.setting.bags, self.batch.weight
        Z, x = (read_only(part) for part in self.split(state))
        features = Features.of(self.batch, Z)
        inner = np.empty((len(bags), len(bags)))
        reduced.theory_decoder(x, bags.target, float(self.vocab_size), inner)
        backpropagated = features.combine(inner, np.zeros((self.shape[1], len(bags))))
        out = np.zeros_like(state)
        dZ, dx = self.split(out)
        reduced.pull_back(bags.query, weight, bags.indptr, bags.token, features.values, backpropagated, dZ)
        dZ *= self.eta_z
        with np.errstate(over="ignore"):  # a trial step may overshoot; 1 / inf is then the right limit
            dx[:] = weight * self.vocab_size * self.eta_y / (self.vocab_size - 1 + np.exp(x))
        return out

    def layer(self, state: np.ndarray) -> Layer:
        """The layer at a state, with Y = F (I - E') [x_n (e_n - 1/M)]_n (Theorem 5)."""
        Z, x = (read_only(part) for part in self.split(state))
        W = np.repeat(-x[:, None] / self.vocab_size, self.multiplicity.size, axis=1)
        W[np.arange(x.size), self.setting.bags.target] += x
        Y = Features.of(self.batch, Z).combine(W, np.zeros((self.shape[1], self.multiplicity.size)))
        return Layer(Z, Y, None, self.multiplicity)

    def bound(self, state: np.ndarray, out: np.ndarray) -> Callable[[], float]:
        """A function that writes the derivative at what ``state`` then holds into ``out``."""
        return copied(self, state, out)

    def z_places(self, query: np.ndarray, token: np.ndarray) -> np.ndarray:
        """Where in a state the logits z[query, token] are: Z comes first."""
        return query * self.shape[1] + token

    def velocity_of(self, state: np.ndarray, derivative: np.ndarray) -> np.ndarray:
        """dZ/dt from the derivative of the state."""
        return self.split(derivative)[0]

    def observe(self, states: np.ndarray) -> Observed:
        """What is recorded of states."""
        layers = [self.layer(state) for state in states]
        velocity = np.stack([self.split(self.derivative(state))[0] for state in states])
        weights = Weights(*(np.stack(arrays) for arrays in zip(*(layer.weights for layer in layers), strict=True)))
        return Observed(States.of(layers[0], weights), velocity, None)

    def extra(self, states: np.ndarray) -> dict[str, tuple]:
        """h of each class over time."""
        h = states[:, self.size :] / self.vocab_size
        attributes = {"long_name": "h of each class (44)", "units": "1"}
        return {"h": (("time", "bag"), h, attributes)}
