r"""First sparse, then dense: the rate of the entropy of softmax(u), for all sizes, its start and its end."""

from __future__ import annotations

import sympy as sp
from sympy import KroneckerDelta

from theory.symbolic import Claim, Derivation
from theory.symbolic.indexed import entries, index, size, total

C, MOVERS = size("C"), size("n")  # all entries, and those whose mu is not zero


SLOWEST = "the sign at the end from the slowest entry, whose speed outlasts the others' by a factor without bound"
ZERO = "a continuous rate that is negative first and positive last has a zero"
BETWEEN = "delta is between the exponentials of its least and its largest rate"


def slope(p: sp.Expr, u: sp.Expr, mean: sp.Expr) -> sp.Expr:
    """dH/du_l from p_l, u_l and sum_j p_j u_j."""
    return -p * (u - mean)


def early(fourth: sp.Expr, second: sp.Expr, t: sp.Expr) -> sp.Expr:
    """The leading term of dH/dt at early times, from the means of mu^4 and mu^2."""
    return -(t**3) / 2 * (fourth - second**2)


def excess(ratio: sp.Expr, weight: sp.Expr) -> sp.Expr:
    """Number of zeros that an entry outweighs, from e^u and the ratio of u to the least u."""
    return (ratio - 1) * weight


def late_rate(mu: sp.Expr) -> sp.Expr:
    """Limit of d ln u'/dt for late times, u = v^2/2."""
    return -sp.exp(mu**2 / 2)


def most_ratio(rate: sp.Expr) -> sp.Expr:
    """Bound on the ratio of v/mu to that of the least entry, from ``rate`` = e^(mu^2/2)."""
    return rate


def derive(
    *,
    slope: Claim = slope,
    early: Claim = early,
    excess: Claim = excess,
    late_rate: Claim = late_rate,
    most_ratio: Claim = most_ratio,
) -> Derivation:
    """The claimed slope against the derivative of the entropy, and the signs of dH/dt = sum_l slope_l u_l'."""
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
    # Movers u_j beside Z zeros; the least mover is u_1.
    mover, least, zeros = index("i", MOVERS), sp.symbols("u_1", positive=True), sp.Symbol("Z", nonnegative=True)
    weights = total(sp.exp(u[mover]), mover)
    of_movers = total(u[mover] * sp.exp(u[mover]), mover) / (zeros + weights)
    lead = total(excess(u[mover] / least, sp.exp(u[mover])), mover)
    v, end, more = sp.Symbol("v", real=True), sp.Symbol("m", positive=True), sp.Symbol("h", positive=True)
    moved = (end - v) * sp.exp(v**2 / 2)
    speed_rate = sp.simplify(sp.diff(sp.log(v) + sp.log(end - v) + v**2 / 2, v) * moved)
    ratio = late_rate(end + more) / late_rate(end)
    slower = sp.Symbol("r", nonnegative=True)  # e^(t h) = 1 + r; the larger entry has the rate 1 + h
    ahead = most_ratio(1 + more) * (1 - sp.exp(-t)) - (1 - sp.exp(-t * (1 + more)))
    growth = sp.diff(ahead, t).subs(sp.exp(-t * (1 + more)), sp.exp(-t) / (1 + slower))
    return Derivation(
        "First sparse, then dense",
        {
            "slope": by_entry - slope(p(l), u[l], mean),
            "start": start - early(fourth, second, t),
            "equal entries": slope(1 / C, c, c),
            "threshold: the mean less the least": of_movers - least - least * (lead - zeros) / (zeros + weights),
            "late: rate of the speed": speed_rate.subs(v, end) - late_rate(end),
            "bound: at the start": ahead.subs(t, 0),
            "softmax": sp.diff(p(j), u[l]) - p(j) * (KroneckerDelta(j, l) - p(l)),
        },
        {
            # Movers of one size beside zeros, with share P, level u0 and speed w.
            "one size and zeros": (odds * slope(1, level, odds * level) * speed, "< 0"),
            "late: larger entries stop first": (sp.expand(sp.expand_log(sp.log(ratio), force=True)), "> 0"),
            "bound: grows from there": (sp.factor(growth), ">= 0"),
            "bound: a mover above the mean": (slope(q, a + b, a) * w, "< 0"),
            # The slowest mover, with share q, is b below the mean; in the end only its speed w1 is left.
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
            r"Z zeros beside movers $u_j$, the least of them $u_1$: $\bar u > u_1$ where $Z < \sum_j(\frac{u_j}{u_1} -"
            r" 1)e^{u_j}$. In the end $u_j = \mu_j^2/2$ and $\frac{d}{dt}\ln\dot u_j \to -e^{\mu_j^2/2}$: the least"
            r" mover alone still moves, so that the entropy rises in the end below that Z, and falls above it.",
            r"$\delta = 1 - v/\mu$ falls at a rate between 1 and $e^{\mu^2/2}$: $v_1 \ge \mu_1(1 - e^{-t})$, $v_j \le"
            r" \mu_j(1 - e^{-tE})$ with $E = e^{\mu_j^2/2}$, whose ratio is $E\mu_j/\mu_1$ at most. With $Z \ge"
            r" \sum_j(\frac{\mu_j^2}{\mu_1^2}e^{\mu_j^2} - 1)e^{\mu_j^2/2}$, over the larger ones, every mover is above"
            r" the mean at all times, and the entropy never turns.",
        ),
        scope="any number of entries",
        sizes={},
        prose=(
            SLOWEST,
            ZERO,
            BETWEEN,
        ),
    )
