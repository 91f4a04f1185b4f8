"""The assumptions of Scan and Snap as predicates with margins."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynamics import SequenceClasses
from dynamics.support import checks


@dataclass(frozen=True)
class WeakCorrelation:
    """Assumption 2 at given features: F^T F = I + E with |lambda_1(E)| < 1/K and |lambda_i(E)| >= 6 / sqrt(M).

    A margin is the ratio of the two sides of an inequality, at least 1 where it holds.

    Attributes
    ----------
    largest, smallest : float
        Largest and smallest |lambda_i(E)|.
    upper_margin : float
        (1/K) / |lambda_1(E)|.
    lower_margin : float
        min |lambda_i(E)| / (6 / sqrt(M)).
    """

    largest: float
    smallest: float
    upper_margin: float
    lower_margin: float

    @property
    def holds(self) -> bool:
        """Whether both inequalities hold."""
        return self.upper_margin > 1 and self.lower_margin >= 1


def weak_correlation(overlap: ArrayLike, *, vocab_size: int) -> WeakCorrelation:
    """Assumption 2 of Tian et al. (2023), arXiv 2305.16380, Section 4, for a (K, K) matrix ``overlap`` = F^T F.

    For equal overlaps rho the eigenvalues of E are (K - 1) rho and -rho, so that both inequalities together need
    6/sqrt(M) <= rho < 1/(K (K - 1)), hence M > 36 K^2 (K - 1)^2.

    Raises
    ------
    ValueError
        If ``overlap`` is not square and symmetric with a diagonal of ones, or M < K.
    """
    overlap = checks.finite_array("overlap", overlap, ndim=2)
    n_classes = len(overlap)
    if overlap.shape != (n_classes, n_classes) or n_classes == 0:
        raise checks.reject("overlap", "be square", f"shape {overlap.shape}")
    if not np.allclose(overlap, overlap.T, rtol=0, atol=1e-9) or not np.allclose(
        np.diag(overlap), 1, rtol=0, atol=1e-9
    ):
        raise checks.reject("overlap", "be symmetric with ones on the diagonal", "another matrix")
    vocab_size = checks.integer("vocab_size", vocab_size, minimum=max(n_classes, 2))
    sizes = np.abs(np.linalg.eigvalsh(overlap - np.eye(n_classes)))
    largest, smallest = float(sizes.max()), float(sizes.min())
    upper = 1 / n_classes / largest if largest > 0 else math.inf
    return WeakCorrelation(largest, smallest, upper, smallest * math.sqrt(vocab_size) / 6)


def alike(values: np.ndarray) -> float:
    """Smallest over largest number of a column, for the worst column; at least 1 if the columns are constant.

    Parameters
    ----------
    values : (n, columns) array
        At or above zero. Columns of zeros count as constant, and so does an array without columns.
    """
    values = checks.non_negative_array("values", values, ndim=2)
    largest = values.max(axis=0, initial=0.0)
    ratios = values[:, largest > 0].min(axis=0) / largest[largest > 0]
    return float(ratios.min(initial=1.0) * (1 + 1e-9))


def distinct_probabilities(classes: SequenceClasses) -> np.ndarray:
    """P(l|n) of the distinct tokens of each class, in falling order, padded with zeros: (K, most tokens of a class)."""
    probabilities = checks.instance("classes", classes, SequenceClasses).probabilities.toarray()
    distinct = np.where((probabilities > 0).sum(axis=0) == 1, probabilities, 0.0)
    return -np.sort(-distinct, axis=1)[:, : max(int((distinct > 0).sum(axis=1).max()), 1)]


def common_probabilities(classes: SequenceClasses) -> np.ndarray:
    """P(l|n) of the common tokens, zero where a class lacks the token: (K, common tokens)."""
    checks.instance("classes", classes, SequenceClasses)
    return classes.probabilities.toarray()[:, classes.common_tokens]
