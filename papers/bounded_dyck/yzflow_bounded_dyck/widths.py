r"""Widths at which a random network holds a given map, with a probability: Lemmas 2, 7 and 9 with numbers.

Wen et al. 2023 (arXiv 2312.01429) promise O(d log(d / min(epsilon, delta))) hidden units without a constant. The
constants here are our own (`yzflow_bounded_dyck.proofs.subset_sums`). n products ``|U| V`` of uniform numbers have
subsets within eta of every target in [-L/2, L/2], L = 1/e, but for a probability of
``2 (L/eta)^2 (1 - kappa/2)^n``, kappa = 1/(2e). A unit that sees relu(x) or relu(-x) counts half.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from dynamics.support import checks

_LENGTH = 1 / np.e
_GAIN = 1 / (2 * np.e)


def _rule(accuracy: float, failure: float) -> tuple[float, float]:
    accuracy = checks.below("accuracy", checks.positive("accuracy", accuracy), 1)
    return accuracy, checks.below("failure", checks.positive("failure", failure), 1)


def missed_targets(sizes: ArrayLike, length: float, accuracy: float) -> float:
    """Bound of the probability that a target in [-length/2, length/2] is missed, for products ``s_r V_r`` of known s_r.

    ``2 (L/eta)^2 prod_r (1 - L/(4 s_r))`` over the sizes of at least L; V uniform in [-1, 1].

    Parameters
    ----------
    sizes : (N,) float
    length : float
        L.
    accuracy : float
        eta, at most L.
    """
    sizes = np.abs(checks.finite_array("sizes", sizes, ndim=1))
    length, accuracy = checks.positive("length", length), checks.positive("accuracy", accuracy)
    factors = 1 - length / (4 * sizes[sizes >= length])
    return float(min(2 * (length / min(accuracy, length)) ** 2 * factors.prod(), 1.0))


def _terms(accuracy: float, failure: float, kappa: float) -> int:
    accuracy = min(accuracy, _LENGTH)
    return int(np.ceil(np.log(2 * (_LENGTH / accuracy) ** 2 / failure) / -np.log1p(-kappa / 2)))


def _parts(largest: float) -> int:
    """Equal parts that cut an entry of this size below half the targets' interval."""
    return max(int(np.ceil(2 * checks.positive("largest", largest) / _LENGTH)), 1)


def units_of_linear(shape: tuple[int, int], accuracy: float, failure: float, *, largest: float = 1.0) -> int:
    """Hidden units an input that are enough to hold a matrix within ``accuracy`` but for the probability ``failure``.

    Lemma 2. Each of 2 d d' sums must be within ``accuracy / sqrt(2 d d')``. Entries above 1/(2e) are cut into equal
    parts below it, each with units of its own, and with its share of the accuracy and of the failures.

    Parameters
    ----------
    shape : (outputs, inputs)
    accuracy, failure : float
        epsilon and delta, below 1.
    largest : float
        Largest entry; 1 for a matrix of norm at most 1.
    """
    rows, columns = (checks.integer("shape", size, minimum=1) for size in checks.listed("shape", shape, "be a pair"))
    accuracy, failure = _rule(accuracy, failure)
    parts = _parts(largest)
    sums = 2 * rows * columns
    return parts * _terms(accuracy / (parts * np.sqrt(sums)), failure / (parts * sums), _GAIN / 2)


def units_of_network(shapes: Sequence[tuple[int, int]], accuracy: float, failure: float) -> int:
    """Hidden units an input, in each of two pairs of matrices, that hold a network of two layers (Lemma 6).

    Weights of norm at most one, inputs of norm at most one: the first matrix within a third of ``accuracy``, the second
    within half of it, each but for half of ``failure``. `units_of_linear` of the larger need.

    Parameters
    ----------
    shapes : two (outputs, inputs) pairs
    accuracy, failure : float
        epsilon and delta, below 1.
    """
    pairs = list(checks.listed("shapes", shapes, "be two pairs"))
    if len(pairs) != 2:
        raise checks.reject("shapes", "be two pairs", f"{len(pairs)}")
    accuracy, failure = _rule(accuracy, failure)
    parts = zip(pairs, (accuracy / 3, accuracy / 2), strict=True)
    return max(units_of_linear(shape, share, failure / 2) for shape, share in parts)


def rows_of_product(size: int, accuracy: float, failure: float, *, largest: float = 1.0) -> int:
    """Rows a column of random key and query matrices that hold every entry of a product within ``accuracy`` (Lemma 7).

    Parameters
    ----------
    size : int
        The product has so many rows and columns.
    accuracy, failure, largest : float
        As in `units_of_linear`; the accuracy is that of an entry.
    """
    size = checks.integer("size", size, minimum=1)
    accuracy, failure = _rule(accuracy, failure)
    parts = _parts(largest)
    return parts * _terms(accuracy / parts, failure / (parts * size**2), _GAIN)


def too_few_products(accuracy: float, failure: float) -> int:
    """The most products with which one target of size above ``accuracy`` is surely missed too often.

    The largest n with ``2^n eta (1 - ln eta) < 1 - delta``; 0 if there is none.
    """
    accuracy, failure = _rule(accuracy, failure)
    return max(int(np.ceil(np.log2((1 - failure) / (accuracy * (1 - np.log(accuracy)))))) - 1, 0)


def entries_found(blocks: int, width: int, least: float) -> float:
    """Probability that each of the blocks, ``width x width`` numbers, has an entry of at least ``least`` (Lemma 9)."""
    blocks, width = (checks.integer(*pair, minimum=1) for pair in (("blocks", blocks), ("width", width)))
    least = checks.below("least", checks.positive("least", least), 1)
    return float(-np.expm1(width**2 * np.log((1 + least) / 2))) ** blocks


def width_of_entries(blocks: int, failure: float, least: float) -> int:
    """The least width of a block with which `entries_found` is at least ``1 - failure``: order sqrt(log(d / delta))."""
    blocks = checks.integer("blocks", blocks, minimum=1)
    _, failure = _rule(0.5, failure)
    least = checks.below("least", checks.positive("least", least), 1)
    one = -np.expm1(np.log1p(-failure) / blocks)  # probability of an empty block
    return max(int(np.ceil(np.sqrt(np.log(one) / np.log((1 + least) / 2)) - 1e-12)), 1)
