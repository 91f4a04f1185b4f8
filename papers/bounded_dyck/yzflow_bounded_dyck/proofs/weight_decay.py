"""Corollary 2 of Wen et al. 2023 (arXiv 2312.01429): loss and balance of a minimiser under weight decay.

The loss is squared, as in the paper. By Theorem 1 there are finite, exact weights; they have the norm R_0 (sum of
squares). The proof does not claim that training finds a minimiser.
"""

from __future__ import annotations

import sympy as sp

from theory.symbolic import Claim, Derivation, Scalar
from theory.symbolic.model import positive
from yzflow_bounded_dyck.proofs import theorem2

MINIMISER = "a minimiser's objective is at most that of exact weights, which Theorem 1 has"
SIZE = "its norm is at most R_0, for its loss is not below the smallest"


def excess_bound(decay: sp.Expr, norm: sp.Expr) -> sp.Expr:
    """Upper bound on a minimiser's excess over the smallest loss."""
    return decay * norm


def product_bound(norm: sp.Expr, layers: Scalar) -> sp.Expr:
    """Largest product of the norms of a number of matrices, if the squared norms sum to ``norm``."""
    return (norm / layers) ** (sp.sympify(layers) / 2)


def small_decay(norm: sp.Expr, probability: sp.Expr, separation: sp.Expr) -> sp.Expr:
    """Largest decay at which two outputs keep half the distance of the exact distributions."""
    return theorem2.small_excess(probability, separation) / norm


def derive(
    *,
    excess_bound: Claim = excess_bound,
    product_bound: Claim = product_bound,
    small_decay: Claim = small_decay,
) -> Derivation:
    """The loss of a minimiser, its outputs, the Lipschitz constant of its head, and S / P in the limit."""
    decay, exact, probability, p, n, gamma, tau, more = positive("lambda R_0 pi P n gamma tau g")
    own = sp.Symbol("R", nonnegative=True)
    # Were the excess larger than its bound by any g > 0, the exact weights would have the smaller objective.
    worse = (excess_bound(decay, exact) + more + decay * own) - decay * exact
    radius = theorem2.error_bound(excess_bound(decay, exact), probability)
    apart = tau - 2 * radius
    # Norms a, b of two matrices; a, b, c those of three to the power 2/3.
    a, b, c = positive("a b c")
    two, three = product_bound(a**2 + b**2, 2), product_bound(a**3 + b**3 + c**3, 3) ** sp.Rational(2, 3)
    halved = apart.subs(decay, small_decay(exact, probability, tau))
    limit = theorem2.bound(p, gamma, apart, n).subs(decay, 0)
    return Derivation(
        statement="Corollary 2 (bounded Dyck)",
        vanishing={
            "outputs: half of tau is left": halved - tau / 2,
            "head of three layers: mean less product": three
            - a * b * c
            - (a + b + c) * ((a - b) ** 2 + (b - c) ** 2 + (c - a) ** 2) / 6,
            "limit: the bound of Theorem 2": limit - theorem2.bound(p, gamma, tau, n),
        },
        signed={
            "excess: more than lambda R_0 is not minimal": (worse, "> 0"),
            "head of two layers: mean less product": (two - a * b, ">= 0"),
            "outputs: less decay, smaller error": (sp.diff(radius, decay), "> 0"),
        },
        steps=(
            r"Let $\theta_0$ be exact, of norm $R_0$ (Theorem 1, sufficiency, whose hypotheses it needs). If the loss"
            r" of $\theta_\lambda$ were more than $\lambda R_0$ above the smallest, its objective would exceed that of"
            r" $\theta_0$ by more than $\lambda R(\theta_\lambda) \ge 0$: it would be no minimiser.",
            r"Hence, as in Theorem 2, $\|T(x) - p(x)\| \le \sqrt{\lambda R_0/\pi(x)}$ after each prefix, and outputs"
            r" after two prefixes whose exact distributions are $\tau$ apart stay $\tau - 2\sqrt{\lambda R_0/\pi}$"
            r" apart: half of $\tau$ as soon as $\lambda \le \pi\tau^2/(16 R_0)$.",
            r"$R(\theta_\lambda) \le R_0$ up to what the loss can gain, 0; a head of L matrices then has a Lipschitz"
            r" constant of at most $(R_0/L)^{L/2}$, by the inequality of the two means.",
            r"Theorem 2: $S \le P(1 + 2\gamma/\tau)/n$ in the limit $\lambda \to 0$, and with twice $\gamma/\tau$ in it"
            r" as soon as $\lambda \le \pi\tau^2/(16 R_0)$. $\pi$ falls exponentially with the length, and so does that"
            r" $\lambda$: the limit is taken at each length by itself.",
        ),
        scope="any number of brackets, lengths and decay; the Lipschitz constant of heads of two and three layers",
        sizes={"layers of the head": (2, 3)},
        prose=(
            MINIMISER,
            SIZE,
            "the triangle inequality for the outputs after two prefixes",
        ),
    )
