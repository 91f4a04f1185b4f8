r"""Label smoothing: the finite optimum of the cross-entropy, and a network that attains it at every length.

Wen, Li, Liu, Risteski (NeurIPS 2023, arXiv 2312.01429) have the squared loss, since the cross-entropy has no finite
optimum where brackets cannot come next; with label smoothing it has one (footnote 1). The target of a prefix is ``p_eps
= (1 - eps) p + eps / (2 k)``, the mean of smoothed one-hot targets. The best logits are ``ln p_eps``, so that a
bracket of probability p is ``ln(1 + 2 k (1 - eps) p / eps)`` above one that cannot come next
(`yzflow_bounded_dyck.proofs.smoothing`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynamics import Layer
from dynamics.support import checks
from yzflow_bounded_dyck import DyckLanguage, balance
from yzflow_bounded_dyck.networks import ReluNetwork


def _smoothing(smoothing: float) -> float:
    if not 0 < checks.real("smoothing", smoothing) <= 1:
        raise checks.reject("smoothing", "be above 0 and at most 1", smoothing)
    return float(smoothing)


def smoothed(targets: ArrayLike, smoothing: float) -> np.ndarray:
    """``(1 - eps) p + eps / m`` for distributions p on the last axis, of m entries; eps from 0 on, excluded, to 1."""
    eps, p = _smoothing(smoothing), checks.non_negative_array("targets", targets)
    if p.ndim == 0 or p.shape[-1] == 0:
        raise checks.reject("targets", "hold distributions on their last axis", f"shape {p.shape}")
    checks.sum_to_one("targets", p.sum(axis=-1))
    return (1 - eps) * p + eps / p.shape[-1]


def best_gap(probability: ArrayLike, n_brackets: int, smoothing: float) -> np.ndarray:
    """Difference of the best logits of a bracket of this probability and of one that cannot come next.

    ``ln(1 + m (1 - eps) p / eps)`` with m brackets, 2 k of a Dyck language. It grows like ``ln(1 / eps)``.
    """
    eps, m = _smoothing(smoothing), checks.integer("n_brackets", n_brackets, minimum=1)
    p = checks.non_negative_array("probability", probability)
    if (p > 1).any():
        raise checks.reject("probability", "be at most 1", checks.brief(p.max()))
    return np.log1p(m * (1 - eps) * p / eps)


def smoothed_head(layer: Layer, language: DyckLanguage, smoothing: float) -> ReluNetwork:
    """The network from the features of a `balance.balanced_layer` to the logits of least smoothed cross-entropy.

    That of `balance.exact_head` with ``ln p_eps`` in its last layer: softmax of its outputs is the smoothed target
    after every prefix, of any length, and no weight of that layer is above ``ln(2 k / eps)``.
    """
    exact = balance.exact_head(layer, language)
    logits = np.log(smoothed(exact.weights[2].T, smoothing)).T
    return ReluNetwork((*exact.weights[:2], logits), exact.biases)
