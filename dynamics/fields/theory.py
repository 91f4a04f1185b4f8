"""The theory's field, (10) with Theorem 1 and (44): attention and a number a class, whole and by orbits."""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np

from dynamics._model.batch import Batch
from dynamics.fields import _kernels as reduced
from dynamics.fields.features import Features
from dynamics.fields.modified import ModifiedOrbits, check_inverse
from dynamics.fields.orbits import Orbits
from dynamics.fields.system import FlowSetting, Observed, System, copied
from dynamics.layer import Layer, States
from dynamics.support import checks
from dynamics.support.checks import read_only
from dynamics.support.errors import NotReducibleError


class Theory(System):
    """State: Z, then x_n = M h_n for each bag, which is of order one at any M and so suits an absolute tolerance."""

    reduction = "none"

    def __init__(self, setting: FlowSetting) -> None:
        bags, layer = setting.bags, setting.start
        if not bags.hard:
            raise checks.reject("data", "have one next token a bag for decoder='theory'", "distributions")
        self.batch = Batch.of(bags, np.dtype(np.float64))
        check_inverse(self.batch, layer, setting.objective, "theory", reduced=True)
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
        Z, x = (read_only(part) for part in self.split(state))
        out = np.zeros_like(state)
        dZ, dx = self.split(out)
        self._pull_back(Features.of(self.batch, Z), x, dZ)
        with np.errstate(over="ignore"):  # a trial step may overshoot; 1 / inf is then the right limit
            dx[:] = self.batch.weight * self.vocab_size * self.eta_y / (self.vocab_size - 1 + np.exp(x))
        return out

    def _pull_back(self, features: Features, x: np.ndarray, dZ: np.ndarray) -> None:
        """Write dZ/dt, by (10) with Theorem 1, into zeros."""
        bags, n = self.setting.bags, x.size
        inner = np.empty((n, n))
        reduced.theory_decoder(x, bags.target, float(self.vocab_size), inner)
        backpropagated = features.combine(inner, np.zeros((self.shape[1], n)))
        reduced.pull_back(bags.query, self.batch.weight, bags.indptr, bags.token, features.values, backpropagated, dZ)
        dZ *= self.eta_z

    def _decode(self, features: Features, x: np.ndarray, Y: np.ndarray) -> None:
        """Write Y = F (I - E') [x_n (e_n - 1/M)]_n (Theorem 5) into zeros."""
        W = np.repeat(-x[:, None] / self.vocab_size, self.multiplicity.size, axis=1)
        W[np.arange(x.size), self.setting.bags.target] += x
        features.combine(W, Y)

    def layer(self, state: np.ndarray) -> Layer:
        """The layer at a state, with Y of Theorem 5."""
        Z, x = (read_only(part) for part in self.split(state))
        Y = np.zeros((self.shape[1], self.multiplicity.size))
        self._decode(Features.of(self.batch, Z), x, Y)
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
        """Observations of states, with Y of Theorem 5."""
        n = len(states)
        Z, x = np.ascontiguousarray(states[:, : self.size]).reshape(n, *self.shape), states[:, self.size :]
        velocity, Y = np.zeros_like(Z), np.zeros((n, self.shape[1], self.multiplicity.size))
        for i in range(n):
            own = read_only(x[i].copy())
            features = Features.of(self.batch, read_only(Z[i].view()))
            self._pull_back(features, own, velocity[i])
            self._decode(features, own, Y[i])
        return Observed(States.plain(self.setting.start, Z, Y), velocity, None)

    def extra(self, states: np.ndarray) -> dict[str, tuple]:
        """h of each class over time."""
        h = states[:, self.size :] / self.vocab_size
        attributes = {"long_name": "h of each class (44)", "units": "1"}
        return {"h": (("time", "bag"), h, attributes)}


class TheoryOrbits(ModifiedOrbits):
    """As `Theory`; the state has the variables of Z, then x_n = M h_n of the bags of one copy of each kind."""

    def __init__(self, setting: FlowSetting, orbits: Orbits) -> None:
        super().__init__(setting, orbits)
        bags, h = setting.bags, setting.recorded_h()
        kinds = orbits.symmetry.kinds
        self.bag_start = orbits.n_logits + np.cumsum([0, *(kind.bags.shape[1] for kind in kinds)])
        self.bag_index = np.empty(len(bags), dtype=np.int64)
        for kind, lo, hi in zip(kinds, self.bag_start[:-1], self.bag_start[1:], strict=True):
            self.bag_index[kind.bags] = np.arange(lo, hi)
        state = np.zeros(self.bag_start[-1])
        state[: orbits.n_logits] = self.initial[: orbits.n_logits]
        if h is not None:
            scaled = h * orbits.vocab_size
            if scaled.size != len(bags):
                raise NotReducibleError  # the plain system says what is wrong
            state[self.bag_index] = scaled
            if (state[self.bag_index] != scaled).any():
                raise NotReducibleError
        elif (orbits.start.Y != 0).any():
            raise NotReducibleError
        self.initial = state
        # Next tokens of other copies get labels of their own.
        self.labels = []
        for quotient in self.quotients:
            labels, fresh = [], orbits.multiplicity.size
            for j, _, own in quotient.parts:
                target = orbits.frames[j].bags.target
                n_own = orbits.own[j].shape[1]
                labels.append(np.where(target >= n_own, n_own - 1 - target, target + (0 if own else fresh)))
                fresh += n_own
            self.labels.append(read_only(np.concatenate(labels)))

    def x(self, state: np.ndarray) -> list[np.ndarray]:
        """x of the bags of one copy of each kind."""
        return [state[lo:hi] for lo, hi in zip(self.bag_start[:-1], self.bag_start[1:], strict=True)]

    def derivative(self, state: np.ndarray) -> np.ndarray:
        """The rate of change of each variable of Z, and of each x."""
        orbits, x = self.orbits, self.x(state)
        values, vocab_size = self.feature_values(state), float(orbits.vocab_size)
        out = np.zeros_like(state)
        parts = []
        for frame, quotient, labels, own_values, lo, hi in zip(
            orbits.frames, self.quotients, self.labels, values, self.bag_start[:-1], self.bag_start[1:], strict=False
        ):
            n = hi - lo
            pseudo = read_only(np.concatenate([x[j] for j, _, _ in quotient.parts]))
            inner = np.empty((pseudo.size, pseudo.size))
            reduced.theory_decoder(pseudo, labels, vocab_size, inner)
            found = quotient.combine(quotient.features(values), np.ascontiguousarray(inner[:, :n]))
            hubs = orbits.hub_rows.size
            first, last = quotient.spans[0]
            backpropagated = np.concatenate([found[first:last], found[:hubs]])
            dZ = np.zeros(frame.z.shape)
            bags = frame.bags
            reduced.pull_back(
                bags.query, read_only(frame.weight), bags.indptr, bags.token, own_values, backpropagated, dZ
            )
            parts.append((frame.z, dZ * frame.z_copies))
            with np.errstate(over="ignore"):
                out[lo:hi] = frame.weight * vocab_size * self.eta_y / (vocab_size - 1 + np.exp(state[lo:hi]))
        out[: orbits.n_logits] = (orbits.accumulate(parts) * self.rate)[: orbits.n_logits]
        return out

    def variables(self, state: np.ndarray) -> np.ndarray:
        """The variables at a state, with Y = F (I - E') [x_n (e_n - 1/M)]_n (Theorem 5)."""
        right = []
        for frame, x in zip(self.orbits.frames, self.x(state), strict=True):
            W = np.repeat(-x[:, None] / self.orbits.vocab_size, frame.multiplicity.size, axis=1)
            W[np.arange(x.size), frame.bags.target] += x
            right.append(W)
        variables = self.orbits.accumulate(self.decode(state, right))
        variables[: self.orbits.n_logits] = state[: self.orbits.n_logits]
        return variables

    def extra(self, states: np.ndarray) -> dict[str, tuple]:
        """h of each class over time."""
        h = states[:, self.bag_index] / self.orbits.vocab_size
        return {"h": (("time", "bag"), h, {"long_name": "h of each class (44)", "units": "1"})}
