"""Corollary 2, (101)-(107): several common tokens in the symmetric case all lose.

(10) is ``rate`` of `lemma4` and beta that of Theorem 1 for equal overlaps; that the overlaps are equal is
part of what is shown.
"""

from __future__ import annotations

import sympy as sp

from theory.scan_and_snap.proofs import lemma4, theorem1
from theory.symbolic import Claim, Derivation, Scalar
from theory.symbolic.model import norm, positive

# Tokens 0 and 1 are common. Two distinct tokens a class, in an order that the symmetry maps: token -> its image's role.
DISTINCT = ((2, 3), (5, 4), (6, 7))


def common_rate(share: sp.Expr, overlap: sp.Expr, speed: sp.Expr, n_classes: Scalar) -> sp.Expr:
    """zdot of a common token, -gamma beta (K - 1) f_l^2 (1 - rho) in units of eta_Z; ``speed`` is gamma beta."""
    return -speed * (n_classes - 1) * share**2 * (1 - overlap)


def distinct_rate(share: sp.Expr, overlap: sp.Expr, speed: sp.Expr, n_classes: Scalar) -> sp.Expr:
    """zdot of a distinct token, gamma beta (K - 1) rho f_l^2 / K in units of eta_Z."""
    return speed * (n_classes - 1) * overlap * share**2 / n_classes


def derive(*, common_rate: Claim = common_rate, distinct_rate: Claim = distinct_rate) -> Derivation:
    """The symmetric state is invariant under (10), and every common token falls."""
    classes, size = len(DISTINCT), 8
    c_0, c_1, d_0, d_1 = positive("c_0 c_1 d_0 d_1")
    columns = []
    for tokens in DISTINCT:
        column = sp.zeros(size, 1)
        column[0], column[1] = c_0, c_1
        for token, value in zip(tokens, (d_0, d_1), strict=True):
            column[token] = value
        columns.append(column)
    features = [column / norm(column) for column in columns]
    # rho and the norm as functions of the shares; beta as Theorem 1 gives it for them, with M = 8.
    rho = features[0].dot(features[1])
    strength = theorem1.beta(sp.Integer(size), classes, rho)
    beta = strength * sp.ones(classes, classes)
    gamma = sp.Symbol("gamma", positive=True)
    rate = lemma4.rate(0, (0,) * classes, features, beta, gamma, [sp.Rational(1, classes)] * classes)

    vanishing = {}
    for n in range(classes):
        vanishing[f"norm of class {n}"] = norm(columns[n]) - norm(columns[0])
        for other in range(n):
            vanishing[f"overlap of {n} and {other}"] = features[n].dot(features[other]) - rho
        for role, token in enumerate(DISTINCT[n]):
            vanishing[f"image of token {DISTINCT[0][role]} in class {n} moves alike"] = (
                rate[token] - rate[DISTINCT[0][role]]
            )
            share = features[n][token]
            vanishing[f"distinct token {token}"] = rate[token] - distinct_rate(share, rho, gamma * strength, classes)
    for token in (0, 1):
        share = features[0][token]
        vanishing[f"common token {token}"] = rate[token] - common_rate(share, rho, gamma * strength, classes)

    share, q, speed = positive("f q s")
    extra = sp.Symbol("j", nonnegative=True)
    between = 1 / (1 + q)
    return Derivation(
        statement="Corollary 2",
        vanishing=vanishing,
        signed={
            "common tokens lose": (common_rate(share, between, speed, 2 + extra), "< 0"),
            "distinct tokens gain": (distinct_rate(share, between, speed, 2 + extra), "> 0"),
        },
        steps=(
            r"In a symmetric state all norms are equal, $f_n\cdot f_{n'} = \sum_{l\in G_{CT}} f_l^2 = \rho$ for every"
            r" pair,"
            r" and $\beta_{nn'} = \beta > 0$ for every pair (Theorem 1, equal overlaps).",
            r"A distinct token moves at $\gamma\beta(K-1)\rho f_{nl}^2/K$, the same for its image in every class: the"
            r" state"
            r" stays symmetric, and the symmetric solution is the solution, as (10) is locally Lipschitz.",
            r"A common token: class n gives $\frac{\gamma\beta}{K} f_l\sum_{n'\ne n}(\rho f_l - f_l)$; the K classes"
            r" together"
            r" $-\gamma\beta(K-1)f_l^2(1-\rho) < 0$.",
        ),
        scope="K = 3, two common and two distinct tokens a class, any P(.|n); the sign for all K >= 2",
        sizes={"K": (3,), "M": (8,), "common tokens": (2,), "distinct tokens a class": (2,)},
        prose=("the symmetric solution is the solution, as (10) is locally Lipschitz",),
    )
