"""The modified decoder gradient of Lemma 3: features of all classes, the inverse of their Gram matrix, and one step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dynamics._model import decoder_kernels as reduced
from dynamics._model import kernels
from dynamics._model.batch import Batch
from dynamics._model.objective import Objective
from dynamics._model.rules import Update
from dynamics._model.weights import Rule, Weights
from dynamics.support import checks
from dynamics.support.checks import read_only

if TYPE_CHECKING:
    from dynamics.layer import Layer

# Columns are linearly dependent, to rounding, where the smallest eigenvalue of their Gram matrix is below this.
SINGULAR = 1e-12


class Features:
    """Unit features f_n in CSR form, and the inverse of their Gram matrix, I - E' = (F^T F)^{-1}."""

    def __init__(self, indptr: np.ndarray, token: np.ndarray, values: np.ndarray, n_tokens: int) -> None:
        self.indptr, self.token, self.values = indptr, token, values
        self.gram = np.empty((indptr.size - 1, indptr.size - 1))
        reduced.gram(indptr, token, values, np.zeros(n_tokens), self.gram)

    @classmethod
    def of(cls, batch: Batch, Z: np.ndarray, *, residual: bool = False) -> Features:
        """The features of single bags at given attention logits, ``residual`` as in `Layer`."""
        values = feature_values(batch, Z)
        if not residual:
            return cls(batch.indptr, batch.token, values, Z.shape[1])
        # Each bag has one entry more, for its query.
        ends = batch.indptr[1:]
        token = np.insert(batch.token, ends, Z.shape[1] + batch.query)
        values = np.insert(values, ends, 1) * np.sqrt(values.dtype.type(0.5))
        indptr = read_only(batch.indptr + np.arange(batch.indptr.size))
        return cls(indptr, read_only(token), values, sum(Z.shape))

    def combine(self, right: np.ndarray, out: np.ndarray) -> np.ndarray:
        """Add F (I - E') ``right`` to ``out``; nan where F^T F is singular, so that the integrator steps back."""
        reduced.add_outer(self.indptr, self.token, self.values, _solved(self.gram, right), out)
        return out


def _solved(gram: np.ndarray, right: np.ndarray) -> np.ndarray:
    """gram^{-1} right, of one system or of several; nan where there is no inverse."""
    try:
        return np.linalg.solve(gram, right)
    except np.linalg.LinAlgError:
        if gram.ndim == 3 and len(gram) > 1:
            return np.stack([_solved(*own) for own in zip(gram, right, strict=True)])
        return np.full_like(right, np.nan)


def feature_values(batch: Batch, Z: np.ndarray) -> np.ndarray:
    """The entries of the features f_n of single bags at given attention logits, aligned with ``batch.token``."""
    values = np.empty(batch.token.size, Z.dtype)
    reduced.unit_features(batch.query, batch.indptr, batch.token, batch.count, Z, values)
    return values


def gradient(batch: Batch, weights: Weights, rule: Rule, slopes: Weights) -> float:
    """The loss of single bags, with the gradient of J by Z and the modified gradient (26) of Y added into ``slopes``.

    sum_n p_n (f_n - F E' e_n) r_n^T = F (I - E') [p_n r_n]_n, with the weights p_n of the bags: of all classes in the
    flow, the shares of the classes drawn in a step of SGD, where F is that of all classes as well.
    """
    residual = np.empty((batch.query.size, weights.Y.shape[1]), weights.Y.dtype)
    loss = kernels.loss_and_gradient(batch, batch.query.size, weights, rule, slopes, residual, True)
    residual *= batch.weight[:, None]
    Features.of(batch, weights.Z, residual=rule.residual).combine(residual, slopes.Y)
    return loss


class Steps:
    """Steps of SGD along `gradient` for a layer of Z and Y, in several runs on the same bags side by side.

    A step is two kernels and numpy's solve, in arrays that all of them use: between arrays as small as these, Python
    takes longer than the numbers. What becomes of a run does not depend on those beside it.

    Parameters
    ----------
    data : Batch
        All bags.
    weights, first, second : Weights
        The states and the velocities, or Adam's moments, which steps change in place: Z and Y with an axis of runs
        before the others.
    rule : Rule
    update : Update
    """

    def __init__(
        self, data: Batch, weights: Weights, first: Weights, second: Weights, rule: Rule, update: Update
    ) -> None:
        runs, n, dtype = len(weights.Y), data.query.size, weights.Y.dtype
        self._batch, self._rule, self._update = data, rule, update
        self._seen = Weights(*(read_only(array.view()) for array in weights))
        self._slopes = Weights(*(np.zeros_like(array) for array in weights))
        self._flat = tuple(
            tuple(array.reshape(-1) for array in arrays)  # of contiguous arrays, which are views
            for arrays in list(zip(weights, self._slopes, first, second, strict=True))[:2]
        )
        self._shares, self._losses = np.empty((runs, n), data.weight.dtype), np.empty(runs)
        self._residual = np.empty((runs, n, weights.Y.shape[2]), dtype)
        self._values = np.empty((runs, data.token.size), dtype)
        self._workspace, self._gram = np.zeros(weights.Z.shape[2]), np.empty((runs, n, n))

    def take(self, shares: np.ndarray, step: int) -> np.ndarray:
        """The step of this number, from one, on bags with these shares; returns the losses. Moves if all are finite.

        ``shares`` has a row for each run, and so have the losses.
        """
        self._shares[:] = shares
        batch, slopes, values, gram, losses = self._batch, self._slopes, self._values, self._gram, self._losses
        own = (self._residual, values, self._workspace, gram, losses)
        reduced.systems(batch, self._shares, self._seen, self._rule, slopes, *own)
        if np.isfinite(losses).all():
            solved = _solved(gram, self._residual)
            reduced.follow_modified(batch, values, solved, slopes.Y, self._flat, self._update, step)
        return losses


def stacked(runs: Sequence[Weights]) -> Weights:
    """Z and Y of several runs with an axis of runs before the others, as `Steps` takes them; of one run, no copies."""
    one = runs[0]
    if len(runs) == 1:
        return one._replace(Z=one.Z[None], Y=one.Y[None])
    return one._replace(Z=np.stack([each.Z for each in runs]), Y=np.stack([each.Y for each in runs]))


def check_inverse(batch: Batch, layer: Layer, objective: Objective, decoder: str, *, reduced: bool) -> None:
    """Raise ``ValueError`` for what Lemma 3 is not of, and where F^T F has no inverse at the start.

    ``reduced`` is for a decoder of one number a class in the place of Y.
    """
    for name, given in (
        ("criterion", objective.criterion != "cross-entropy"),
        ("contrast", objective.contrast is not None),
        ("label_smoothing", objective.label_smoothing > 0 and reduced),
        ("terms", objective.terms and reduced),
    ):
        if given:
            raise checks.reject(name, f"be left out for decoder={decoder!r}", checks.brief(getattr(objective, name)))
    if layer.normalisation != "unit" and layer.V is None:
        rule = f"be 'unit' for decoder={decoder!r}, which inverts F^T F of unit features"
        raise checks.reject("normalisation", rule, repr(layer.normalisation))
    if layer.temperature != 1 and reduced:
        raise checks.reject("temperature", f"be 1 for decoder={decoder!r}", layer.temperature)
    whole = replace(layer, temperature=1.0)
    if not whole.plain and not (layer.residual and not reduced):
        raise checks.reject("init", f"consist of Z and Y for decoder={decoder!r}", repr(layer))
    # F^T F, a copy that is factorised, and the right-hand sides.
    n = len(batch.query)
    columns = n if reduced else layer.multiplicity.size
    checks.fits_in_memory("data", 8 * n * (2 * n + 2 * columns), "invert F^T F")
    logits = layer.Z if layer.temperature == 1 else layer.Z / layer.temperature
    smallest = np.linalg.eigvalsh(Features.of(batch, read_only(logits), residual=layer.residual).gram)[0]
    if smallest < SINGULAR:
        raise checks.reject(
            "data",
            f"have linearly independent features f_n for decoder={decoder!r}, which inverts F^T F",
            f"a smallest eigenvalue of {smallest:.1e}",
        )
