"""Mean and covariance of the direction in which one random sequence moves the state; the covariance as factors.

All are computed by one kernel of loss and gradient, which is linear in the weights of the bags. With the direction g_n
of class n at T -> infinity and weights c_n of any sign, ``sum_n c_n g_n`` is one call. Counts of T - 1 tokens from
p = P(.|n) have the mean p (T - 1) and the covariance (T - 1) (diag(p) - p p^T). Attention does not change if all counts
are multiplied by a number, so the derivative in the direction p is zero. With D_l the derivative by ln N_l, to order
1/T,

    mean of class n:       g_n + 1/(2 (T - 1)) sum_l (D_l^2 - D_l) g_n / p_l,
    covariance within n:   1/(T - 1) sum_l (D_l g_n)(D_l g_n)^T / p_l.

D_l and D_l^2 are differences of sixth order of the kernel, exact to about 1e-10.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dynamics.fields.system import FlowSetting
from dynamics.fields.table import entry_of
from dynamics.support import checks

# Step of the differences in the logarithm of a count: it balances rounding and truncation.
_STEP = 0.01
_PLACES = np.array([-3, -2, -1, 1, 2, 3])
_FIRST = np.array([-1, 9, -45, 45, -9, 1]) / (60 * _STEP)
_SECOND = np.array([2, -27, 270, 270, -27, 2]) / (180 * _STEP**2)
_SECOND_AT_ZERO = -490 / (180 * _STEP**2)


class DrawnField:
    """The direction of one drawn sequence, learning rates included, as a function of the state.

    Parameters
    ----------
    setting : FlowSetting
        Its bags are the classes, or the bags to draw.
    decoder : str
        As in `gradient_flow`.
    positions : number
        Contextual tokens of a random sequence, T - 1; 0 takes bags unchanged. Infinity leaves out terms of order 1/T,
        but not `within`, which has the factor T - 1.
    """

    def __init__(self, setting: FlowSetting, decoder: str, positions: float) -> None:
        if setting.objective.contrast is not None:
            rule = "be left out, as the insertions that are drawn have no covariance here"
            raise checks.reject("contrast", rule, checks.brief(setting.objective.contrast))
        entry = entry_of(decoder, "noise")
        if positions and entry.inverts:
            rule = f"be None for decoder={decoder!r}, whose features f_n are those of T -> infinity"
            raise checks.reject("length", rule, positions + 1)
        self.biased = 0 < positions < np.inf
        self.system = entry.whole(setting)
        # A user's own terms are not random, and do not scale with the weights of the bags.
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
        """sum_n c_n g_n, with logarithms of counts changed by ``shift``."""
        count = None if shift is None else self.count * np.exp(shift)
        return self.bare.weighed(weight, count).derivative(state)

    def bias(self, state: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """sum_n c_n/2 sum_l (D_l^2 - D_l) g_n / p_l, the coefficient of 1/(T - 1) in the mean."""
        total, middle = np.zeros(self.size), np.zeros(self.bags)
        for index in range(self.place.max() + 1):
            # One entry of every bag at once, since bags do not interact before the sum.
            here = self.place == index
            coefficients = np.zeros(self.bags)
            coefficients[self.owner[here]] = 0.5 * weight[self.owner[here]] / self.probability[here]
            middle += coefficients
            for k, at in enumerate(_PLACES):
                total += (_SECOND[k] - _FIRST[k]) * self.still(state, coefficients, at * _STEP * here)
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
        mean = self.still(state, weight)
        return mean + self.bias(state, weight) / self.positions if self.biased else mean

    def drift(self, state: np.ndarray) -> np.ndarray:
        """The mean of a step."""
        mean = self.system.derivative(state)
        return mean + self.bias(state, self.share) / self.positions if self.biased else mean

    def alone(self, n: int) -> np.ndarray:
        """Weights that are one for bag n and zero for others."""
        weight = np.zeros(self.bags)
        weight[n] = 1
        return weight

    def between(self, state: np.ndarray, n: int, mean: np.ndarray) -> np.ndarray:
        """Factor for class n in the covariance between classes of one draw; ``mean`` is `expected` over all classes."""
        return np.sqrt(self.share[n]) * (self.expected(state, self.alone(n)) - mean)

    def within(self, state: np.ndarray, entry: int) -> np.ndarray:
        """Factor for one entry of the bags in (T - 1) times the covariance within classes."""
        n, direction = self.owner[entry], np.zeros(self.count.size)
        direction[entry] = 1
        return np.sqrt(self.share[n] / self.probability[entry]) * self.along(state, self.alone(n), direction)

    def factors(self, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """All factors of one draw as columns: first between classes, then (T - 1)^(1/2) times the factors within."""
        mean = self.expected(state, self.share)
        between = np.stack([self.between(state, n, mean) for n in range(self.bags)], axis=1)
        entries = range(self.count.size if self.positions else 0)
        within = [self.within(state, entry) for entry in entries]
        return between, np.stack(within, axis=1) if within else np.zeros((self.size, 0))


class NoisySteps:
    """The stochastic differential equation for SGD with a batch size.

    ``dx = drift dt + B dW``, where B has a column for each class and one for each entry of the bags. With ``second``,
    (1/2) (Da) a is subtracted from the drift a (Li, Tai and E 2017).

    Attributes
    ----------
    noises : int
        Number of columns of B; zero without randomness.
    """

    def __init__(self, field: DrawnField, batch_size: int | None, *, second: bool) -> None:
        self.field, self.second = field, second
        self.batch_size = batch_size
        self.noises = 0 if batch_size is None else field.bags + (field.count.size if field.positions else 0)

    def drift(self, state: np.ndarray) -> np.ndarray:
        """The drift a, to first or second order in the learning rates."""
        first_order = self.field.drift(state)
        size = np.abs(first_order).max()
        if not self.second or size == 0:
            return first_order
        h = 1e-3 / size
        ahead, behind = self.field.drift(state + h * first_order), self.field.drift(state - h * first_order)
        return first_order - 0.25 / h * (ahead - behind)

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
        """B times a vector, by a few calls of the kernel without forming B."""
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
