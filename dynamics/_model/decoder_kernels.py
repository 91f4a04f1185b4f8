"""Numba kernels of the reduced decoders (Lemma 3, Theorem 1): products of sparse features, and h."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynamics.support.compiled import kernel

_OPTIONS: dict[str, Any] = {"fastmath": {"reassoc", "contract"}}


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
