"""Unit features of all classes, and the inverse of their Gram matrix: what Lemma 3 and Theorem 1 have in common."""

from __future__ import annotations

import numpy as np

from dynamics._model.batch import Batch
from dynamics.fields import _kernels as reduced
from dynamics.support.checks import read_only

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
        reduced.add_outer(self.indptr, self.token, self.values, solved(self.gram, right), out)
        return out


def solved(gram: np.ndarray, right: np.ndarray) -> np.ndarray:
    """gram^{-1} right, of one system or of several; nan where there is no inverse."""
    try:
        return np.linalg.solve(gram, right)
    except np.linalg.LinAlgError:
        if gram.ndim == 3 and len(gram) > 1:
            return np.stack([solved(*own) for own in zip(gram, right, strict=True)])
        return np.full_like(right, np.nan)


def feature_values(batch: Batch, Z: np.ndarray) -> np.ndarray:
    """The entries of the features f_n of single bags at given attention logits, aligned with ``batch.token``."""
    values = np.empty(batch.token.size, Z.dtype)
    reduced.unit_features(batch.query, batch.indptr, batch.token, batch.count, Z, values)
    return values
