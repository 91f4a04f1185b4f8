"""The first moves of attention on any data, in closed form."""

from __future__ import annotations

import numpy as np
import scipy.sparse

from dynamics import Bags
from dynamics.support import checks

__all__ = ["initial_drift"]


def initial_drift(bags: Bags) -> scipy.sparse.csr_array:
    r"""Curvature D of the attention logits at the start Y = Z = 0 of the gradient flow of Lemma 1 (3).

    ``Z(t) = eta_Y eta_Z t^2 / 2 D + O(t^3)`` with, over bags b of query m_b, next token n_b and feature f_b,

        D_m = E[ 1[m_b = m] f_b * (g_b - f_b (f_b . g_b)) ],    g_b = P(n_b) E[f | n_b] - E[f] / M

    (elementwise *). It needs none of the assumptions of Theorem 2 (Tian et al. 2023, arXiv 2305.16380): neither classes
    of equal probability, nor long windows, nor a modified decoder. A token with equal frequency beside every next token
    enters g_b as ``(P(n_b) - 1/M) E[f_l]``. If all bags of a class are the same, f_n drops out of its part of D. With K
    such classes of equal probability and one query,

        D_l = 1/(K^2 M) sum_{n < k} [(f_nl^2 + f_kl^2) f_n.f_k - 2 f_nl f_kl].

    Distinct tokens gain (or stand still, if their class overlaps with no other) and a single common token loses, as in
    Theorem 2, for any overlaps: Assumption 2 is not needed. One of several common tokens can gain: it must be much more
    frequent in one class than in a second class, and other tokens must make the two classes overlap. If bags of a class
    differ, common tokens gain with next tokens of P(n) > 1/M.

    Parameters
    ----------
    bags : Bags
        With next tokens (no distributions).

    Returns
    -------
    (n_queries, n_tokens) scipy.sparse array
        In units of 1/(eta_Y eta_Z) per squared SGD step; rows sum to zero.

    Raises
    ------
    ValueError
        If targets are distributions.

    Notes
    -----
    Derivation: alpha = 1/M at Y = 0, so that Ydot = eta_Y E[f r^T] with r = e_n - 1/M, and Y = eta_Y t E[f r^T] to
    first order. In g_b = Y r_b the row sums of Y vanish, which leaves column n_b of E[f r^T].
    """
    if not checks.instance("bags", bags, Bags).hard:
        raise checks.reject("bags", "have next tokens", "distributions over them")
    bag = bags.owner
    norm = np.sqrt(np.add.reduceat(bags.count**2, bags.indptr[:-1]))
    f = bags.count / norm[bag]
    shape = (bags.vocab_size, bags.n_tokens)
    joint = scipy.sparse.csr_array((bags.weight[bag] * f, (bags.target[bag], bags.token)), shape=shape)
    mean = np.asarray(joint.sum(axis=0)).ravel()
    g = _entries(joint, bags.target[bag], bags.token) - mean[bags.token] / bags.vocab_size
    along = np.add.reduceat(f * g, bags.indptr[:-1])
    move = bags.weight[bag] * f * (g - f * along[bag])
    return scipy.sparse.csr_array((move, (bags.query[bag], bags.token)), shape=(bags.n_queries, bags.n_tokens))


def _entries(matrix: scipy.sparse.csr_array, row: np.ndarray, column: np.ndarray) -> np.ndarray:
    """Entries of a sparse matrix at many positions; all of them must be stored."""
    matrix.sum_duplicates()
    keys = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr)) * matrix.shape[1] + matrix.indices
    return matrix.data[np.searchsorted(keys, row * matrix.shape[1] + column)]
