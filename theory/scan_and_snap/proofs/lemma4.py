"""Lemma 4, (10): the attention dynamics with the backpropagated gradient of Theorem 1, class probabilities explicit.

The derivative of the expected J along z_m is taken from the definition of the bag; (9) enters only as g_n.
"""

from __future__ import annotations

from collections.abc import Sequence

import sympy as sp

from theory.symbolic import Claim, Derivation
from theory.symbolic.model import gradient, matrix, named, norm

# Query of each class: two classes share query 0.
QUERIES = (0, 0, 1)


def rate(
    query: int,
    queries: Sequence[int],
    features: Sequence[sp.Matrix],
    beta: sp.Matrix,
    gamma: sp.Expr,
    probability: Sequence[sp.Expr],
) -> sp.Matrix:
    """(10): zdot_m in units of eta_Z, with class n weighted by its probability p_n (erratum: the paper omits it).

    ``features`` is the list of f_n, ``beta[n, n']`` a matrix whose diagonal is not used.
    """
    size = len(features[0])
    total = sp.zeros(size, 1)
    for n, f in enumerate(features):
        if queries[n] != query:
            continue
        push = sp.zeros(size, 1)
        for other, f_other in enumerate(features):
            if other != n:
                push += beta[n, other] * (f * f.dot(f_other) - f_other)
        total += probability[n] * gamma * f.multiply_elementwise(push)
    return total


def derive(*, rate: Claim = rate, vocab_size: int = 3) -> Derivation:
    """(10) by differentiating the expected J along z_m, for K = 3 classes of which two share the query."""
    size, classes = vocab_size, len(QUERIES)
    z = [matrix(f"z{query}", size, 1) for query in range(2)]
    # z absorbs P of one class for each query: ones there lose nothing.
    P = matrix("P", size, classes, positive=True)
    P[:, 0] = P[:, 2] = sp.ones(size, 1)
    g = matrix("g", size, classes)
    beta = matrix("beta", classes, classes)
    probability = sp.symbols(f"p_:{classes}", positive=True)
    gamma, iota = sp.symbols("gamma iota", positive=True)
    features = []
    for n, query in enumerate(QUERIES):
        weights = P.col(n).multiply_elementwise(z[query].applyfunc(sp.exp))
        features.append(weights / norm(weights))
    # dJ_n = g_n . df_n by the definition of g_n, which is held fixed while f_n moves with z.
    linear = sum(p * g.col(n).dot(f) for n, (p, f) in enumerate(zip(probability, features, strict=True)))
    sent_back = {}
    for n in range(classes):
        signal = gamma * iota * features[n]
        for other in range(classes):
            if other != n:
                signal -= gamma * beta[n, other] * features[other]
        sent_back.update({g[j, n]: signal[j] for j in range(size)})
    vanishing = {}
    for query in range(2):
        slope = gradient(linear, z[query])
        difference = slope.subs(sent_back) - rate(query, QUERIES, features, beta, gamma, probability)
        plain = {entry: sp.log(sp.Dummy("w", positive=True)) for column in z for entry in column}
        vanishing.update(named(f"zdot, m = {query}", difference.subs(plain)))
    f, signal = features[0], g.col(0)
    bag_form = f.multiply_elementwise(signal - f * f.dot(signal))
    vanishing.update(named("bag form (Lemma 1)", gradient(signal.dot(f), z[0]) - bag_form))
    vanishing.update(named("the part along f_n is removed", f.multiply_elementwise(f - f * f.dot(f))))
    return Derivation(
        statement="Lemma 4",
        vanishing=vanishing,
        steps=(
            r"$\dot z_m = \eta_Z\,\partial_{z_m} \sum_n p_n J_n$: only the classes with $\psi(n) = m$ depend on"
            r" $z_m$, each"
            r" with its probability, 1/K for uniform classes.",
            r"Lemma 1: class n contributes $p_n f_n * (g_n - f_n (f_n\cdot g_n))$.",
            r"(9): $g_n = \gamma(\iota_n f_n - \sum_{n'}\beta_{nn'} f_{n'})$; the part along $f_n$ drops, as $\|f_n\|"
            r" = 1$.",
            r"What is left is $p_n\gamma f_n * \sum_{n'}\beta_{nn'}(f_n f_n^T - I) f_{n'}$.",
        ),
        scope="M = 3, K = 3 with two queries, any P(.|n), z, beta and class probabilities",
        sizes={"K": (len(QUERIES),), "M": (vocab_size,), "queries": (len(set(QUERIES)),)},
    )
