"""Corollary 2 of Wen et al. 2023 (arXiv 2312.01429): what weight decay leaves of the loss, and of the balance.

The loss is the squared one, as in the paper. A set of weights that is exact and finite exists by Theorem 1; it has the
norm R_0 (sum of squares). Nothing here says that training finds a minimiser.
"""

from __future__ import annotations

import sympy as sp

from theory.bounded_dyck.proofs import theorem2
from theory.symbolic import Claim, Derivation
from theory.symbolic.model import positive


def excess_bound(decay: sp.Expr, norm: sp.Expr) -> sp.Expr:
    """The most that the loss of a minimiser can lie above the smallest loss."""
    return decay * norm


def error_bound(decay: sp.Expr, norm: sp.Expr, probability: sp.Expr) -> sp.Expr:
    """How far the outputs of a minimiser can be from the exact distribution after a prefix of that probability."""
    return sp.sqrt(decay * norm / probability)


def two_layers(norm: sp.Expr) -> sp.Expr:
    """Largest product of the norms of two matrices, whose squares sum to ``norm``."""
    return norm / 2


def three_layers(norm: sp.Expr) -> sp.Expr:
    """The same for three, of the norms to the power 2/3: their product is at most (norm / 3)^(3/2)."""
    return norm / 3


def small_decay(norm: sp.Expr, probability: sp.Expr, separation: sp.Expr) -> sp.Expr:
    """Decay up to which outputs stay half as far apart as the exact distributions are."""
    return probability * separation**2 / (16 * norm)


def derive(
    *,
    excess_bound: Claim = excess_bound,
    error_bound: Claim = error_bound,
    two_layers: Claim = two_layers,
    three_layers: Claim = three_layers,
    small_decay: Claim = small_decay,
) -> Derivation:
    """The loss of a minimiser, its outputs, the Lipschitz constant of its head, and S / P in the limit."""
    decay, exact, probability, p, n, gamma, tau, more = positive("lambda R_0 pi P n gamma tau g")
    own = sp.Symbol("R", nonnegative=True)
    share, output = sp.symbols("p_z T_z", real=True)
    # One entry of the target is 1 with the exact probability: what it adds to the expected loss.
    entry = share * (1 - output) ** 2 + (1 - share) * output**2
    # Were the excess larger than its bound by any g > 0, the exact weights would have the smaller objective.
    worse = (excess_bound(decay, exact) + more + decay * own) - decay * exact
    radius = error_bound(decay, exact, probability)
    apart = tau - 2 * radius
    sides = positive("a b c")
    a, b, c = sides
    halves = {"lambda small": apart.subs(decay, small_decay(exact, probability, tau)) - tau / 2}
    limit = theorem2.bound(p, gamma, apart, n).subs(decay, 0)
    return Derivation(
        statement="Corollary 2 (bounded Dyck)",
        vanishing={
            "squared loss: an entry's excess": entry - share * (1 - share) - (share - output) ** 2,
            "outputs: all the excess at one prefix": probability * radius**2 - excess_bound(decay, exact),
            "head of three layers: mean less product": three_layers(a**3 + b**3 + c**3)
            - a * b * c
            - (a + b + c) * ((a - b) ** 2 + (b - c) ** 2 + (c - a) ** 2) / 6,
            "limit: the bound of Theorem 2": limit - theorem2.bound(p, gamma, tau, n),
            **halves,
        },
        signed={
            "excess: more than lambda R_0 is not minimal": (worse, "> 0"),
            "head of two layers: mean less product": (two_layers(a**2 + b**2) - a * b, ">= 0"),
            "outputs: less decay, smaller error": (sp.diff(radius, decay), "> 0"),
        },
        steps=(
            r"Each entry of the target is 1 with the exact probability $p_z$: its expected squared error is"
            r" $p_z(1-p_z) + (p_z - T_z)^2$. So the loss lies above the smallest one by $\sum_x \pi(x) \|T(x) -"
            r" p(x)\|^2$.",
            r"Let $\theta_0$ be exact, of norm $R_0$ (Theorem 1). If the loss of $\theta_\lambda$ were more than"
            r" $\lambda R_0$ above the smallest, its objective would exceed that of $\theta_0$ by more than $\lambda"
            r" R(\theta_\lambda) \ge 0$: it would be no minimiser.",
            r"Hence $\|T(x) - p(x)\| \le \sqrt{\lambda R_0/\pi(x)}$ after each prefix, and outputs after two prefixes"
            r" whose exact distributions are $\tau$ apart stay $\tau - 2\sqrt{\lambda R_0/\pi}$ apart: half of $\tau$"
            r" as soon as $\lambda \le \pi\tau^2/(16 R_0)$.",
            r"$R(\theta_\lambda) \le R_0$ up to what the loss can gain, 0; a head of L matrices then has a Lipschitz"
            r" constant of at most $(R_0/L)^{L/2}$, by the inequality of the two means.",
            r"Theorem 2: $S \le P(1 + 2\gamma/\tau)/n$ in the limit $\lambda \to 0$, and twice $\gamma/\tau$ there from"
            r" $\lambda = \pi\tau^2/(16 R_0)$ on. $\pi$ falls exponentially with the length, and so does that"
            r" $\lambda$: the limit is taken at each length by itself.",
        ),
        scope="any number of brackets, lengths and decay; the Lipschitz constant of heads of two and three layers",
        sizes={"layers of the head": (2, 3)},
        prose=(
            "a minimiser exists, and its objective is at most that of exact weights, which Theorem 1 has",
            "its norm is at most R_0, for its loss is not below the smallest",
            "the triangle inequality for the outputs after two prefixes",
        ),
    )
