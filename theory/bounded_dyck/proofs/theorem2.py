"""Theorem 2 of Wen et al. 2023 (arXiv 2312.01429), with a constant.

Two prefixes whose last unmatched types differ have the sums x + n delta and y + n delta before LN, with
max(||x||, ||y||) = P (17) and ||delta|| = S (15).
"""

from __future__ import annotations

import sympy as sp

from theory.symbolic import Claim, Derivation
from theory.symbolic.model import positive


def bound(p: sp.Expr, lipschitz: sp.Expr, separation: sp.Expr, n: sp.Expr) -> sp.Expr:
    """Largest S for which outputs stay ``separation`` apart after n pairs."""
    return p * (1 + 2 * lipschitz / separation) / n


def derive(*, bound: Claim = bound) -> Derivation:
    """||LN(a) - LN(b)|| <= 2 ||a - b|| / (||a|| + ||b||), and the bound of S."""
    a, b, p, n, gamma, tau = positive("A B P n gamma tau")
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
    at_bound = distance.subs(m, n * bound(p, gamma, tau, n) - p)
    vanishing["the bound is where outputs are tau apart"] = gamma * at_bound - tau
    return Derivation(
        statement="Theorem 2 (bounded Dyck)",
        vanishing=vanishing,
        signed={
            "the slack": (slack, ">= 0"),
            "features come nearer as S grows": (sp.diff(distance, m), "< 0"),
        },
        steps=(
            r"For $a, b \ne 0$ with cosine c: $\frac{4\|a-b\|^2}{(\|a\|+\|b\|)^2} - \|LN(a)-LN(b)\|^2 ="
            r" \frac{2(1+c)(\|a\|-\|b\|)^2}{(\|a\|+\|b\|)^2} \ge 0$.",
            r"With $a = x + n\delta$, $b = y + n\delta$: $\|a\|, \|b\| \ge nS - P$ and $\|a-b\| \le 2P$, so the"
            r" features are at most $2P/(nS-P)$ apart and the outputs of a $\gamma$-Lipschitz head $2\gamma P/(nS-P)$.",
            r"A near-optimal layer keeps outputs $\tau$ apart (the distance of the two exact distributions less what"
            r" the loss allows), so $S \le P(1 + 2\gamma/\tau)/n$; n pairs fit into length N up to $n = N/2 - D$.",
            r"Where no stack reaches depth $d'-1$, n nests of pairs down to $d'$ and to $d'-1$ give the bound twice,"
            r" and $\delta_{d'}$ is their difference.",
        ),
        scope="any dimension: only two norms and an angle enter",
        sizes={},
        prose=(
            "n pairs fit into length N up to n = N/2 - D",
            "depths that no stack reaches: the bound twice",
        ),
    )
