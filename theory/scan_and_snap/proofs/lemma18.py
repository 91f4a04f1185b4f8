"""Lemma 18, (134)-(138): how close the frequencies of a finite sequence are to P(.|n), by Hoeffding's inequality.

The inequality is proved, not quoted: N_l is a sum of L = T - 1 independent Bernoulli variables of mean p = P(l|n).
"""

from __future__ import annotations

import sympy as sp

from theory.symbolic import Claim, Derivation

LENGTH, EPSILON, DELTA = sp.symbols("L epsilon delta", positive=True)


def deviation(delta: sp.Expr, length: sp.Expr) -> sp.Expr:
    """(136): |N_l/L - P(l|n)| is at most this with a probability of at least 1 - delta."""
    return sp.sqrt(sp.log(2 / delta) / (2 * length))


def derive(*, deviation: Claim = deviation) -> Derivation:
    """Bound on the moment generating function, the best exponent, and the deviation for a given probability."""
    slope = sp.Symbol("lambda", real=True)
    odds = sp.Symbol("o", positive=True)
    p = 1 / (1 + odds)
    psi = sp.log(1 - p + p * sp.exp(slope)) - slope * p
    tilted = sp.Symbol("q", real=True)
    share = p * sp.exp(slope) / (1 - p + p * sp.exp(slope))

    # P(N/L - p >= epsilon) <= exp(L (psi(lambda) - lambda epsilon)) with psi <= lambda^2/8.
    rate = slope**2 / 8 - slope * EPSILON
    best = sp.solve(sp.diff(rate, slope), slope)[0]
    size = sp.Symbol("D", positive=True)  # ln(2/delta)
    reached = deviation(2 * sp.exp(-size), LENGTH)
    tail = 2 * sp.exp(LENGTH * rate.subs(slope, best).subs(EPSILON, reached))
    return Derivation(
        statement="Lemma 18",
        vanishing={
            "psi(0) = 0": psi.subs(slope, 0),
            "psi'(0) = 0": sp.diff(psi, slope).subs(slope, 0),
            "psi'' = q (1 - q)": sp.diff(psi, slope, 2) - share * (1 - share),
            "1/4 - q (1 - q)": sp.Rational(1, 4) - tilted * (1 - tilted) - (tilted - sp.Rational(1, 2)) ** 2,
            "best exponent": rate.subs(slope, best) + 2 * EPSILON**2,
            "both tails together have probability delta": sp.simplify(tail - 2 * sp.exp(-size)),
        },
        signed={
            "psi'' <= 1/4": ((tilted - sp.Rational(1, 2)) ** 2, ">= 0"),
            "the best exponent is a minimum": (sp.diff(rate, slope, 2), "> 0"),
        },
        steps=(
            r"$\psi(\lambda) = \ln E e^{\lambda(x - p)}$ for one Bernoulli variable has $\psi(0) = \psi'(0) = 0$ and"
            r" $\psi'' = q(1-q) \le 1/4$ with $q = pe^\lambda/(1-p+pe^\lambda)$: $\psi \le \lambda^2/8$ (Taylor).",
            r"Markov: $P(N/L - p \ge \epsilon) \le e^{L(\lambda^2/8 - \lambda\epsilon)}$, least at $\lambda ="
            r" 4\epsilon$: $e^{-2L\epsilon^2}$. The lower tail is the same for $1 - x$.",
            r"$2e^{-2L\epsilon^2} = \delta$ gives $\epsilon = \sqrt{\ln(2/\delta)/(2L)}$, which tends to 0 with"
            r" $T\to\infty$.",
            r"All tokens at once: replace $\delta$ by $\delta$ over their number. Lemma 2 then gives the bag.",
        ),
        scope=r"all $T$, $\delta$ and $0 < P < 1$",
        sizes={},
        prose=(
            "Taylor's theorem for psi, Markov's inequality, independent tokens",
            "the lower tail is that of 1 - x",
        ),
    )
