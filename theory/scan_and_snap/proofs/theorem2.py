"""Theorem 2, (97)-(100): under (10) distinct tokens gain, and a single common token loses.

(10) is ``rate`` of `lemma4`; the features have the supports of the statement and are otherwise free, for symbols K, M
and any queries.
"""

from __future__ import annotations

import sympy as sp
from sympy import KroneckerDelta

from theory.scan_and_snap.proofs import lemma4
from theory.scan_and_snap.proofs.lemma4 import QUERY, K, M
from theory.symbolic import Claim, Derivation, joined
from theory.symbolic.indexed import chosen, entries, index, total

CLASS = chosen("kappa", K)  # of a distinct token


def distinct_rate(probability: sp.Expr, share: sp.Expr, xi: sp.Expr) -> sp.Expr:
    """(a): zdot_l of a token distinct to n, p_n f_nl^2 xi_n in units of eta_Z."""
    return probability * share**2 * xi


def common_rate(probability: sp.Expr, share: sp.Expr, xi: sp.Expr) -> sp.Expr:
    """(b): contribution of class n to zdot of the single common token, -p_n (1 - f_nl^2) xi_n in units of eta_Z."""
    return -probability * (1 - share**2) * xi


def derive(*, distinct_rate: Claim = distinct_rate, common_rate: Claim = common_rate) -> Derivation:
    """(a) and (b) by putting the supports into (10)."""
    vanishing, signed = joined(_distinct(distinct_rate), _common(common_rate))
    return Derivation(
        statement="Theorem 2",
        vanishing=vanishing,
        signed=signed,
        steps=(
            r"(a) l distinct to n: $f_{n'l} = 0$ for $n' \ne n$, so that (10) leaves $p_n\gamma"
            r" f_{nl}\sum_{n'\ne n}\beta_{nn'} f_{nl}\,f_n\cdot f_{n'} = p_n f_{nl}^2 \xi_n$ at the query of n.",
            r"(b) one common token l, every other token distinct to some class: $f_n\cdot f_{n'} = f_{nl} f_{n'l}$ for"
            r" $n' \ne n$, so that class n gives $p_n\gamma f_{nl}\sum_{n'\ne n} \beta_{nn'}(f_{nl}^2 - 1) f_{n'l} ="
            r" -p_n (1 - f_{nl}^2)\xi_n$.",
            r"$\xi_n > 0$ (Theorem 1), and $1 - f_{nl}^2 = \sum_{l'\ne l} f_{nl'}^2$ is positive as soon as n has a"
            r" distinct token; a class without one does not act.",
        ),
        scope=r"all $K$, $M$ and queries, any numbers of distinct tokens, any features, $\beta$ and $p_n$",
        sizes={},
        prose=("a sum of terms >= 0, one of them positive, is positive",),
    )


def _parts():
    """Symbols of (10), and its sum over the other classes."""
    b, chance, gamma = entries("beta"), entries("p", positive=True), sp.Symbol("gamma", positive=True)
    m = index("m", M)
    return b, chance, gamma, lambda a: KroneckerDelta(QUERY(a), m)


def _xi(n, overlap, b, gamma):
    other = index("o", K)
    return gamma * total((1 - KroneckerDelta(n, other)) * b[n, other] * overlap(n, other), other)


def _distinct(distinct_rate):
    """(a): the row of F at a distinct token of class n has one nonzero entry, in column n."""
    n, p = index("n", K), index("p", M)
    F, share = entries("F"), sp.Symbol("f", positive=True)
    b, chance, gamma, member = _parts()

    def overlap(a, c):
        return total(F[p, a] * F[p, c], p)

    rate = lemma4.rate(
        lambda a: KroneckerDelta(a, n) * share, overlap, lambda a, c: b[a, c], gamma, chance.__getitem__, member
    )
    xi = _xi(n, overlap, b, gamma)
    positive_xi, weight = sp.symbols("xi_n p_n", positive=True)  # Theorem 1 (a)
    return {
        "distinct token": rate - member(n) * distinct_rate(chance[n], share, xi),
    }, {
        "distinct token gains": (distinct_rate(weight, share, positive_xi), "> 0"),
    }


def _common(common_rate):
    """(b): token l is common, token j != l has the share d_j in its class kappa(j) and none in the others."""
    n, common = index("n", K), index("l", M)
    j = index("j", M)
    c, d = entries("c"), entries("d")
    b, chance, gamma, member = _parts()

    def feature(token, a):
        at = KroneckerDelta(token, common)
        return at * c[a] + (1 - at) * KroneckerDelta(CLASS(token), a) * d[token]

    def overlap(a, e):
        return total(feature(j, a) * feature(j, e), j)

    rate = lemma4.rate(lambda a: feature(common, a), overlap, lambda a, e: b[a, e], gamma, chance.__getitem__, member)
    other = index("o", K)
    xi = _xi(n, overlap, b, gamma)
    claim = total(member(n) * common_rate(chance[n], c[n], xi), n)
    rest = total((1 - KroneckerDelta(j, common)) * KroneckerDelta(CLASS(j), n) * d[j] ** 2, j)
    apart = (1 - KroneckerDelta(n, other)) * (overlap(n, other) - c[n] * c[other])
    positive_xi, weight, distinct = sp.symbols("xi_n p_n d", positive=True)
    rate_one = common_rate(weight, 1 / sp.sqrt(1 + distinct), positive_xi)  # f^2 = 1/(1 + d) with a distinct token
    return {
        "overlaps through the common token": apart,
        "common token": rate - claim,
        "1 - f^2 of the common token": overlap(n, n) - c[n] ** 2 - rest,
        "a class without distinct tokens does not act": common_rate(weight, sp.Integer(1), positive_xi),
    }, {
        "common token loses": (rate_one, "< 0"),
    }
