"""Corollary 2, (101)-(107): several common tokens in the symmetric case all lose.

(10) is ``rate`` of `lemma4`; beta comes from Theorem 1 for equal overlaps. The proof also shows that the overlaps are
equal. The numbers are symbols: K classes, C common tokens and D distinct tokens per class. The paper's map phi numbers
the distinct tokens: token (n, i) has the same weight P(l|n) exp(z_l) in every class n, and none in other classes.
"""

from __future__ import annotations

import sympy as sp
from sympy import KroneckerDelta

from theory.scan_and_snap.proofs import lemma4, theorem1
from theory.scan_and_snap.proofs.lemma4 import K
from theory.symbolic import Claim, Derivation, Scalar
from theory.symbolic.indexed import entries, index, size, total
from theory.symbolic.model import positive

C, D = size("C"), size("D")


def common_rate(share: sp.Expr, overlap: sp.Expr, speed: sp.Expr, n_classes: Scalar) -> sp.Expr:
    """zdot of a common token, -gamma beta (K - 1) f_l^2 (1 - rho) in units of eta_Z; ``speed`` is gamma beta."""
    return -speed * (n_classes - 1) * share**2 * (1 - overlap)


def distinct_rate(share: sp.Expr, overlap: sp.Expr, speed: sp.Expr, n_classes: Scalar) -> sp.Expr:
    """zdot of a distinct token, gamma beta (K - 1) rho f_l^2 / K in units of eta_Z."""
    return speed * (n_classes - 1) * overlap * share**2 / n_classes


def derive(*, common_rate: Claim = common_rate, distinct_rate: Claim = distinct_rate) -> Derivation:
    """The symmetric state is invariant under (10), and every common token falls."""
    common, other_common = index("l", C), index("c", C)
    distinct, other_distinct = index("i", D), index("d", D)
    n, owner, other = index("n", K), index("o", K), index("a", K)
    u, e = entries("u", positive=True), entries("e", positive=True)  # weights of common and distinct tokens
    shared = total(u[other_common] ** 2, other_common)

    def own_weight(a, o, i):
        """c~_a at the distinct token (o, i)."""
        return KroneckerDelta(a, o) * e[i]

    def product(a, b):
        """c~_a . c~_b over all tokens."""
        both = own_weight(a, owner, other_distinct) * own_weight(b, owner, other_distinct)
        return shared + total(both, owner, other_distinct)

    norm = sp.sqrt(shared + total(e[other_distinct] ** 2, other_distinct))
    rho = shared / norm**2
    gamma, strength = positive("gamma beta")

    def rate(own):
        return lemma4.rate(
            own, lambda a, b: product(a, b) / norm**2, lambda a, b: strength, gamma, lambda a: 1 / K, lambda a: 1
        )

    falls = rate(lambda a: u[common] / norm)
    gains = rate(lambda a: own_weight(a, n, distinct) / norm)
    speed = gamma * strength
    share, q, one = positive("f q s")
    m, extra = sp.Symbol("m", positive=True), sp.Symbol("j", nonnegative=True)
    between, k = 1 / (1 + q), 2 + extra
    return Derivation(
        statement="Corollary 2",
        vanishing={
            "norm of every class": product(n, n) - norm**2,
            "overlap of two classes": (1 - KroneckerDelta(n, other)) * (product(n, other) / norm**2 - rho),
            # No n on the right: images under phi move alike.
            "distinct token": gains - distinct_rate(e[distinct] / norm, rho, speed, K),
            "common token": falls - common_rate(u[common] / norm, rho, speed, K),
        },
        signed={
            "common tokens lose": (common_rate(share, between, one, k), "< 0"),
            "distinct tokens gain": (distinct_rate(share, between, one, k), "> 0"),
            "beta > 0": (theorem1.beta(1 + m, k, between), "> 0"),
        },
        steps=(
            r"In a symmetric state all norms are equal, $f_n\cdot f_{n'} = \sum_{l\in G_{CT}} f_l^2 = \rho$ for every"
            r" pair, and $\beta_{nn'} = \beta > 0$ for every pair (Theorem 1, equal overlaps).",
            r"A distinct token moves at $\gamma\beta(K-1)\rho f_{nl}^2/K$, the same for its image in every class: the"
            r" state stays symmetric, and the symmetric solution is the solution, as (10) is locally Lipschitz.",
            r"A common token: class n gives $\frac{\gamma\beta}{K} f_l\sum_{n'\ne n}(\rho f_l - f_l)$; the K classes"
            r" together $-\gamma\beta(K-1)f_l^2(1-\rho) < 0$, as $\rho < 1$ where classes have distinct tokens.",
        ),
        scope=r"all $K$, any numbers of common and distinct tokens, any $P(\cdot|n)$ with the symmetry; the sign for"
        r" $K \ge 2$",
        sizes={},
        prose=("the symmetric solution is the solution, as (10) is locally Lipschitz",),
    )
