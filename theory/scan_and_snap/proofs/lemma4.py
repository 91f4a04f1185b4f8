"""Lemma 4, (10): the attention dynamics with the backpropagated gradient of Theorem 1, class probabilities explicit.

The derivative of the expected J along z_m is taken from the definition of the bag, at a generic entry; (9) enters only
as g_n. K classes, M tokens and the map psi from classes to queries are symbols.
"""

from __future__ import annotations

import sympy as sp
from sympy import KroneckerDelta

from theory.symbolic import Claim, Derivation
from theory.symbolic.indexed import chosen, entries, index, size, total

K, M = size("K"), size("M")
QUERY = chosen("psi", M)  # of a class


def rate(own: Claim, overlap: Claim, beta: Claim, gamma: sp.Expr, probability: Claim, member: Claim) -> sp.Expr:
    """(10): entry l of zdot_m by eta_Z, with class n weighted by its probability p_n (erratum: the paper omits it).

    By class: ``own(n)`` is f_nl, ``overlap(n, n')`` is f_n . f_n', ``member(n)`` is 1 for the classes of query m.
    """
    n, other = index("n'", K), index("o'", K)
    push = beta(n, other) * (own(n) * overlap(n, other) - own(other))
    others = total((1 - KroneckerDelta(n, other)) * push, other)
    return total(member(n) * probability(n) * gamma * own(n) * others, n)


def derive(*, rate: Claim = rate) -> Derivation:
    """(10) by differentiating the expected J along z_m, for all K, M and queries."""
    j, l, p = (index(name, M) for name in "jlp")
    n, other, m = index("n", K), index("o", K), index("m", M)
    P, z, g, b, chance = (entries(name) for name in ("P", "z", "g", "beta", "p"))
    gamma, iota = sp.Symbol("gamma", positive=True), entries("iota")

    def weight(token, a):
        return P[token, a] * sp.exp(z[QUERY(a), token])

    def feature(token, a):
        return weight(token, a) / sp.sqrt(total(weight(l, a) ** 2, l))

    def overlap(a, c):
        return total(feature(p, a) * feature(p, c), p)

    def member(a):
        return KroneckerDelta(QUERY(a), m)

    # dJ_n = g_n . df_n by the definition of g_n, which is held fixed while f_n moves with z.
    slope = total(chance[n] * g[p, n] * sp.diff(feature(p, n), z[m, j]), p, n)
    bag_form = feature(j, n) * (g[j, n] - feature(j, n) * total(feature(p, n) * g[p, n], p))

    def sent_back(token, a):
        others = total((1 - KroneckerDelta(a, other)) * b[a, other] * feature(token, other), other)
        return gamma * (iota[a] * feature(token, a) - others)

    by_nine = slope.replace(
        lambda one: isinstance(one, sp.Indexed) and one.base == g, lambda one: sent_back(*one.indices)
    )
    claim = rate(lambda a: feature(j, a), overlap, lambda a, c: b[a, c], gamma, chance.__getitem__, member)
    return Derivation(
        statement="Lemma 4",
        vanishing={
            "bag form (Lemma 1)": slope - total(chance[n] * member(n) * bag_form, n),
            "the part along f_n is removed": feature(j, n) * (1 - total(feature(p, n) ** 2, p)),
            "zdot": by_nine - claim,
        },
        steps=(
            r"$\dot z_m = \eta_Z\,\partial_{z_m} \sum_n p_n J_n$: only the classes with $\psi(n) = m$ depend on"
            r" $z_m$, each with its probability, 1/K for uniform classes.",
            r"Lemma 1: class n contributes $p_n f_n * (g_n - f_n (f_n\cdot g_n))$.",
            r"(9): $g_n = \gamma(\iota_n f_n - \sum_{n'\ne n}\beta_{nn'} f_{n'})$; the part along $f_n$ drops, as"
            r" $\|f_n\| = 1$.",
            r"What is left is $p_n\gamma f_n * \sum_{n'\ne n}\beta_{nn'}(f_n f_n^T - I) f_{n'}$.",
        ),
        scope=r"all $K$, $M$ and queries, any $P(\cdot|n)$, $z$, $\beta$ and class probabilities",
        sizes={},
    )
