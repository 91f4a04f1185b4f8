"""Theorem 2 of Wen et al. 2023 (arXiv 2312.01429) from the cross-entropy: its excess keeps outputs apart.

The paper's theory has the squared loss. Its footnote 1 leaves the cross-entropy out, since no finite weights attain the
least value. Here a small excess over the least value is enough, and no weights have to attain it.
"""

from __future__ import annotations

import sympy as sp

from theory.symbolic import Claim, Derivation
from theory.symbolic.model import positive

GROUPED = "grouping next tokens lowers the divergence (the log-sum inequality)"
SEVERAL = "more than two entries of a sign, by induction"


def two_entries(share: sp.Expr, output: sp.Expr) -> sp.Expr:
    """Least divergence of two distributions on two entries, from their first entries (Pinsker)."""
    return 2 * (share - output) ** 2


def squared_distance(variation: sp.Expr) -> sp.Expr:
    """Largest squared distance of two distributions, from the sum of their positive differences."""
    return 2 * variation**2


def error(excess: sp.Expr, probability: sp.Expr, other: sp.Expr) -> sp.Expr:
    """Upper bound on the sum of the errors of two prefixes' outputs, from the excess of either loss."""
    return sp.sqrt(excess * (1 / probability + 1 / other))


def separation(apart: sp.Expr, excess: sp.Expr, probability: sp.Expr, other: sp.Expr) -> sp.Expr:
    """Lower bound on the distance of two outputs, from the distance of the exact distributions and the error."""
    return apart - error(excess, probability, other)


def small_excess(apart: sp.Expr, probability: sp.Expr, other: sp.Expr) -> sp.Expr:
    """Largest excess at which two outputs keep half the distance of the exact distributions."""
    return apart**2 / (4 * (1 / probability + 1 / other))


def derive(
    *,
    two_entries: Claim = two_entries,
    squared_distance: Claim = squared_distance,
    error: Claim = error,
    separation: Claim = separation,
    small_excess: Claim = small_excess,
) -> Derivation:
    """KL(p || o) >= ||p - o||^2, and the bound on the distance of two outputs from the excess."""
    p, o, tau, excess, one, other, odds = positive("p o tau epsilon pi_1 pi_2 s")
    divergence = p * sp.log(p / o) + (1 - p) * sp.log((1 - p) / (1 - o))
    slope = sp.diff(divergence - two_entries(p, o), o)
    factor = (1 - 2 * o) ** 2 / (o * (1 - o))
    x, y = sp.symbols("x y", nonnegative=True)
    off = sp.symbols("r_1 r_2", nonnegative=True)  # distances of the two outputs from the exact distributions
    spent = one * off[0] ** 2 + other * off[1] ** 2
    slack = (one * off[0] - other * off[1]) ** 2 / (one * other)
    half = separation(tau, small_excess(tau, one, other), one, other)
    variation = sp.Symbol("t", nonnegative=True)
    return Derivation(
        statement="Theorem 2 from the cross-entropy (bounded Dyck)",
        vanishing={
            "divergence: none where outputs are exact": (divergence - two_entries(p, o)).subs(o, p),
            "divergence: its slope": slope - (o - p) * factor,
            "divergence: all differences in one entry of each sign": squared_distance(variation) - 2 * variation**2,
            "divergence: two entries are at least their squared distance": two_entries(p, o) - squared_distance(p - o),
            "two outputs: all that the excess allows": error(spent, one, other) ** 2 - (off[0] + off[1]) ** 2 - slack,
            "two outputs: what is left of their distance": separation(tau, excess, one, other)
            - (tau - error(excess, one, other)),
            "two outputs: half of it": half - tau / 2,
        },
        signed={
            "divergence: its slope has the sign of o - p": (factor.subs(o, odds / (1 + odds)), ">= 0"),
            "divergence: more entries of a sign are nearer": (
                squared_distance(x + y) - (x**2 + y**2 + (x + y) ** 2),
                ">= 0",
            ),
            "two outputs: the slack": (slack, ">= 0"),
            "two outputs: less excess, smaller error": (sp.diff(error(excess, one, other), excess), "> 0"),
        },
        steps=(
            r"Two entries: $D(o) = p\ln\frac po + (1-p)\ln\frac{1-p}{1-o} - 2(p-o)^2$ is 0 at $o = p$ and has the slope"
            r" $(o-p)\frac{(1-2o)^2}{o(1-o)}$, which has the sign of $o - p$: $D \ge 0$.",
            r"Any number of entries: group those with $p_z \ge o_z$. The divergence of the groups is no larger than"
            r" that of the entries, so $KL(p\|o) \ge 2t^2$ with t the sum of the positive differences.",
            r"The negative differences sum to $-t$, too, and the squares of numbers of one sign to at most the square"
            r" of their sum: $\|p-o\|^2 \le 2t^2 \le KL(p\|o)$.",
            r"The cross-entropy lies above its least by $\sum_x\pi(x)\,KL(p(x)\|T(x)) \ge \sum_x\pi(x)\,\|p(x) -"
            r" T(x)\|^2$, the excess of the squared loss: what follows from that follows from this.",
            r"Two prefixes of weights $\pi_1, \pi_2$ share an excess of $\epsilon$: $\pi_1r_1^2 + \pi_2r_2^2 \le"
            r" \epsilon$, and by Cauchy and Schwarz $r_1 + r_2 \le \sqrt{\epsilon(1/\pi_1 + 1/\pi_2)}$. Outputs stay"
            r" $\tau - \sqrt{\epsilon(1/\pi_1 + 1/\pi_2)}$ apart, half of $\tau$ up to $\epsilon ="
            r" \tau^2/(4(1/\pi_1 + 1/\pi_2))$.",
        ),
        scope="any number of next tokens, any weights",
        sizes={},
        prose=(
            GROUPED,
            SEVERAL,
            "the triangle inequality for the outputs after two prefixes",
            "all other prefixes add no less than nothing to the excess",
        ),
    )
