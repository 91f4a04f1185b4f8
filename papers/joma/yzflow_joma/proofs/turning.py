r"""First sparse, then dense: the rate of the entropy of softmax(u), for all sizes, its start and its end."""

from __future__ import annotations

import sympy as sp
from sympy import KroneckerDelta

from theory.symbolic import Claim, Derivation
from theory.symbolic.indexed import entries, index, size, total

C = size("C")


def slope(p: sp.Expr, u: sp.Expr, mean: sp.Expr) -> sp.Expr:
    """dH/du_l by p_l, u_l and sum_j p_j u_j."""
    return -p * (u - mean)


def early(fourth: sp.Expr, second: sp.Expr, t: sp.Expr) -> sp.Expr:
    """The leading term of dH/dt by the means of mu^4 and mu^2."""
    return -(t**3) / 2 * (fourth - second**2)


def derive(*, slope: Claim = slope, early: Claim = early) -> Derivation:
    """The claimed slope against the derivative of the entropy, and what follows of dH/dt = sum_l slope_l u_l'."""
    j, l, m = (index(name, C) for name in "jlm")
    u, mu = entries("u"), entries("mu")
    t, c = sp.symbols("t c", positive=True)
    share, level, speed = sp.symbols("P u0 w", positive=True)
    q, a, b, w = sp.symbols("q a b w1", positive=True)

    def p(token):
        return sp.exp(u[token]) / total(sp.exp(u[m]), m)

    entropy = sp.log(total(sp.exp(u[m]), m)) - total(p(j) * u[j], j)
    mean = total(p(j) * u[j], j)
    # At the start p = 1/C, u = mu^2 t^2/2, u' = mu^2 t.
    second, fourth = total(mu[j] ** 2, j) / C, total(mu[j] ** 4, j) / C
    start = total(slope(1 / C, mu[l] ** 2 * t**2 / 2, second * t**2 / 2) * mu[l] ** 2 * t, l)
    by_entry = sp.diff(entropy, u[l])
    odds = share / (1 + share)
    return Derivation(
        "First sparse, then dense",
        {
            "slope": by_entry - slope(p(l), u[l], mean),
            "start": start - early(fourth, second, t),
            "equal entries": slope(1 / C, c, c),
            "softmax": sp.diff(p(j), u[l]) - p(j) * (KroneckerDelta(j, l) - p(l)),
        },
        {
            # Movers of one size beside zeros: P their share, u0 their u, w their speed.
            "one size and zeros": (odds * slope(1, level, odds * level) * speed, "< 0"),
            # The slowest mover, q its share, is b below the mean: only its speed w1 is left.
            "in the end": (q * slope(1, a, a + b) * w, "> 0"),
        },
        steps=(
            r"$\partial H/\partial u_l = -p_l(u_l - \bar u)$, so that $\dot H = -\mathrm{Cov}_p(u, \dot u)$.",
            r"At the start $u = \mu^2t^2/2$: $\dot H = -\frac{t^3}{2}\mathrm{Var}(\mu^2) + \ldots$: it falls unless"
            r" all $|\mu_j|$ are equal, and then nothing moves.",
            r"In the end $\dot u_j\sim\mu_j^2 e^{\mu_j^2/2}\delta_j$ and the smallest nonzero $|\mu|$ is the slowest:"
            r" the sign of $\dot H$ is that of $\bar u - \mu_{\min}^2/2$. Without zeros, and unless all are equal, that"
            r" is positive: the entropy rises.",
            r"Entries of one size beside zeros: $\dot H < 0$ at all times: it never turns.",
        ),
        scope="any number of entries",
        sizes={},
        prose=(
            "the sign at the end from the slowest entry, whose delta outlasts the others",
            "a continuous rate that is negative first and positive last has a zero",
        ),
    )
