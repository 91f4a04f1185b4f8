r"""Lemmas on errors in the parts of a Transformer; the certificate of a pruned Transformer combines them.

Each lemma bounds a change by the changes before it. The formulas are our own, with proofs in
`yzflow_bounded_dyck.proofs.lottery`: our text of Wen et al. 2023 (arXiv 2312.01429) lacks the formulas of its Lemmas 3,
4 and 8 to 14.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

# Largest number h of hidden units for which all 2^h patterns are tried.
_PATTERNS = 10


def attention_change(spread: float) -> float:
    r"""Largest change of the attention on any set of keys: tanh(w / 4), if logits change by numbers at most w apart.

    Attained at attention ``1 / (1 + exp(w / 2))``. A mixture of values then changes by at most tanh(w / 4) times the
    largest distance of two values. Lemma 8 of the paper concerns the same change.
    """
    return float(np.tanh(spread / 4))


def norm_change(change: float, floor: float, least: float) -> float:
    """Change of LN_C(u), if P u changes by ``change`` and stays at a norm of at least ``least`` on both sides.

    ``change / max(C, least)``, and never more than 2: LN_C is the projection of P u / C on the unit ball (Lemma 10).
    """
    scale = max(floor, least)
    return min(change / scale, 2.0) if scale > 0 else (2.0 if change > 0 else 0.0)


def padded_norm_change(change: float, floor: float, least: float, share: float, link: float) -> float:
    r"""`norm_change` for a wider LN, whose output on the residual link's coordinates is also read.

    The values have mean zero, so that the wider LN subtracts the mean of the error only (Lemma 12). A share t of
    ``norm_change``, at most ``share`` = width / larger width, moves to the coordinates of the token. The network reads
    these with ``link`` times the weight, which gives ``max_t sqrt(1 - t^2) + link t``.
    """
    moved = norm_change(change, floor, least)
    if moved == 0:
        return 0.0
    # If `norm_change` was capped at 2, the share still refers to the value before the cap.
    t = min(share * change / max(floor, least, 1e-300) / moved, link / np.hypot(1, link))
    return float(moved * (np.sqrt(1 - t**2) + link * t))


def read_change(normed: float, link: float, error: float) -> float:
    """Change of ``LN(u) + b x`` from the change ``normed`` of LN and the change ``error`` of x."""
    return normed + abs(link) * error


def logit_spread(error: float, keys: float, query: float, product: float, pruned: float, size: float) -> float:
    r"""Largest distance of the changes of two logits ``x_j^T B x_i`` of one query i.

    ``keys e + 2 query e + 2 |B| e^2 + 2 |E| (R + e)^2``: e the error of a token, ``keys`` the largest
    |B^T (x_j - x_k)|, ``query`` the largest |B x_i|, ``product`` = |B|, ``pruned`` = |E| the error of the product of
    key and query matrix, ``size`` = R the largest |x_j|.
    """
    return keys * error + 2 * query * error + 2 * product * error * error + 2 * pruned * (size + error) * (size + error)


def chain_norm(matrices: Sequence[np.ndarray]) -> float:
    r"""Bound of ``|M_k D_{k-1} M_{k-1} .. D_1 M_1|`` over all diagonal D with entries in [0, 1].

    It is a Lipschitz constant of a ReLU network: by the mean value theorem, the difference of two outputs is such a
    product times the difference of the inputs. Two matrices are bounded at a time: by all patterns of zeros and ones
    for up to ten hidden units, else by the least of three bounds.
    """
    best = [1.0]
    for last in range(1, len(matrices) + 1):
        alone = best[last - 1] * _norm(matrices[last - 1])
        best.append(min(alone, best[last - 2] * _pair_norm(*matrices[last - 2 : last])) if last > 1 else alone)
    return best[-1]


def _norm(matrix: np.ndarray) -> float:
    return float(np.linalg.norm(matrix, 2)) if matrix.size else 0.0


def _pair_norm(first: np.ndarray, second: np.ndarray) -> float:
    """Bound of |second D first|: the norm is convex in D, and so largest at a corner."""
    live = (np.abs(first).max(axis=1) > 0) & (np.abs(second).max(axis=0) > 0)
    first, second = first[live], second[:, live]
    if not live.any():
        return 0.0
    if len(first) <= _PATTERNS:
        corners = np.array(list(itertools.product([0.0, 1.0], repeat=len(first))))
        return float(np.linalg.norm(second @ (corners[:, :, None] * first), 2, axis=(1, 2)).max())
    # |second D first| <= |second| |first| entry by entry; and D = (1 + S) / 2 with S of entries in [-1, 1].
    product = _norm(first) * _norm(second)
    return min(product, (product + _norm(second @ first)) / 2, _norm(np.abs(second) @ np.abs(first)))


def network_change(matrices: Sequence[np.ndarray], errors: Sequence[np.ndarray], size: float) -> float:
    r"""Bound of ``|g~(z) - g(z)|`` over |z| <= size, for a ReLU network whose matrices W_t were replaced by W_t + E_t.

    Layer by layer (Lemmas 5 and 6): ``sum_t max_D |W_k D .. D E_t h~_{t-1}|``, with exact layers after t, and with h~
    the output for z of the pruned layers before t. The first error may act on (relu(z), relu(-z)), which has the norm
    of z.
    """
    total = 0.0
    for t, error in enumerate(errors):
        if not error.any():
            continue
        after, before = matrices[t + 1 :], matrices[:t]
        total += chain_norm([*before, error, *after]) * size
        if t:
            total += chain_norm([error, *after]) * network_change(before, errors[:t], size)
    return total
