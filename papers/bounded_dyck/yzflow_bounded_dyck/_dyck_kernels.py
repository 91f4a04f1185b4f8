"""Compiled loops of `yzflow_bounded_dyck.dyck`: random walks over depths, and bags of states.

Brackets are numbered 2 i (open, type i) and 2 i + 1 (close). The walk's probabilities are those of Definition 1 of Wen
et al. 2023, arXiv 2312.01429. No kernel here calls another one in another file, as numba's cache needs.
"""

from __future__ import annotations

import numpy as np

from dynamics.backend.compiled import kernel


@kernel()
def log_return_probability(open_probability, out):
    """``out[r, d]``: log of the probability that a walk at depth d is at depth 0 after r more brackets.

    Logarithms, since the probabilities span many orders of magnitude for q near 0 or 1. The last column is depth D.
    """
    log_open, log_close = np.log(open_probability), np.log1p(-open_probability)
    max_depth = out.shape[1] - 1
    out[0, :] = -np.inf
    out[0, 0] = 0.0
    for r in range(1, out.shape[0]):
        out[r, 0] = out[r - 1, 1]
        out[r, max_depth] = out[r - 1, max_depth - 1]
        for d in range(1, max_depth):
            out[r, d] = np.logaddexp(log_open + out[r - 1, d + 1], log_close + out[r - 1, d - 1])


@kernel()
def walk(rng, indptr, n_types, max_depth, open_probability, log_return, brackets):
    """One sequence for each b into ``brackets[indptr[b]:indptr[b + 1]]``.

    If ``log_return`` has rows, each sequence is conditioned on ending at depth 0: the step with r brackets to go opens
    with its probability times B_{r-1}(d + 1) / B_r(d) (Doob's transform), which is exact and needs no rejection.
    """
    conditioned = log_return.shape[0] > 0
    log_open = np.log(open_probability)
    stack = np.empty(max_depth, np.int64)
    for b in range(indptr.size - 1):
        depth = 0
        for t in range(indptr[b], indptr[b + 1]):
            if depth == 0:
                opens = True
            elif depth == max_depth:
                opens = False
            else:
                chance = open_probability
                if conditioned:
                    left = indptr[b + 1] - t
                    chance = np.exp(log_open + log_return[left - 1, depth + 1] - log_return[left, depth])
                opens = rng.random() < chance
            if opens:
                stack[depth] = min(int(rng.random() * n_types), n_types - 1)
                brackets[t] = 2 * stack[depth]
                depth += 1
            else:
                depth -= 1
                brackets[t] = 2 * stack[depth] + 1


@kernel()
def states(brackets, indptr, max_depth, n_types, out):
    """State after each bracket into ``out``; returns the first index that makes a prefix invalid, or -1."""
    stack = np.empty(max_depth, np.int64)
    for b in range(indptr.size - 1):
        depth = 0
        for t in range(indptr[b], indptr[b + 1]):
            kind = brackets[t] // 2
            if brackets[t] % 2 == 0:
                if depth == max_depth:
                    return t
                stack[depth] = kind
                out[t] = kind * max_depth + depth
                depth += 1
            else:
                if depth == 0 or stack[depth - 1] != kind:
                    return t
                depth -= 1
                out[t] = (n_types + kind) * max_depth + depth
    return -1


@kernel()
def bags(states, indptr, first, n_types, max_depth, open_probability, query, target, starts, token, count):
    """A bag for each prefix of sequence b that has ``first[b]`` brackets or more; returns the number of entries.

    ``target`` must hold zeros. A bag holds the states so far and START (the last state), and the exact distribution of
    the next bracket.
    """
    start = 2 * n_types * max_depth
    stack = np.empty(max_depth, np.int64)
    counts = np.zeros(start + 1, np.int64)
    seen = np.empty(start + 1, np.int64)  # states that occur, increasing
    bag = entries = 0
    starts[0] = 0
    for b in range(indptr.size - 1):
        seen[0] = start
        counts[start] = 1
        size, depth, state = 1, 0, start
        for length in range(indptr[b + 1] - indptr[b] + 1):
            if length > 0:
                state = states[indptr[b] + length - 1]
                if state < n_types * max_depth:
                    depth = state % max_depth + 1
                    stack[depth - 1] = state // max_depth
                else:
                    depth = state % max_depth
                if counts[state] == 0:
                    at = size
                    while at > 0 and seen[at - 1] > state:
                        seen[at] = seen[at - 1]
                        at -= 1
                    seen[at] = state
                    size += 1
                counts[state] += 1
            if length < first[b]:
                continue
            query[bag] = state
            if depth < max_depth:
                for kind in range(n_types):
                    target[bag, 2 * kind] = (1.0 if depth == 0 else open_probability) / n_types
            if depth > 0:
                target[bag, 2 * stack[depth - 1] + 1] = 1.0 if depth == max_depth else 1.0 - open_probability
            for i in range(size):
                token[entries + i] = seen[i]
                count[entries + i] = counts[seen[i]]
            entries += size
            bag += 1
            starts[bag] = entries
        for i in range(size):
            counts[seen[i]] = 0
    return entries
