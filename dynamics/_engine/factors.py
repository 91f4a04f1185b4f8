"""Steps of the full flow with factored slopes, for large layers whose tokens mostly belong to one bag each.

By Lemma 1, dY/dt = eta_Y sum_n p_n f_n r_n^T, with the feature f_n and the residual r_n of bag n. If only bag n has a
token, the token's row of Y moves along r_n by a factor. A slope therefore keeps one residual for each bag and one
factor for each such token. Within a step these rows of Y stay unchanged: if the slopes before a stage have the factors
f_nj and residuals r_nj, j = 1, 2, ..,

    f_n^T (Y + h sum_j a_j f_nj r_nj^T) = f_n^T Y + h sum_j a_j (f_n . f_nj) r_nj^T,

and likewise the product of Y with r_n, which moves Z. A stage then reads less memory, by a factor near the number of
tokens of a bag.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import cast

import numpy as np

from dynamics._engine import dop853, stage_sums
from dynamics._engine.dop853 import Bind, Polynomial, Within, place, run
from dynamics._engine.tableau import EXTENDED, STAGES, D
from dynamics._model import factored
from dynamics.fields.full import Full
from dynamics.fields.system import System
from dynamics.support.checks import read_only
from dynamics.support.limits import current

# Factor the slopes only if that makes them at least this many times smaller than a state.
_WORTH = 2
_NONE = (np.empty(0, np.int64), np.empty(0))


def factors_of(system: System) -> Factors | None:
    """The slopes of a large system as factors; None if they do not pay, or the field does not declare them."""
    if system.initial.size < dop853.LARGE:
        return None
    system = cast(Full, system)
    layer, objective, bags = system.like, system.setting.objective, system.setting.bags
    columns = layer.Y.shape[1]
    if not (layer.plain and objective.plain) or layer.Z.dtype != np.float64:
        return None
    # Rows of Y with one row for each bag in place of its own tokens' rows.
    kept = system.initial.size - columns * (np.count_nonzero(np.bincount(bags.token) == 1) - len(bags))
    if _WORTH * kept > system.initial.size or system.problem.work >= current().work:
        return None
    return Factors(system)


class Factors:
    """The slopes of a step as factors, with their sums and errors.

    Attributes
    ----------
    rows : (stages, numbers) array
        For each stage: the slopes of Z; the slopes of rows of Y for tokens in no bag or in several; and a factor for
        each entry of the bags, zero for these tokens.
    residuals : (bags, stages, columns) array
    earlier : ((slopes,) int, (slopes,) array)
        Slopes, with weights, that the next evaluation must add to the unchanged rows of Y.
    """

    def __init__(self, system: Full) -> None:
        bags, n_logits, (n_tokens, columns) = system.setting.bags, system.bounds[1], system.shapes[1]
        self._system = system
        others = np.flatnonzero(np.bincount(bags.token, minlength=n_tokens) != 1)
        row = np.full(n_tokens, -1)
        row[others] = np.arange(others.size)
        self._bags = (bags.indptr, bags.token, read_only(row[bags.token]))
        self._n_logits, self._shape = n_logits, (others.size, columns)
        # Indices in a state of numbers whose slopes are kept whole.
        of_y = n_logits + columns * others[:, None] + np.arange(columns)
        self._whole = np.concatenate([np.arange(n_logits), of_y.ravel()])
        self.rows = np.zeros((EXTENDED, self._whole.size + bags.token.size))
        self.residuals = np.zeros((len(bags), EXTENDED, columns))
        self._factors = self.rows[:, self._whole.size :]
        self.earlier = _NONE

    def bound(self, stage: int, state: np.ndarray, out: np.ndarray) -> Callable[[], float]:
        """The closure of `System.bound` for a stage with row ``out``; it also writes residuals."""
        system, n_logits, n = self._system, self._n_logits, self._whole.size
        batch, rule, (Z, Y, *_) = system.problem.batch, system.problem.rule, system.weights(state)
        dZ, dY = out[:n_logits].reshape(Z.shape), out[n_logits:n].reshape(self._shape)
        kept = (self._factors, self.residuals, self._bags[2], stage)
        eta_z, eta_y = system.rates[:2]

        def evaluate() -> float:
            out.fill(0.0)
            loss = factored.loss_and_factors(batch, Z, Y, rule, self.earlier, dZ, dY, kept)
            out[:n_logits] *= eta_z
            out[n_logits:] *= eta_y
            return loss

        return evaluate

    def begin(self) -> None:
        """Move the slope at the end of the last step to the start of the next."""
        np.copyto(self.rows[0], self.rows[STAGES])
        np.copyto(self.residuals[:, 0], self.residuals[:, STAGES])

    def add_whole(
        self, stages: np.ndarray, weights: np.ndarray, size: float, state: np.ndarray, out: np.ndarray
    ) -> None:
        """Write ``state + size sum_j weights_j slope_j`` into ``out``, for numbers with whole slopes only."""
        sums = np.empty(self._whole.size)
        stage_sums.add(self.rows, stages, weights, size, state[self._whole], sums)
        out[self._whole] = sums

    def add(self, stages: np.ndarray, weights: np.ndarray, size: float, state: np.ndarray, out: np.ndarray) -> None:
        """Write ``state + size sum_j weights_j slope_j`` into ``out``."""
        self.add_whole(stages, weights, size, state, out)
        Y = (self._system.split(state).Y, self._system.split(out).Y)
        stage_sums.add_products(self._bags, self._factors, self.residuals, stages, weights, size, *Y)

    def squares(self, old: np.ndarray, new: np.ndarray, rtol: float, atol: float) -> tuple[float, float]:
        """The sums of `stage_sums.errors` with the weights of DOP853."""
        whole = stage_sums.errors(self.rows, *stage_sums.ERRORS, old[self._whole], new[self._whole], rtol, atol)
        Y = (self._system.split(old).Y, self._system.split(new).Y)
        rest = stage_sums.errors_of_products(
            self._bags, self._factors, self.residuals, *stage_sums.ERRORS, *Y, rtol, atol
        )
        return whole[0] + rest[0], whole[1] + rest[1]


class Factored:
    """`Called` slopes of a `Full`, kept as factors; the steps differ by rounding only."""

    ends = True

    def __init__(self, factors: Factors, bind: Bind, size: int) -> None:
        self._factors, self.stage, self.new = factors, np.empty(size), np.empty(size)
        self.evaluate = [bind(place(self, k), row, partial(factors.bound, k)) for k, row in enumerate(factors.rows)]

    def _sums(self, weights: np.ndarray) -> np.ndarray:
        """``sum_j weights_ij slope_j``: (rows of weights, size of the state)."""
        sums, zero = np.empty((len(weights), self.new.size)), np.zeros(self.new.size)
        for row, out in zip(weights, sums, strict=True):
            stages = np.flatnonzero(row)
            self._factors.add(stages, row[stages], 1.0, zero, out)
        return sums

    def tolerate(self, rtol: float, atol: float) -> None:
        self._tolerances = (rtol, atol)

    def at(self, k: int, s: float, state: np.ndarray) -> np.ndarray:
        np.copyto(place(self, k), state)
        self.evaluate[k](s)
        return self._sums(np.eye(1, EXTENDED, k))[0]

    def begin(self) -> None:
        self._factors.begin()

    def add(self, k: int, size: float, state: np.ndarray) -> None:
        """The state of `Called.add`, except that tokens of one bag keep their rows of Y until the end of the step."""
        stages, weights = stage_sums.SPARSE[k]
        if k >= STAGES:
            self._factors.earlier = _NONE
            self._factors.add(stages, weights, size, state, place(self, k))
            return
        if k == 1:
            np.copyto(self.stage, state)
        self._factors.earlier = (stages, size * weights)
        self._factors.add_whole(stages, weights, size, state, self.stage)

    def step(self, moments: np.ndarray, size: float, state: np.ndarray) -> tuple[float, float]:
        run(self, 1, STAGES + 1, moments, size, state)
        return self._factors.squares(state, self.new, *self._tolerances)

    def turn(self) -> tuple[float, float]:
        """Zeros, since large states do not switch integrators."""
        return 0.0, 0.0

    def within(self, moments: np.ndarray, size: float, old: np.ndarray, state: np.ndarray) -> Within:
        run(self, STAGES + 1, EXTENDED, moments, size, old)
        first, last, *dense = self._sums(np.stack([*np.eye(EXTENDED)[[0, STAGES]], *D]))
        return Polynomial(size, old, state, first, last, np.stack(dense))
