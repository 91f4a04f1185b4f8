"""Theorem 2, (97)-(100): under (10) distinct tokens gain, and a single common token loses.

(10) is ``rate`` of `lemma4`; the features have the supports of the statement and are otherwise free.
"""

from __future__ import annotations

from collections.abc import Sequence

import sympy as sp

from theory.scan_and_snap.proofs import lemma4
from theory.symbolic import Claim, Derivation
from theory.symbolic.model import matrix, norm

# Tokens: 0 is common to all classes; the others are distinct, by class. Class 2 has the common token only.
DISTINCT = {0: (1, 2), 1: (3, 4), 2: ()}


def distinct_rate(probability: sp.Expr, share: sp.Expr, xi: sp.Expr) -> sp.Expr:
    """(a): zdot_l of a token distinct to n, p_n f_nl^2 xi_n in units of eta_Z."""
    return probability * share**2 * xi


def common_rate(probability: Sequence[sp.Expr], shares: Sequence[sp.Expr], xi: Sequence[sp.Expr]) -> sp.Expr:
    """(b): zdot of the single common token, -sum_n p_n (1 - f_nl^2) xi_n in units of eta_Z."""
    return -sum(p * (1 - f**2) * x for p, f, x in zip(probability, shares, xi, strict=True))


def derive(*, distinct_rate: Claim = distinct_rate, common_rate: Claim = common_rate) -> Derivation:
    """(a) and (b) for K = 3 classes of one query that share one common token."""
    classes, size = len(DISTINCT), 5
    weights = matrix("c", size, classes, positive=True)
    features = []
    for n in range(classes):
        support = {0, *DISTINCT[n]}
        column = sp.Matrix([weights[token, n] if token in support else 0 for token in range(size)])
        features.append(column / norm(column))
    beta = matrix("beta", classes, classes)
    probability = sp.symbols(f"p_:{classes}", positive=True)
    gamma = sp.Symbol("gamma", positive=True)
    rate = lemma4.rate(0, (0,) * classes, features, beta, gamma, probability)
    xi = [
        gamma * sum(beta[n, other] * features[n].dot(features[other]) for other in range(classes) if other != n)
        for n in range(classes)
    ]
    vanishing, signed = {}, {}
    positive_xi = sp.symbols(f"xi_:{classes}", positive=True)  # Theorem 1 (a)
    for n, tokens in DISTINCT.items():
        for token in tokens:
            share = features[n][token]
            vanishing[f"distinct token {token} of class {n}"] = rate[token] - distinct_rate(
                probability[n], share, xi[n]
            )
            signed[f"distinct token {token} gains"] = (distinct_rate(probability[n], share, positive_xi[n]), "> 0")
    shares = [f[0] for f in features]
    vanishing["common token"] = rate[0] - common_rate(probability, shares, xi)
    signed["common token loses"] = (sp.simplify(common_rate(probability, shares, positive_xi)), "< 0")
    # Without a distinct token f_nl = 1: that class does not move the common token.
    vanishing["a class without distinct tokens does not act"] = 1 - shares[2] ** 2
    return Derivation(
        statement="Theorem 2",
        vanishing=vanishing,
        signed=signed,
        steps=(
            r"(a) l distinct to n: $f_{n'l} = 0$ for $n' \ne n$, so that (10) leaves $p_n\gamma"
            r" f_{nl}\sum_{n'}\beta_{nn'}"
            r"f_{nl}\,f_n\cdot f_{n'} = p_n f_{nl}^2 \xi_n$.",
            r"(b) one common token l: $f_n\cdot f_{n'} = f_{nl} f_{n'l}$, so that class n gives $p_n\gamma\sum_{n'}"
            r"\beta_{nn'}(f_{nl}^2 - 1) f_{nl} f_{n'l} = -p_n (1 - f_{nl}^2)\xi_n$.",
            r"$\xi_n > 0$ (Theorem 1), and $f_{nl} < 1$ as soon as n has a distinct token.",
        ),
        scope="K = 3, one query, two distinct tokens in two classes and none in the third; any features, beta and p_n",
        sizes={
            "K": (len(DISTINCT),),
            "distinct tokens of the classes": tuple(len(tokens) for tokens in DISTINCT.values()),
        },
    )
