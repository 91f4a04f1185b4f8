"""The flow of a field from outside: its direction at layers, whole, and with one variable for each orbit."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from dynamics._model.objective import add_terms
from dynamics._model.weights import Weights
from dynamics.fields.full import Full
from dynamics.fields.orbits import Orbits
from dynamics.fields.own import Field, add_direction, check_field
from dynamics.fields.system import Observed, Setting, System, copied
from dynamics.layer import Layer, moved
from dynamics.support import checks
from dynamics.support.errors import NotReducibleError

# How far entries of an orbit may move apart, over the fastest of all: what rounding and a solved system leave.
_ALIKE = 1e-6


class Own(Full):
    """As `Full`, along the direction of a `Field`."""

    finds_loss = False

    def __init__(self, field: Field, setting: Setting) -> None:
        super().__init__(setting)
        self.field = field
        check_field(field, setting.bags, setting.start, setting.objective)

    def gradient(self, weights: Weights, slopes: Weights) -> float:
        """The direction of each weight, added into ``slopes``; nan where a trial step overshot."""
        if not all(np.isfinite(array).all() for array in weights):
            for slope in slopes:
                slope.fill(np.nan)
            return float("nan")
        add_direction(self.field, "gradient", moved(self.like, weights), self.setting.bags, slopes)
        add_terms(self.setting.objective, weights, slopes)
        return float("nan")


class OwnOrbits(System):
    """As `Own` of a field that declares its symmetry. State: one entry of Z and Y for each orbit."""

    def __init__(self, field: Field, setting: Setting, orbits: Orbits) -> None:
        self.setting, self.orbits, self.whole = setting, orbits, Own(field, setting)
        found = [index.ravel() for index in (orbits.z_index(), orbits.y_index())]
        index = np.concatenate(found)
        # Logits that no bag has move by the field's own law, if at all.
        alone = np.flatnonzero(index < 0)
        index[alone] = orbits.size + np.arange(alone.size)
        _, self.first, self.index = np.unique(index, return_index=True, return_inverse=True)
        entries = self.whole.initial
        self.initial = entries[self.first]
        if (self.initial[self.index] != entries).any():
            raise NotReducibleError

    @property
    def reduction(self) -> str:
        """The reduction in words."""
        return self.orbits.told(self.initial.size)

    def lift(self, state: np.ndarray) -> np.ndarray:
        """The weights of the whole system, of one state or of several."""
        return np.ascontiguousarray(state[..., self.index])

    def derivative(self, state: np.ndarray) -> np.ndarray:
        """The rate of change of each variable.

        Raises
        ------
        ValueError
            If the field moves entries of one orbit apart, which it declared it does not.
        """
        slopes = self.whole.derivative(self.lift(state))
        found: np.ndarray = slopes[self.first]
        apart, fastest = np.abs(slopes - found[self.index]).max(), np.abs(slopes).max()
        if apart > _ALIKE * fastest:
            name, told = self.whole.field.name, f"{apart:.2g} apart of {fastest:.2g}"
            raise checks.reject("symmetric", f"be False for decoder={name!r}, which moves copies differently", told)
        return found

    def bound(self, state: np.ndarray, out: np.ndarray) -> Callable[[], float]:
        """A function that writes the derivative at what ``state`` then holds into ``out``."""
        return copied(self, state, out)

    def z_places(self, query: np.ndarray, token: np.ndarray) -> np.ndarray:
        """Where in a state logits of Z are."""
        found: np.ndarray = self.index[self.whole.z_places(query, token)]
        return found

    def layer(self, state: np.ndarray) -> Layer:
        """The layer at a state."""
        return self.whole.layer(self.lift(state))

    def observe(self, states: np.ndarray) -> Observed:
        """Observations of states."""
        return self.whole.observe(self.lift(states))

    def extra(self, states: np.ndarray) -> dict[str, tuple]:
        """Nothing beside what every simulator records."""
        return {}


def whole_of(field: Field) -> Callable[[Setting], Own]:
    """Setting -> the flow of all weights."""
    return partial(Own, field)


def orbits_of(field: Field) -> Callable[[Setting, Orbits], OwnOrbits] | None:
    """(setting, orbits) -> the flow of one entry an orbit, if the field declares that it has it."""
    return partial(OwnOrbits, field) if field.symmetric else None
