"""Numba kernels of the reduced decoders (Lemma 3, Theorem 1): products of sparse features, and h."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynamics._model import gradient, kernels
from dynamics._model.batch import Batch
from dynamics._model.gradient import plain
from dynamics._model.weights import Weights
from dynamics.backend import intrinsics
from dynamics.backend.compiled import kernel
from dynamics.backend.intrinsics import as_read_only
from dynamics.optimizers import kernels as updates

_OPTIONS: dict[str, Any] = {"fastmath": {"reassoc", "contract"}}
# Kernels without them round as numpy does, which took their steps before.
_AS_NUMPY: dict[str, Any] = {"uses": (intrinsics, kernels, gradient, updates)}
# Numbers that are added one after another, in eight sums side by side.
_TOGETHER = 128


@kernel(**_AS_NUMPY)
def _sum_of_squares(x):
    """The sum of squares of numbers x, in the order of `numpy.sum`: by halves until they are few."""
    n = x.size
    if n > _TOGETHER:
        half = n // 2 - n // 2 % 8
        return _sum_of_squares(x[:half]) + _sum_of_squares(x[half:])
    total = x.dtype.type(0)
    eights = n - n % 8
    if eights > 0:
        a, b, c, d = x[0] * x[0], x[1] * x[1], x[2] * x[2], x[3] * x[3]
        e, f, g, h = x[4] * x[4], x[5] * x[5], x[6] * x[6], x[7] * x[7]
        for i in range(8, eights, 8):
            a += x[i] * x[i]
            b += x[i + 1] * x[i + 1]
            c += x[i + 2] * x[i + 2]
            d += x[i + 3] * x[i + 3]
            e += x[i + 4] * x[i + 4]
            f += x[i + 5] * x[i + 5]
            g += x[i + 6] * x[i + 6]
            h += x[i + 7] * x[i + 7]
        total = ((a + b) + (c + d)) + ((e + f) + (g + h))
    for i in range(eights, n):
        total += x[i] * x[i]
    return total


@kernel(**_AS_NUMPY)
def unit_features(query, indptr, token, count, Z, f):
    """The entries of the features f_n of single bags, attention over its norm, into ``f``, aligned with ``token``."""
    kernels.attention(query, indptr, token, count, Z, f)
    for b in range(query.size):
        lo, hi = indptr[b], indptr[b + 1]
        norm = np.sqrt(f[lo] * f[lo] + _sum_of_squares(f[lo + 1 : hi]))
        for i in range(lo, hi):
            f[i] /= norm


@kernel(**_OPTIONS)
def gram(indptr, token, f, workspace, G):
    """G = F^T F for the columns f_n in CSR form; ``workspace`` has an entry for every token, all zero."""
    bags = indptr.size - 1
    for b in range(bags):
        for i in range(indptr[b], indptr[b + 1]):
            workspace[token[i]] = f[i]
        for other in range(b, bags):
            total = 0.0
            for i in range(indptr[other], indptr[other + 1]):
                total += f[i] * workspace[token[i]]
            G[b, other] = total
            G[other, b] = total
        for i in range(indptr[b], indptr[b + 1]):
            workspace[token[i]] = 0.0


@kernel(**_OPTIONS)
def add_outer(indptr, token, f, X, out):
    """out += F X for the columns f_n in CSR form and X with a row for each bag."""
    for b in range(indptr.size - 1):
        for i in range(indptr[b], indptr[b + 1]):
            for k in range(X.shape[1]):
                out[token[i], k] += f[i] * X[b, k]


@kernel(**_OPTIONS)
def theory_decoder(x, target, vocab_size, inner):
    """inner[n', n] = w_n' . (e_n - alpha_n) of Theorem 1 before (I - E'), from x_n = M h_n.

    With w_n = (M - 1) h_n zeta_n and e_n - alpha_n = (M - 1) / (M - 1 + exp(x_n)) zeta_n (31)-(32); zeta_n . zeta_n'
    is q_1 = M / (M - 1) for equal and q_0 = -M / (M - 1)^2 for different next tokens.
    """
    rest = vocab_size - 1.0
    same = vocab_size / rest
    different = -vocab_size / rest**2
    for n in range(x.size):
        error = rest / (rest + np.exp(x[n]))
        for other in range(x.size):
            product = same if target[other] == target[n] else different
            inner[other, n] = rest * x[other] / vocab_size * error * product


@kernel(**_OPTIONS)
def pull_back(query, weight, indptr, token, f, G, dZ):
    """Add the attention dynamics (10) into ``dZ``: column n of ``G`` (tokens x bags) is g_n = gamma F (I - E') u_n.

    Lemma 1 in bag form, z' = f * (g - f (f . g)), for the columns f_n in CSR form.
    """
    for b in range(query.size):
        inner = 0.0
        for i in range(indptr[b], indptr[b + 1]):
            inner += f[i] * G[token[i], b]
        for i in range(indptr[b], indptr[b + 1]):
            dZ[query[b], token[i]] += weight[b] * f[i] * (G[token[i], b] - f[i] * inner)


@kernel(**_AS_NUMPY)
def systems(batch, shares, weights, rule, slopes, residual, f, workspace, G, losses):
    """The linear systems of Lemma 3 in several runs on the same bags: F^T F into ``G``, p_n r_n into ``residual``.

    ``shares`` are p_n, features come into ``f``, losses into ``losses``, the gradient of Z into ``slopes``. All of
    these, and what weights have of Z and Y, have an axis of runs before the others.
    """
    query, target, soft, _, size, indptr, token, count = batch
    always = shares.size > 0  # a literal True would be a type of its own
    rest = (weights.V, weights.hidden, weights.keys, weights.queries, weights.values)
    for run in range(shares.shape[0]):
        own = Batch(query, target, soft, as_read_only(shares[run]), size, indptr, token, count)
        Z, r = as_read_only(weights.Z[run]), residual[run]
        seen = Weights(Z, as_read_only(weights.Y[run]), rest[0], rest[1], rest[2], rest[3], rest[4])
        slope = Weights(
            slopes.Z[run], slopes.Y[run], slopes.V, slopes.hidden, slopes.keys, slopes.queries, slopes.values
        )
        losses[run] = plain(own, query.size, seen, rule, slope, r, always)
        unit_features(query, indptr, token, count, Z, f[run])
        gram(indptr, token, f[run], workspace, G[run])
        for b in range(query.size):
            for k in range(r.shape[1]):
                r[b, k] *= shares[run, b]


@kernel(**_AS_NUMPY)
def follow_modified(batch, f, solved, slope, flat, update, step):
    """A step of several runs along ``slope`` and F ``solved``, and zeros in ``slope`` for the next one.

    ``slope`` is that of Y; ``flat`` are (Z, Y) of all runs, each as (parameter, slope, first, second) without shape.
    """
    for run in range(slope.shape[0]):
        add_outer(batch[5], batch[6], f[run], solved[run], slope[run])
    for k in range(2):
        parameter, own, first, second = flat[k]
        updates.follow(update, parameter, own, first, second, update.rates[k], step)
        for i in range(own.size):
            own[i] = 0
