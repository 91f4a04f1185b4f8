"""The full field, Lemma 1: the gradient of all weights, and the same with one variable for each orbit."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable
from functools import cached_property

import numpy as np

from dynamics._model.problem import Problem
from dynamics._model.small import Frame, frame_of, looked
from dynamics._model.weights import RATES, Weights
from dynamics.fields.orbits import KindFrame, Orbits
from dynamics.fields.system import FlowSetting, Observed, System
from dynamics.layer import Layer, States, moved
from dynamics.support import checks
from dynamics.support.checks import read_only
from dynamics.support.errors import NotReducibleError

_NONE = (read_only(np.empty((0, 0))),) * 5
_NO_SLOPES = (np.empty((0, 0)),) * 5


class Full(System):
    """State: the weights of the layer, one array after the other."""

    fast = ("kernel", "factors")
    reduction = "none"
    # Whether `gradient` returns the loss.
    finds_loss = True

    def __init__(self, setting: FlowSetting) -> None:
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
        checks.fits_in_memory("data", 16 * self.bounds[-1], "hold every logit and its slope")
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
        vars(other).pop("frame", None)
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

    @cached_property
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
        """Observations of states, with the loss where the objective is no more than that."""
        bounds = zip(self.bounds[:-1], self.bounds[1:], self.shapes, strict=True)
        arrays = [np.ascontiguousarray(states[:, lo:hi]).reshape(len(states), *shape) for lo, hi, shape in bounds]
        frame = self.own_frame
        if frame is None:
            loss, velocity = self._seen(states)
        else:
            loss, slopes = looked(frame, states)
            velocity = np.ascontiguousarray(slopes[:, : self.like.Z.size]).reshape(-1, *self.like.Z.shape)
        objective = self.setting.objective
        known = loss if self.finds_loss and not (objective.contrast or objective.label_smoothing) else None
        return Observed(States.of(self.like, Weights(*arrays)), velocity, known)

    def _seen(self, states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The loss and dZ/dt at each of some states."""
        velocity, loss = np.empty((len(states), *self.like.Z.shape)), np.empty(len(states))
        state, out = np.empty(states.shape[1]), np.empty(states.shape[1])
        evaluate, weights, slopes = self.bound(state, out), self.weights(state), self.split(out)
        for i, found in enumerate(states):
            state[:] = found
            loss[i] = evaluate()
            velocity[i] = slopes.Z if self.like.embedding is None else self._through(weights, slopes)
        return loss, velocity

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


class FullOrbits(System):
    """As `Full`; the state has the variables of Z, then those of Y."""

    fast = ("kernel",)
    compact = True

    def __init__(self, setting: FlowSetting, orbits: Orbits) -> None:
        self.setting, self.orbits = setting, orbits
        self.eta_y, self.eta_z = setting.rates["eta_y"], setting.rates["eta_z"]
        self.z_index = orbits.z_index
        size = np.where(orbits.symmetry.twins >= 0, orbits.twin_size[orbits.symmetry.twins], 1)
        self.twin_scale = np.sqrt(size)[:, None]
        variables = np.zeros(orbits.size)
        # A start of zeros has any symmetry, and the index of a large Y is not needed for it.
        moved = () if setting.init is None else ((self.z_index, orbits.start.Z), (self.orbits.y_index, orbits.start.Y))
        for index, array in moved:
            variables[index[index >= 0]] = array[index >= 0]
            if (variables[index] != array)[index >= 0].any():
                raise NotReducibleError
        # Twins: Y as the kernels want it, and the rate of Z.
        scale = np.sqrt(orbits.y_twins)
        self.rate = np.full(orbits.size, self.eta_y)
        self.rate[: orbits.n_logits] = self.eta_z
        where = self.z_index >= 0
        self.rate[self.z_index[where]] /= np.broadcast_to(size, self.z_index.shape)[where]
        self.initial = variables * scale

    @property
    def reduction(self) -> str:
        """The reduction in words."""
        return self.orbits.told(self.initial.size)

    def frame_weights(self, frame: KindFrame, state: np.ndarray) -> Weights:
        """The weights of a frame at a state."""
        return Weights(read_only(state[frame.z]), read_only(state[frame.y]), *_NONE)

    @cached_property
    def frame(self) -> Frame | None:
        """The derivative in the form of the kernel that takes whole steps, of a single kind, where that pays."""
        if len(self.orbits.frames) > 1:
            return None
        frame = self.orbits.frames[0]
        parts = ((frame.z, frame.z_copies), (frame.y, frame.y_copies))
        variable, factor = (np.concatenate([own.ravel() for own in of]) for of in zip(*parts, strict=True))

        def views(entries: np.ndarray) -> Weights:
            none = _NO_SLOPES if entries.flags.writeable else _NONE
            Z, Y = entries[: frame.z.size].reshape(frame.z.shape), entries[frame.z.size :].reshape(frame.y.shape)
            return Weights(Z, Y, *none)

        return frame_of(frame.problem, views, variable, factor * frame.share, self.rate)

    def bound(self, state: np.ndarray, out: np.ndarray) -> Callable[[], float]:
        """A function that writes the derivative at what ``state`` then holds into ``out``, and returns the loss."""
        frames = self.orbits.frames
        index = np.concatenate([part.ravel() for frame in frames for part in (frame.z, frame.y)])
        copies = np.concatenate([part.ravel() for frame in frames for part in (frame.z_copies, frame.y_copies)])
        share = np.repeat([frame.share for frame in frames], [frame.z.size + frame.y.size for frame in frames])
        entries, slopes = np.empty(index.size), np.empty(index.size)
        parts, at = [], 0
        for frame in frames:
            cuts = (at, at + frame.z.size, at + frame.z.size + frame.y.size)
            cut = [slice(*ends) for ends in itertools.pairwise(cuts)]
            z, y, dz, dy = (
                array[own].reshape(like.shape)
                for array in (read_only(entries.view()), slopes)
                for own, like in zip(cut, (frame.z, frame.y), strict=True)
            )
            own = (Weights(z, y, *_NONE), Weights(dz, dy, *_NO_SLOPES))
            parts.append((frame.copies * frame.share, frame.problem.loss_and_gradient, own))
            at = cuts[-1]

        # In small flows every call of NumPy counts, and most factors are one.
        factors = [factor for factor in (copies, share) if (factor != 1).any()]
        each_once = np.array_equal(np.bincount(index, minlength=self.orbits.size), np.ones(self.orbits.size))
        place = np.argsort(index) if each_once else None
        take, rate, size = state.take, self.rate, self.orbits.size

        def evaluate() -> float:
            take(index, None, entries, "clip")
            slopes.fill(0.0)
            loss = 0.0
            for part, loss_and_gradient, own in parts:
                loss += part * loss_and_gradient(*own)
            for factor in factors:
                np.multiply(slopes, factor, slopes)
            if place is None:
                np.multiply(np.bincount(index, slopes, size), rate, out)
            else:
                np.multiply(slopes.take(place, None, out, "clip"), rate, out)
            return loss

        return evaluate

    def derivative(self, state: np.ndarray) -> np.ndarray:
        """The rate of change of each variable."""
        out = np.empty_like(state)
        self.bound(state, out)()
        return out

    def _lift(self, index: np.ndarray, variables: np.ndarray, start: np.ndarray | float) -> np.ndarray:
        return np.where(index >= 0, variables[index], start)

    def logits(self, state: np.ndarray) -> np.ndarray:
        """Z at a state."""
        return self._lift(self.z_index, state, self.orbits.start.Z)

    def z_places(self, query: np.ndarray, token: np.ndarray) -> np.ndarray:
        """Where in a state the logits z[query, token] are."""
        return self.z_index[query, token]

    def variables(self, state: np.ndarray) -> np.ndarray:
        """The variables of Z and Y at a state."""
        return state

    def loss(self, state: np.ndarray) -> float:
        """The expected loss at a state, from one copy of each kind."""
        variables, frames = self.variables(state), self.orbits.frames
        return sum(f.copies * f.share * f.problem.loss(self.frame_weights(f, variables)) for f in frames)

    def layer(self, state: np.ndarray) -> Layer:
        """The layer at a state."""
        start = self.orbits.start
        Y = self._lift(self.orbits.y_index, self.variables(state), start.Y * self.twin_scale) / self.twin_scale
        return Layer(self.logits(state), Y, None, start.multiplicity)

    def observe(self, states: np.ndarray) -> Observed:
        """Observations of states, with the loss where it was found on the way."""
        start, size = self.orbits.start, states.shape[1]
        # In the usual order in memory, for which the kernels are compiled already.
        Z = np.ascontiguousarray(np.where(self.z_index >= 0, states[:, self.z_index], start.Z))
        variables = np.stack([self.variables(state) for state in states])
        where = self.orbits.y_index
        Y = np.where(where >= 0, variables[:, where], start.Y * self.twin_scale) / self.twin_scale
        Y = np.ascontiguousarray(Y)
        frame = self.own_frame
        if frame is None:
            state, out = np.empty(size), np.empty(size)
            evaluate, slopes, loss = self.bound(state, out), np.empty(states.shape), np.empty(len(states))
            for i, found in enumerate(states):
                state[:] = found
                loss[i] = evaluate()
                slopes[i] = out
        else:
            loss, slopes = looked(frame, states)
            loss *= self.orbits.frames[0].copies * self.orbits.frames[0].share
        velocity = np.where(self.z_index >= 0, slopes[:, self.z_index], 0.0)
        return Observed(States.plain(start, Z, Y), velocity, None if np.isnan(loss).all() else loss)

    def extra(self, states: np.ndarray) -> dict[str, tuple]:
        """Nothing beside what every simulator records."""
        return {}
