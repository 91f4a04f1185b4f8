"""Which way one drawn sequence moves the state: its mean and its covariance, as factors.

All comes from the one kernel of loss and gradient, which is linear in the weights of the bags. With g_n the direction
of class n at T -> infinity and c a vector of weights of any sign, ``sum_n c_n g_n`` is one call. Counts of T - 1 tokens
drawn from p = P(.|n) are p (T - 1) and a deviation of covariance (T - 1) (diag(p) - p p^T). Attention does not change
when all counts are multiplied by a number, so that the derivative in the direction p is zero, and with D_l the
derivative by ln N_l, to order 1/T,

    mean of class n:       g_n + 1/(2 (T - 1)) sum_l (D_l^2 - D_l) g_n / p_l,
    covariance within n:   1/(T - 1) sum_l (D_l g_n)(D_l g_n)^T / p_l.

D_l and D_l^2 are differences of sixth order of that kernel, exact to about 1e-10.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dynamics.fields.system import Setting
from dynamics.fields.table import entry_of
from dynamics.support import checks

# The logarithm of a count is moved by this times -3, .., 3: rounding and what is left out are alike small.
_STEP = 0.01
_PLACES = np.array([-3, -2, -1, 1, 2, 3])
_FIRST = np.array([-1, 9, -45, 45, -9, 1]) / (60 * _STEP)
_SECOND = np.array([2, -27, 270, 270, -27, 2]) / (180 * _STEP**2)
_SECOND_AT_ZERO = -490 / (180 * _STEP**2)


class Field:
    """The direction of one drawn sequence, learning rates included, as a function of the state.

    Parameters
    ----------
    setting : Setting
        Its bags are the classes, or the bags that are drawn as they are.
    decoder : str
        As in `gradient_flow`.
    positions : number
        Contextual tokens that are drawn for a sequence, T - 1; 0 takes bags as they are. Infinity leaves out what is of
        order 1/T, but not `within`, which has T - 1 as a factor.
    """

    def __init__(self, setting: Setting, decoder: str, positions: float) -> None:
        if setting.objective.contrast is not None:
            rule = "be left out, as the insertions that are drawn have no covariance here"
            raise checks.reject("contrast", rule, checks.brief(setting.objective.contrast))
        entry = entry_of(decoder, "noise")
        if positions and entry.inverts:
            rule = f"be None for decoder={decoder!r}, whose features f_n are those of T -> infinity"
            raise checks.reject("length", rule, positions + 1)
        self.biased = 0 < positions < np.inf
        self.system = entry.whole(setting)
        # Terms of one's own are not random, and do not grow with the weights of the bags.
        self.bare = self.system
        if setting.objective.terms:
            self.bare = entry.whole(replace(setting, objective=replace(setting.objective, terms=())))
        bags = setting.bags
        self.share, self.positions = bags.weight, positions
        self.owner, self.count = bags.owner, bags.count
        self.probability = bags.count / np.add.reduceat(bags.count, bags.indptr[:-1])[self.owner]
        self.place = np.arange(self.count.size) - bags.indptr[self.owner]  # of an entry in its bag
        self.size, self.bags = self.system.initial.size, len(bags)

    def still(self, state: np.ndarray, weight: np.ndarray, shift: np.ndarray | None = None) -> np.ndarray:
        """sum_n c_n g_n, where the logarithms of counts are moved by ``shift``."""
        count = None if shift is None else self.count * np.exp(shift)
        return self.bare.weighed(weight, count).derivative(state)

    def bias(self, state: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """sum_n c_n/2 sum_l (D_l^2 - D_l) g_n / p_l: what 1/(T - 1) adds to the mean."""
        total, middle = np.zeros(self.size), np.zeros(self.bags)
        for place in range(self.place.max() + 1):
            # The entry of this place in every bag at once: bags do not meet before they are added up.
            here = self.place == place
            own = np.zeros(self.bags)
            own[self.owner[here]] = 0.5 * weight[self.owner[here]] / self.probability[here]
            middle += own
            for k, at in enumerate(_PLACES):
                total += (_SECOND[k] - _FIRST[k]) * self.still(state, own, at * _STEP * here)
        return total + _SECOND_AT_ZERO * self.still(state, middle)

    def along(self, state: np.ndarray, weight: np.ndarray, direction: np.ndarray) -> np.ndarray:
        """sum_n c_n sum_l d_nl D_l g_n for a direction with a number for each entry of the bags."""
        size = np.abs(direction).max()
        if size == 0:
            return np.zeros(self.size)
        unit = direction / size
        parts = [_FIRST[k] * self.still(state, weight, at * _STEP * unit) for k, at in enumerate(_PLACES)]
        total: np.ndarray = size * np.sum(parts, axis=0)
        return total

    def expected(self, state: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """sum_n c_n E[direction | n], to order 1/T."""
        found = self.still(state, weight)
        return found + self.bias(state, weight) / self.positions if self.biased else found

    def drift(self, state: np.ndarray) -> np.ndarray:
        """The mean of a step."""
        found = self.system.derivative(state)
        return found + self.bias(state, self.share) / self.positions if self.biased else found

    def alone(self, n: int) -> np.ndarray:
        """Weights with one for bag n only."""
        weight = np.zeros(self.bags)
        weight[n] = 1
        return weight

    def between(self, state: np.ndarray, n: int, mean: np.ndarray) -> np.ndarray:
        """Factor of the covariance between classes of one draw that belongs to class n, given `expected` of all."""
        return np.sqrt(self.share[n]) * (self.expected(state, self.alone(n)) - mean)

    def within(self, state: np.ndarray, entry: int) -> np.ndarray:
        """Factor of (T - 1) times the covariance within classes that belongs to an entry of the bags."""
        n, direction = self.owner[entry], np.zeros(self.count.size)
        direction[entry] = 1
        return np.sqrt(self.share[n] / self.probability[entry]) * self.along(state, self.alone(n), direction)

    def factors(self, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """All factors of one draw, a column each: between classes, and (T - 1)^(1/2) those within."""
        mean = self.expected(state, self.share)
        between = np.stack([self.between(state, n, mean) for n in range(self.bags)], axis=1)
        entries = range(self.count.size if self.positions else 0)
        within = [self.within(state, entry) for entry in entries]
        return between, np.stack(within, axis=1) if within else np.zeros((self.size, 0))


class Steps:
    """The stochastic differential equation of steps with batches of a size.

    ``dx = drift dt + B dW``, where B has a column for each class and one for each entry of the bags; with ``second``
    the drift a is less (1/2) (Da) a (Li, Tai and E 2017).

    Attributes
    ----------
    noises : int
        Columns of B: none where nothing is drawn.
    """

    def __init__(self, field: Field, batch_size: int | None, *, second: bool) -> None:
        self.field, self.second = field, second
        self.batch_size = batch_size
        self.noises = 0 if batch_size is None else field.bags + (field.count.size if field.positions else 0)

    def drift(self, state: np.ndarray) -> np.ndarray:
        """The drift a, or that of second order in the learning rates."""
        own = self.field.drift(state)
        size = np.abs(own).max()
        if not self.second or size == 0:
            return own
        h = 1e-3 / size
        ahead, behind = self.field.drift(state + h * own), self.field.drift(state - h * own)
        return own - 0.25 / h * (ahead - behind)

    def column(self, k: int, state: np.ndarray) -> np.ndarray:
        """Column k of B."""
        field = self.field
        assert self.batch_size is not None
        if k < field.bags:
            return field.between(state, k, field.expected(state, field.share)) / np.sqrt(self.batch_size)
        return field.within(state, k - field.bags) / np.sqrt(self.batch_size * field.positions)

    def columns(self, state: np.ndarray) -> np.ndarray:
        """B: (state, noises)."""
        assert self.batch_size is not None
        between, within = self.field.factors(state)
        return np.concatenate([between, within / np.sqrt(max(1, self.field.positions))], axis=1) / np.sqrt(
            self.batch_size
        )

    def kick(self, state: np.ndarray, normal: np.ndarray) -> np.ndarray:
        """B times a vector, without B: a few calls of the kernel, whatever the number of columns."""
        field = self.field
        if not self.noises:
            return np.zeros(field.size)
        assert self.batch_size is not None
        root = np.sqrt(field.share)
        weight = root * normal[: field.bags]
        total = field.expected(state, weight) - weight.sum() * field.expected(state, field.share)
        if field.positions:
            direction = normal[field.bags :] / np.sqrt(field.probability * field.positions)
            total += field.along(state, root, direction)
        return total / np.sqrt(self.batch_size)
