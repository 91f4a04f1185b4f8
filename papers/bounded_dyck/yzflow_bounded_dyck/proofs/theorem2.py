"""Theorem 2 of Wen et al. 2023 (arXiv 2312.01429), with a constant.

Two prefixes with different last unmatched types have the sums x + n delta and y + n delta before LN, with
max(||x||, ||y||) = P (17) and ||delta|| = S (15). If they do not reach the pair's level, both first open the levels
between once.
"""

from __future__ import annotations

import sympy as sp

from theory.symbolic import Claim, Derivation
from theory.symbolic.model import positive


def bound(p: sp.Expr, lipschitz: sp.Expr, separation: sp.Expr, n: sp.Expr) -> sp.Expr:
    """Upper bound on S if outputs stay ``separation`` apart after n pairs."""
    return p * (1 + 2 * lipschitz / separation) / n


def deeper(reached: sp.Expr, n: sp.Expr, levels: sp.Expr) -> sp.Expr:
    """Bound for a pair some levels below the deepest level whose pairs fit in, from the bound ``reached`` there."""
    return reached * (1 + 1 / n) ** levels


def error_bound(excess: sp.Expr, probability: sp.Expr) -> sp.Expr:
    """How far outputs can be from the exact distribution after a prefix, from the excess of the squared loss."""
    return sp.sqrt(excess / probability)


def small_excess(probability: sp.Expr, separation: sp.Expr) -> sp.Expr:
    """Largest excess of the loss at which two outputs keep half the distance of the exact distributions."""
    return probability * separation**2 / 16


def derive(
    *,
    bound: Claim = bound,
    deeper: Claim = deeper,
    error_bound: Claim = error_bound,
    small_excess: Claim = small_excess,
) -> Derivation:
    """||LN(a) - LN(b)|| <= 2 ||a - b|| / (||a|| + ||b||), the bound of S, and the outputs' distance from the loss."""
    a, b, p, n, gamma, tau, opened, excess, probability = positive("A B P n gamma tau sigma epsilon pi")
    angle = sp.Symbol("r", nonnegative=True)  # 1 + cosine
    cosine = angle - 1
    apart = a**2 + b**2 - 2 * a * b * cosine
    difference = sp.Symbol("d", real=True)  # A - B
    slack = 2 * angle * difference**2 / (a + b) ** 2
    vanishing = {
        "distance of unit vectors": 4 * apart / (a + b) ** 2 - (2 - 2 * cosine) - slack.subs(difference, a - b)
    }
    # ||x + n delta||, ||y + n delta|| >= n S - P =: m and ||x - y|| <= 2 P.
    m = positive("m")
    distance = sp.simplify(2 * (2 * p) / (m + m))
    vanishing["distance of the features"] = distance - 2 * p / m
    most = bound(p, gamma, tau, n)
    vanishing["bound: where outputs are tau apart"] = gamma * distance.subs(m, n * most - p) - tau
    # The levels opened once add at most sigma to each sum, the same to both.
    most_deeper = most + opened / n
    vanishing["deeper: where outputs are tau apart"] = gamma * distance.subs(m, n * most_deeper - p - opened) - tau
    # s_r = most + (s_0 + .. + s_{r-1}) / n: from one level to the next s_r / n comes in.
    levels = sp.Symbol("r_l", integer=True, nonnegative=True)
    vanishing["deeper: the first level"] = deeper(most, n, sp.Integer(0)) - most
    step = deeper(most, n, levels + 1) - deeper(most, n, levels) * (1 + 1 / n)
    vanishing["deeper: the next level"] = sp.powsimp(sp.expand(step / deeper(most, n, levels)))
    share, output = sp.symbols("p_z T_z", real=True)
    # One entry of the target is 1 with the exact probability: what it adds to the expected loss.
    entry = share * (1 - output) ** 2 + (1 - share) * output**2
    vanishing["loss: an entry's excess"] = entry - share * (1 - share) - (share - output) ** 2
    vanishing["loss: all the excess at one prefix"] = probability * error_bound(excess, probability) ** 2 - excess
    left = tau - 2 * error_bound(small_excess(probability, tau), probability)
    vanishing["loss: outputs stay half as far apart"] = left - tau / 2
    return Derivation(
        statement="Theorem 2 (bounded Dyck)",
        vanishing=vanishing,
        signed={
            "distance of unit vectors: the slack": (slack, ">= 0"),
            "distance of the features falls as S grows": (sp.diff(distance, m), "< 0"),
            "loss: less excess, smaller error": (sp.diff(error_bound(excess, probability), excess), "> 0"),
        },
        steps=(
            r"For $a, b \ne 0$ with cosine c: $\frac{4\|a-b\|^2}{(\|a\|+\|b\|)^2} - \|LN(a)-LN(b)\|^2 ="
            r" \frac{2(1+c)(\|a\|-\|b\|)^2}{(\|a\|+\|b\|)^2} \ge 0$.",
            r"A pair of level $d' \le d + 2$ can be put in n times as it is, for the prefix $w\,\mathrm{open}_j\,"
            r"\mathrm{close}_j$ reaches depth $d + 1$. With $a = x + n\delta$, $b = y + n\delta$: $\|a\|, \|b\| \ge"
            r" nS - P$ and $\|a-b\| \le 2P$, so the features are at most $2P/(nS-P)$ apart and the outputs of a"
            r" $\gamma$-Lipschitz head $2\gamma P/(nS-P)$.",
            r"If outputs are $\tau$ apart after these n pairs, then $S \le P(1 + 2\gamma/\tau)/n$.",
            r"For a deeper level open levels $d + 2$ to $d' - 1$ once, put n pairs in and close them: both sums get"
            r" the same $\sigma$ more, with $\|\sigma\|$ at most the sum of these levels' S. Then $nS \le"
            r" P(1 + 2\gamma/\tau) + \|\sigma\|$, and from level to level the bound grows by $1 + 1/n$ at most:"
            r" $S \le \frac{P}{n}(1 + \frac{2\gamma}{\tau})(1 + \frac1n)^{d'-d-2}$.",
            r"The longest of these prefixes has $2n + 2D - 3$ brackets or fewer than $2n + D + 2$, so that"
            r" $n = N/2 - D$ fits into length N.",
            r"The loss. Each entry of the target is 1 with the exact probability $p_z$: its expected squared error is"
            r" $p_z(1-p_z) + (p_z - T_z)^2$. So the loss lies above the smallest one by $\sum_x \pi(x) \|T(x) -"
            r" p(x)\|^2$, $\pi(x)$ the weight of the prefix x in it, and an excess of $\epsilon$ leaves outputs within"
            r" $\sqrt{\epsilon/\pi}$ of the exact ones: those after two prefixes stay half as far apart as they should"
            r" be, $\tau/2$, if $\epsilon \le \pi\tau^2/16$. Exact distributions after closing brackets with other"
            r" last unmatched types are $\tau = \sqrt2\,(1-q)$ apart.",
        ),
        scope="any dimension: only two norms and an angle enter",
        sizes={},
        prose=(
            "the triangle inequality for sums, features and outputs",
            "the induction over the levels that are opened",
            "the lengths of the prefixes",
        ),
    )
